"""RDF and ontologies on the command line: `run --rdf --ontology --export`, `translate`, `export`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import evermat
from evermat.core import Problem, ProgramError, Source
from evermat.core import error_catalogue as errors
from evermat.io import GraphFiles, RdfOptions
from evermat.language import read_source
from evermat.runtime.compose import Assembled, Knowledge, assemble

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.owl import Note


@dataclass(frozen=True)
class Graphs:
    """The triples that a run reads and writes besides the inputs and outputs of its program."""

    triples: pa.Table | None = None  # of the ontologies
    files: GraphFiles = field(default_factory=GraphFiles)
    export: Path | None = None
    facts: str = "all"
    representatives: bool = False  # whether outputs are to show only those

    @classmethod
    def of(
        cls,
        made: Assembled,
        files: Sequence[str],
        base: str | None,
        skip: bool,
        export: Path | None,
        facts: str,
        representatives: bool,
    ) -> Self:
        """As the command line says."""
        options = RdfOptions(base=base, skip=skip)
        read = GraphFiles(tuple(files), options, apart=made.triples is not None)
        return cls(made.triples, read, export, facts, representatives)


NO_GRAPHS = Graphs()


def assembled(path: Path | None, knowledge: Knowledge) -> Assembled:
    """The program of a run, which may be nothing but an ontology, a rule set or data."""
    if path is None and not knowledge:
        what = "there is nothing to do: give a program, or `--rdf`, `--ontology` or `--entailment`"
        raise ProgramError(Problem(errors.COMMAND_LINE, {"what": what}))
    name = str(knowledge.ontology[0]) if knowledge.ontology else "<rdf>"
    made = assemble(Source(name, "") if path is None else read_source(path), knowledge)
    if made.notes:
        axioms = "1 axiom says" if len(made.notes) == 1 else f"{len(made.notes):,} axioms say"
        print(f"note: {axioms} more than rules can: `evermat translate` lists them", file=sys.stderr)
    return made


def tell_skipped(skipped: Mapping[str, int]) -> None:
    """Says how many statements of which files were left out."""
    for path, count in skipped.items():
        statements = "1 malformed statement was" if count == 1 else f"{count:,} malformed statements were"
        print(f"warning: {path}: {statements} left out", file=sys.stderr)


def tell_left_out(path: Path | str, left_out: int) -> None:
    """Says how many facts were left out of a file."""
    if left_out:
        facts = "1 fact is" if left_out == 1 else f"{left_out:,} facts are"
        print(f"warning: {path}: {facts} no RDF and left out (a literal as subject, …)", file=sys.stderr)


def export_state(state: Path, file: Path, facts: str, version: int | None, *, representatives: bool) -> None:
    """Writes the triples of a version of a state."""
    with evermat.open(state, version) as opened:
        written = opened.export(file, facts, representatives=representatives)
    tell_left_out(file, written.left_out)
    print(f"{written.written:,} triples", file=sys.stderr)


def translate_ontologies(
    ontology: Sequence[Path], output: Path | None, base: str | None, *, ignore_imports: bool
) -> None:
    """Prints the rules of ontologies, and on standard error what rules cannot say."""
    from evermat.owl import translate

    translation = translate(ontology, base=base, imports="ignore" if ignore_imports else "require")
    text = translation.text(facts=True)
    if output is None:
        sys.stdout.write(text)
    else:
        from evermat.io import Outputs

        with Outputs() as outputs:
            outputs.write_file(output, text.encode())
            outputs.commit()
    for note in translation.notes:
        print(_told(note), file=sys.stderr)


def _told(note: Note) -> str:
    rest = "" if note.translated else "; nothing of it is translated"
    return f"note: `{note.axiom}`: {note.why}{rest}"
