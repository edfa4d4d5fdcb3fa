"""Storage schemes: relations whose facts are not rows of a table (*Optimised storage for Datalog reasoning*).

A relation's table then holds only its *inputs*, the facts that are explicit or that rules outside the scheme derive; all its facts
follow from inputs, and are read from the scheme. The evaluation of rules does not depend on it: a view selects facts by
their states, and a scheme knows which of its facts have which state.

    scheme            the protocol of a scheme and of its leaves
    interval_scheme   transitive closures, linear ones too, as intervals
    union_scheme      relations that copy others
    value_directory   which sources of a union mention a value
    policy            which scheme a relation gets
    lifecycle         how relations get, follow and lose a scheme
"""
