"""Relations stored by schemes and on plain tables: ``python -m bench.storage [--small] [--only SHAPE …]``.

The shapes of tables 1 to 3 of *Optimised storage for Datalog reasoning*:

- `w1`: the closure of a random DAG, which is DAG-R.
- `skos-small`, `skos-large`: `broader` in the manner of DBpedia's categories, and its closure.
- `skos-500k`: the same of a thesaurus with 500,000 concepts and a million edges.
- `skos-rules`, `skos-rules-large`: the SKOS rules, with several closures and unions.
- `relations`, `relations-large`: closures, unions of them, and unions of unions. In the large one unions are stored as such, with up to 37 sources, of
  which closures have much in common: what queries take there is told, and is not among what is wanted.
- `roads`: one-way streets, whose closure has more than 800 million pairs. Plain tables are not tried.
- `graph …`: real graphs with known closures, from the folder that `--data` or the variable EVERMAT_DATA names. Plain tables are not tried.

Each is measured in some of three ways, with schemes (`auto`) and on plain tables (`plain`), where closures are computed by modules in both cases:

- `load` (table 2): it is materialised, as often as it takes little time.
- `updates` (table 1): all facts but some are materialised; the others are inserted in three parts, and deleted again.
- `queries` (table 3): pairs are looked for, and queries by one argument, with two atoms, and for all facts are asked.

Each of these is a process of its own. Numbers of facts, and the rows of all answers, must be the same with schemes and on plain tables. What takes
longer than `--limit` seconds or more memory than `--memory` is given up, and told as such; what the process has done until then is kept.
"""
