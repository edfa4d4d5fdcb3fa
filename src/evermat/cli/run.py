"""`evermat run`: read, materialise, write."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.algebra import Counters
from evermat.api.materialisation import Facts, Materialisation, materialise_program
from evermat.cli.block_pandas import allow_pandas
from evermat.cli.ontology import NO_GRAPHS, Graphs, tell_left_out, tell_skipped
from evermat.cli.progress import showing_progress
from evermat.cli.signals import check_signals, say_when_stopped
from evermat.columns.kernels.warm_up import prepare as prepare_kernels
from evermat.columns.storage.encoding import Tables
from evermat.core import DataError, PhaseTimer, Problem, ProgramError, ResourceError
from evermat.core import error_catalogue as errors
from evermat.engine.run import Limits
from evermat.io import Outputs, read_relation
from evermat.language import Program, Relation

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_SORTED = 5_000_000  # facts of an output that are sorted; more are written as they come


@dataclass(frozen=True)
class SparkOptions:
    """How the command line's SparkSession is made."""

    master: str | None = None
    memory: int = 1 << 30  # bytes, for columns and heap together
    conf: Mapping[str, str] = field(default_factory=dict)
    scratch: Path | None = None
    place: str = "auto"


@dataclass(frozen=True)
class Ways:
    """How consequences are computed, and how relations are stored."""

    algorithm: str = "auto"
    schemes: str = "auto"


def run_program(
    program: Program,
    facts: str,
    output: Path,
    limits: Limits,
    phases: PhaseTimer,
    stats: Path | None,
    state: Path | None = None,
    spark: SparkOptions | None = None,
    ways: Ways = Ways(),
    graphs: Graphs = NO_GRAPHS,
) -> None:
    """Does the whole job. Nothing is written unless everything went well.

    What is kept in a state is going to be updated: its derivations are counted.
    """
    with ExitStack() as stack:
        show = stack.enter_context(showing_progress())
        stack.enter_context(announcing_compilation())

        def progress(text: str) -> None:
            check_signals()
            show(text)

        counters = Counters.NONE if state is None else Counters.BOTH
        if spark is None:
            with phases.during("read"):
                given = read_inputs(program, facts, graphs)
            materialised = materialise_program(
                program,
                given,
                limits=limits,
                counters=counters,
                progress=progress,
                phases=phases,
                algorithm=ways.algorithm,
                schemes=ways.schemes,
            )
        else:
            session = stack.enter_context(spark_session(program.source.name, spark, phases, progress))
            materialised = _materialise_on_spark(
                program, facts, session, spark, limits, counters, ways, progress, phases, graphs
            )
            if not materialised.on_cluster:
                stack.close()  # Spark has done its part
        stack.callback(materialised.close)
        materialised.skipped = graphs.files.skipped
        check_signals()
        for place, count in materialised.undefined():
            bindings = "1 binding was" if count == 1 else f"{count:,} bindings were"
            print(f"warning: {place}: {bindings} dropped because something had no value", file=sys.stderr)
        tell_skipped(materialised.skipped)
        _write(program, materialised, output, phases, state, graphs)
        if stats is not None:
            write_stats(materialised.stats, stats)


def _write(
    program: Program,
    materialised: Materialisation,
    output: Path,
    phases: PhaseTimer,
    state: Path | None,
    graphs: Graphs,
) -> None:
    """Writes all outputs, and the state if there is to be one."""
    with phases.during("write"), Outputs() as outputs:
        for io in program.outputs:
            facts = _shown(materialised, io.relation, graphs)
            left_out = outputs.write(facts.to_arrow() if len(facts) <= _SORTED else facts.batches(), io, output)
            tell_left_out(io.path or io.relation.name, left_out)
        if graphs.export is not None:
            written = outputs.write_graph(
                graphs.export, materialised.triples(graphs.facts, representatives=graphs.representatives)
            )
            tell_left_out(graphs.export, written.left_out)
        for relation in program.sizes:
            outputs.print_size(relation.name, len(_shown(materialised, relation, graphs)))
        if state is not None:
            materialised.save(state)
            say_when_stopped(f"the state is at version {materialised.version}")
        outputs.commit()


def _shown(materialised: Materialisation, relation: Relation, graphs: Graphs) -> Facts:
    """The facts of a relation as they are to be written."""
    facts = materialised[relation.name]
    return facts.representatives if graphs.representatives else facts


def _materialise_on_spark(
    program: Program,
    folder: str,
    spark: SparkSession,
    options: SparkOptions,
    limits: Limits,
    counters: Counters,
    ways: Ways,
    progress: Callable[[str], None],
    phases: PhaseTimer,
    graphs: Graphs,
) -> Materialisation:
    """Reads the inputs as a job of Spark, and derives all consequences where they fit."""
    from evermat.runtime.placement import materialise_on_spark
    from evermat.spark.input import plan
    from evermat.spark.scratch import Scratch

    spread = options.place in ("pivot", "cluster")
    if spread:
        allow_pandas()
    with Scratch(options.scratch) as scratch:
        with phases.during("read"):
            watch = plan.Watch(progress, check_signals)
            given = plan.read_inputs(
                spark, program, folder, scratch, watch, spread=spread, graphs=graphs.files, triples=graphs.triples
            )
        return materialise_on_spark(
            program,
            given,
            spark,
            place=options.place,
            scratch=options.scratch,
            limits=limits,
            counters=counters,
            algorithm=ways.algorithm,
            schemes=ways.schemes,
            progress=progress,
            check=check_signals,
            before_cluster=allow_pandas,
            phases=phases,
        )


@contextmanager
def spark_session(
    name: str, options: SparkOptions, phases: PhaseTimer, progress: Callable[[str], None]
) -> Iterator[SparkSession]:
    """A session for the block, called like this in Spark's user interface."""
    progress("starting Spark")
    prepare = partial(prepare_kernels, closures=True)
    threading.Thread(target=prepare, name="evermat-kernels", daemon=True).start()  # meanwhile
    with ExitStack() as stack:
        with phases.during("start"):
            from evermat.spark.launch.session import session, stores_classes

            made = session(master=options.master, memory=options.memory, conf=options.conf, name=name)
            spark = stack.enter_context(made)
        yield spark
        if stores_classes():
            print("storing Spark's classes for this machine; later runs start faster", file=sys.stderr)


def read_inputs(program: Program, folder: str | Path, graphs: Graphs = NO_GRAPHS) -> dict[str, Tables]:
    """The files of all inputs, and RDF files; what is wrong with any of them is reported together."""
    found: dict[str, list[pa.Table]] = {}
    problems: list[Problem] = []
    local = [io for io in program.inputs if "://" not in (io.path or str(folder))]
    files = graphs.files.with_inputs(local, Path(folder))
    for io in program.inputs:
        needs = {"table": "a table", "jdbc": "a database"}.get(io.medium)
        if io.medium == "file" and "://" in (io.path or str(folder)):
            needs = "a URI"
        if needs is not None:
            details = {"name": io.relation.name, "what": needs}
            raise ProgramError(Problem(errors.NEEDS_SPARK, details, program.source, io.span))
        try:
            table = read_relation(io, Path(folder), files.options, files.blanks, files.skipped)
            found.setdefault(io.relation.name, []).append(table)
        except DataError as error:
            problems += error.problems
    try:
        for name, table in files.facts(program.relations, graphs.triples):
            found.setdefault(name, []).append(table)
    except DataError as error:
        problems += error.problems
    if problems:
        raise DataError(problems)
    return {name: Tables(tables) for name, tables in found.items()}


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
    from evermat.columns.kernels.jit import CACHE_FOLDER, watching_compilation

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
