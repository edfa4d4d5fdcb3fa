"""Storage schemes: relations whose facts are not rows of a table (*Optimised storage for Datalog reasoning*).

A relation's table then holds only its *inputs*, the facts that are explicit or that rules outside the scheme derive; all facts that there
are follow from inputs, and are read from the scheme. Whoever evaluates rules does not know: a view says which facts it is about by
their states, and a scheme knows which of its facts have which state.

    scheme      what a scheme offers, and the domains in which facts are read
    closure     transitive closures, linear ones too, as intervals
    union       relations that copy others
    rows        a plain table, read like a scheme
    directory   which sources of a union mention a value
    choosing    which scheme a relation gets
"""
