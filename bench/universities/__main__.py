"""The command; the package tells what it does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import universities
from bench.universities import ONTOLOGIES, generate


def main() -> None:
    """Writes what is asked for."""
    options = argparse.ArgumentParser(
        prog="python -m bench.universities",
        description=universities.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--kind", choices=list(ONTOLOGIES), default="lubm")
    options.add_argument("--universities", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="a file of N-Triples, .nt or .nt.gz; - is the standard output")
    options.add_argument("--ontology", type=Path, help="a file for the ontology, in Turtle")
    chosen = options.parse_args()
    if chosen.universities < 1 or chosen.seed < 0:
        options.error("there is at least one university, and no seed below 0")
    if chosen.out is None and chosen.ontology is None:
        options.error("--out or --ontology says what to write")
    if chosen.ontology is not None:
        chosen.ontology.write_text(ONTOLOGIES[chosen.kind](), encoding="utf-8")
    if chosen.out is not None:
        triples = generate(chosen.kind, chosen.universities, chosen.out, seed=chosen.seed)
        print(f"{triples:,} triples", file=sys.stderr)


if __name__ == "__main__":
    main()
