"""The rules of RDFS and OWL 2 RL as texts, and the spellings of datatypes."""
