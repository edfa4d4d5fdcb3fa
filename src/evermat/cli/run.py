"""`evermat run`: read, materialise, write."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat import errors
from evermat.algebra import Counters
from evermat.cli.progress import showing_progress
from evermat.cli.signals import check_signals, say_when_stopped
from evermat.columns.run import Limits
from evermat.errors import DataError, Problem, ResourceError
from evermat.files import Outputs, read_relation
from evermat.materialisation import Materialisation, materialise_program
from evermat.phases import Phases
from evermat.program.model import Program

if TYPE_CHECKING:
    import pyarrow as pa


def run_program(
    program: Program,
    facts: Path,
    output: Path,
    limits: Limits,
    phases: Phases,
    stats: Path | None,
    state: Path | None = None,
) -> Materialisation:
    """Does the whole job. Nothing is written unless everything went well.

    What is kept in a state is going to be updated: its derivations are counted.
    """
    with phases.during("read"):
        given = read_inputs(program, facts)
    with showing_progress() as show, announcing_compilation():

        def progress(text: str) -> None:
            check_signals()
            show(text)

        counters = Counters.NONE if state is None else Counters.BOTH
        materialised = materialise_program(
            program, given, limits=limits, counters=counters, progress=progress, phases=phases
        )
    check_signals()
    for place, count in materialised.undefined():
        bindings = "1 binding was" if count == 1 else f"{count:,} bindings were"
        print(f"warning: {place}: {bindings} dropped because something had no value", file=sys.stderr)
    with phases.during("write"), Outputs() as outputs:
        for io in program.outputs:
            outputs.write(materialised[io.relation.name].to_arrow(), io, output)
        for relation in program.sizes:
            outputs.print_size(relation.name, len(materialised[relation.name]))
        if state is not None:
            materialised.save(state)
            say_when_stopped(f"the state is at version {materialised.version}")
            materialised.close()
        outputs.commit()
    if stats is not None:
        write_stats(materialised.stats, stats)
    return materialised


def read_inputs(program: Program, folder: Path) -> dict[str, pa.Table]:
    """The files of all inputs; what is wrong with any of them is reported together."""
    import pyarrow as pa

    found: dict[str, list[pa.Table]] = {}
    problems: list[Problem] = []
    for io in program.inputs:
        try:
            found.setdefault(io.relation.name, []).append(read_relation(io, folder))
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return {name: tables[0] if len(tables) == 1 else pa.concat_tables(tables) for name, tables in found.items()}


def write_stats(stats: dict[str, Any], path: Path, rest: str = "all other outputs are complete") -> None:
    """Writes the statistics as one JSON object, whole or not at all; a device or pipe is filled, not replaced."""
    target = Path(os.path.realpath(path))
    special = target.exists() and not target.is_file()
    part = target if special else target.parent / f".{target.name}.part"
    try:
        part.write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
        if not special:
            part.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        details = {"path": path, "why": error.strerror or str(error), "rest": rest}
        raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from None
    finally:
        if not special:
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def announcing_compilation() -> Iterator[None]:
    """The first runs on a machine compile the kernels that they need; say so, as it takes a while."""
    from evermat.columns.jit import CACHE_FOLDER, watching_compilation

    said = False

    def say() -> None:
        nonlocal said
        if not said:
            said = True
            text = "compiling kernels for this machine; later runs start at once"
            if CACHE_FOLDER is None:
                text = "compiling kernels: there is no folder to keep them in (set NUMBA_CACHE_DIR)"
            print(text, file=sys.stderr)

    with watching_compilation(say):
        yield
