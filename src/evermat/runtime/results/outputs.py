"""The outputs of a program, and its triples as an RDF file: all of them are written, or none."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from evermat.core import ArgumentError, Problem, Which, check_output, is_uri, local_path, named_at, without_secrets
from evermat.core import error_catalogue as errors
from evermat.io import Outputs
from evermat.language import Program
from evermat.runtime.pin import Pin
from evermat.runtime.relation import Relation
from evermat.runtime.results.rdf_export import triples_of

_WHY = "it is a file in the output directory"
_SORTED = 5_000_000  # facts of an output that are sorted; more are written as they come


def check_outputs(program: Program, directory: Path) -> None:
    """Checks the files that `.output`s name.

    Raises:
        SandboxError: one of them is a file that the sandbox does not allow.
        ArgumentError: one of them is a URI.
    """
    for io in program.outputs:
        if io.medium == "file":
            uri = io.path if io.path and is_uri(io.path) else None
            with named_at(program.source, io.span):
                check_output(directory / (io.path or io.relation.name) if uri is None else uri)
            if uri is not None:
                details = {
                    "what": "an output",
                    "uri": without_secrets(uri),
                    "why": _WHY,
                    "rule": "give the path of a file",
                }
                raise ArgumentError(Problem(errors.BAD_LOCATION, details, program.source, io.span))


def write_outputs(
    pin: Pin,
    directory: Path,
    *,
    export: str | PathLike[str] | None = None,
    facts: Which = "all",
    representatives: bool = False,
    before_commit: Callable[[], None] = lambda: None,
    after_commit: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Writes all `.output`s of a version's program, prints its `.printsize`s, and writes an RDF file if one is wanted.

    See `api.Materialisation.write_outputs`, also for what is returned and raised.
    """
    program, left_out = pin.program, {}
    check_outputs(program, directory)
    shown = {
        relation.name: Relation(relation.name, lambda: pin, expanded=not representatives)
        for relation in (*(io.relation for io in program.outputs), *program.sizes)
    }
    with pin.engine.timer.during("write"), Outputs() as outputs:
        for io in program.outputs:
            rows = shown[io.relation.name]
            written = outputs.write(rows.to_arrow() if len(rows) <= _SORTED else rows.batches(), io, directory)
            left_out[io.path or io.relation.name] = written
        if export is not None:
            file = local_path("an RDF file", "export", export)
            graph = outputs.write_graph(file, triples_of(pin, facts, representatives=representatives))
            left_out[str(export)] = graph.left_out
        for relation in program.sizes:
            outputs.print_size(relation.name, len(shown[relation.name]))
        before_commit()
        outputs.commit(after_commit)
    return left_out
