"""Modular reasoning: *Modular materialisation of Datalog programs*, and B/F^c in its framework.

The recursive rules of a stratum are split into modules. Rules that close a relation (see `language.patterns.closures`) have an algorithm of
their own, which an engine offers; all other rules are one module that works as ever (`seminaive_module`). Algorithms call the modules in turn, and give
each what the others have derived (`exchange`).

    materialise        Mat-Mod, Algorithm 2
    dred_counting      DRed^c-Mod, Algorithm 3 as repaired: see there
    backward_forward   B/F^c-Mod, which the paper left for the future
"""
