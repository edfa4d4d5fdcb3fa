"""Equality by representatives and by axioms: ``python -m bench.equality [--small] [--only SHAPE …]``.

The shapes of table 1 of *Combining rewriting and incremental materialisation maintenance for Datalog programs with equality*:

- `uobm`: universities of `bench.universities` that hang together, with their ontology translated to rules. Many people have several
  further names (`data.MANY_NAMES`), which an inverse functional e-mail address finds; heads, teachers, tutors and subjects with second names are there already.
- `cliques`: things with ten to hundreds of names, which explicit links, functional and inverse functional properties make equal.
- `plain`: the rules of `uobm` on data in which no two things are equal. Wanted: rewriting takes at most 1.2 times what axioms take.
- `cyc-K`: few things with K names each, types and classes over them, all in `triple`; with all K the same number of explicit facts, also for
  each thing. Wanted: the time of an update follows the explicit facts, not the facts in all names, which grow with K and its square.

Each shape is materialised with representatives (`rewrite`) and with axioms (`axiomatise`), and then updated: explicit facts are drawn at random, deleted and put
back, by B/F≈ (`bf-eq`), rematerialisation with representatives (`remat-eq`), B/F with axioms (`bf`), rematerialisation with axioms
(`remat`). All delete the same facts, and must have the same number of facts in all names afterwards, and as many as before when they are
put back. On `uobm` the number of facts is looked for at which B/F≈ and rematerialisation take the same time, by doubling; deletions of 25, 50, 75 and 100 %
of it follow.

Each algorithm on each shape is a process of its own, that does one update after the other on what it has materialised. What takes longer
than `--limit` seconds or more memory than `--memory` is given up, and told as such; what the process has done until then is kept.
"""
