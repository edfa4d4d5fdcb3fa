"""Equality by representatives: *Combining rewriting and incremental materialisation maintenance for Datalog programs with equality*.

Facts and rules are in normal form: of all terms that are equal, the representative stands for all. π maps terms to their
representatives; (π, I) is the r-materialisation. The equalities, and all that they depend on, are one stratum: there the algorithms
of this package are at work. Strata above it, to which π is given, are maintained like any others.

The rules x ≈ x of the paper are left out: x ≈ x is in I if x has other names, or if a rule derives it. So its lines 12, 25–28, 37–39 and 47
have nothing to do.
"""
