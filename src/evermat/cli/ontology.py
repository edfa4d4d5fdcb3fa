"""Programs with ontologies and RDF on the command line, and what is said about them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import evermat
from evermat.core import wrong_argument


def read_program(
    path: Path | None, *, rdf: bool = False, ontology: Sequence[Path] = (), **sources: Any
) -> evermat.Program:
    """The program of a command, which may be only an ontology, a rule set or data; prints its warnings.

    `rdf` says that there will be RDF data; `sources` are as for `evermat.Program.read`.
    """
    if path is not None:
        program = evermat.Program.read(path, ontology=ontology, **sources)
        if str(path) == "-" and any(io.medium == "stdin" for io in program.compiled.inputs):
            raise wrong_argument("facts and program cannot both come from standard input: put the program into a file")
    elif ontology or rdf or sources.get("entailment") or sources.get("equality"):
        name = str(ontology[0]) if ontology else "<rdf>"
        program = evermat.Program.parse("", name, ontology=ontology, **sources)
    else:
        raise wrong_argument("there is nothing to do: give a program, or `--rdf`, `--ontology` or `--entailment`")
    if program.notes:
        axioms = "1 axiom says" if len(program.notes) == 1 else f"{len(program.notes):,} axioms say"
        print(f"note: {axioms} more than rules can: `evermat translate` lists them", file=sys.stderr)
    for warning in program.warnings:
        print(warning.render(), file=sys.stderr, end="\n\n")
    return program


def report_skipped(skipped: Mapping[str, int]) -> None:
    """Prints how many statements of which files were left out."""
    for path, count in skipped.items():
        statements = "1 malformed statement was" if count == 1 else f"{count:,} malformed statements were"
        print(f"warning: {path}: {statements} left out", file=sys.stderr)


def report_left_out(path: Path | str, left_out: int) -> None:
    """Prints how many facts were left out of a file."""
    if left_out:
        facts = "1 fact is" if left_out == 1 else f"{left_out:,} facts are"
        print(f"warning: {path}: {facts} not RDF and left out (a literal as subject, …)", file=sys.stderr)
