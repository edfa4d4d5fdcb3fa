"""How rules are evaluated: in which order, from which literal, reading which facts."""
