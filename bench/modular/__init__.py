"""Closures by modules and instance by instance: ``python -m bench.modular [--quick] [--only PART …]``.

The shapes of tables 1 and 2 of *Modular materialisation of Datalog programs*, in four parts:

- `materialisation`: Mat-Mod (`modular`) and Mat (`seminaive`) in turns, each as often as it takes little time. Told is the run with the least
  CPU, that of the phase `reason`; both must find the same numbers of facts.
- `duckdb`: w1, w2 and w3, written with the nonlinear rule for us and as a linear recursive query for DuckDB, files to files.
- `updates`: facts are drawn from all explicit ones, deleted and put back by every algorithm in turns, so that what disturbs the machine disturbs
  all; afterwards there must be as many facts as before. Told are CPU seconds of whole calls of `update`, the average of all samples but the
  first, which makes indexes. Then a quarter of all facts is deleted at once.
- `graphs`: real graphs with known closures, from the folder that `--data` or the variable EVERMAT_DATA names.

What takes longer than `--limit` seconds is given up, and told as `> limit`.
"""
