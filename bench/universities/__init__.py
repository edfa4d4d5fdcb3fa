"""Universities as RDF: ``python -m bench.universities --kind lubm|uobm --universities N --seed S --out FILE.nt[.gz] --ontology FILE.ttl``.

Two kinds of data, both any number of universities long, written department by department, so that memory does not grow with their number:

- `lubm`: the shape of the Lehigh University Benchmark (Guo, Pan, Heflin: *LUBM: A benchmark for OWL knowledge base systems*, 2005), in its
  vocabulary and with its names for things, so that its ontology and its 14 queries fit. The numbers are those of its published profile.
  A university depends on the seed and its number alone.
- `uobm`: the shape of the University Ontology Benchmark (Ma et al.: *Towards a complete OWL ontology benchmark*, 2006): the same departments, in
  which people have sexes, majors, hobbies, friends and home towns, of which some are at other universities, so that the data of universities hang together;
  and some things go by two names, which the ontology finds to be equal. A university depends on the seed, its number and the number of universities.

`--ontology` writes an ontology for the data, in Turtle. That for `lubm` says what univ-bench says; that for `uobm` stays within OWL 2 RL, but for
the other halves of definitions by existential restrictions.

All that is drawn comes from `numpy.random.default_rng` with the seed and the numbers of the university and the department: the same options give the same bytes.
No triple is written twice.
"""

from __future__ import annotations

from bench.universities.ontologies import ONTOLOGIES
from bench.universities.vocabulary import RDF_TYPE, UB, UO
from bench.universities.writing import generate, opened, write

__all__ = ["ONTOLOGIES", "RDF_TYPE", "UB", "UO", "generate", "opened", "write"]
