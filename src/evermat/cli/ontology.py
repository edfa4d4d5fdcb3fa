"""Programs with ontologies and RDF on the command line, and what is said about them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evermat
from evermat.core import wrong_argument

if TYPE_CHECKING:
    from evermat.core import Problem

_GROUPS = 10  # groups of notes that a run shows


def read_program(
    path: Path | None, *, rdf: bool = False, ontology: Sequence[Path] = (), verbose: bool = False, **sources: Any
) -> evermat.Program:
    """The program of a command, which may be only an ontology, a rule set or data; prints its warnings.

    `rdf` says that there will be RDF data; `sources` are as for `evermat.Program.read`. All notes are printed if `verbose`, else groups of them.
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
        print(f"note: {axioms} more than rules can", file=sys.stderr)
        report_notes(program, verbose=verbose, most=_GROUPS)
    report_warnings(program.warnings)
    return program


def report_warnings(warnings: Iterable[Problem]) -> None:
    """Prints warnings with their places."""
    for warning in warnings:
        print(warning.render(), file=sys.stderr, end="\n\n")


def report_notes(found: evermat.Program | evermat.Translation, *, verbose: bool, most: int | None = None) -> None:
    """Prints all notes, or groups of them; of many groups only the first, which are the largest."""
    notes, groups = found.notes, found.note_groups
    shown = notes if verbose else groups[:most]
    for one in shown:
        print(f"note: {one}", file=sys.stderr)
    if not verbose and len(groups) > len(shown):
        rest = sum(map(len, groups[len(shown) :]))
        print(f"note: and {rest:,} more, for other reasons", file=sys.stderr)
    if not verbose and len(notes) > len(groups):
        print("note: `--verbose` lists all of them", file=sys.stderr)


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
