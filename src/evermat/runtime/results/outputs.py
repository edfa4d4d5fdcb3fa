"""The outputs of a program, and its triples as an RDF file: all of them are written, or none.

The driver writes files of this machine. What Spark writes (`IO=spark`, `IO=table` and `IO=jdbc`, and all files below a URI) its executors write,
see `evermat.spark.SparkOutputs`.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.core import (
    ArgumentError,
    Problem,
    ProgramError,
    Which,
    bad_location,
    check_output,
    check_session,
    check_type,
    is_uri,
    local_path,
    named_at,
    refuse_output,
    scheme_of,
    without_secrets,
)
from evermat.core import error_catalogue as errors
from evermat.io import Outputs
from evermat.language import Io, Program
from evermat.runtime.pin import Pin
from evermat.runtime.relation import Relation
from evermat.runtime.results.rdf_export import triples_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evermat.spark import SparkOutputs

_WHY = "it is a file in the output directory"
_SORTED = 5_000_000  # facts of an output that are sorted; more are written as they come
_ROOT = Path("/")
_PLACES = "give a path, or a URI such as `file:///folder` or `s3a://bucket/folder`"
_WHAT = {"spark": "a format of Spark", "table": "a table", "jdbc": "a database", "file": "a URI"}


def output_directory(value: Any) -> Path | str:
    """The output directory that a caller names: a path of this machine, or a URI that Spark knows.

    Raises:
        ArgumentError: it is the URI of another machine's file.
        TypeError: it is no path.
    """
    check_type("directory", value, (str, PathLike), "a path")
    scheme = scheme_of(value)
    if scheme is None or scheme == "file":
        return local_path("the output directory", "directory", value)
    if not scheme:
        raise bad_location("the output directory", str(value), "it has no scheme", _PLACES)
    return str(value)


def spark_outputs(program: Program, directory: Path | str) -> list[Io]:
    """The outputs that Spark writes."""
    return [io for io in program.outputs if _needs_spark(io, directory)]


def _needs_spark(io: Io, directory: Path | str) -> bool:
    below_uri = isinstance(directory, str) and not (io.path or "").startswith("/")
    return io.medium not in ("file", "stdout") or (io.medium == "file" and below_uri)


def check_outputs(
    program: Program, directory: Path | str, *, spark: bool = False, how: str = "use `--engine spark`"
) -> None:
    """Checks where `.output`s go, as far as that is known without Spark.

    Args:
        program: with the outputs.
        directory: that of `output_directory`.
        spark: whether there is Spark to write them.
        how: how to have Spark.

    Raises:
        SandboxError: one of them is a file that the sandbox does not allow, or no file.
        ProgramError: one of them needs Spark.
        ArgumentError: one of them cannot be where it is named.
    """
    if isinstance(directory, str) and not spark:
        why = "only Spark writes there"
        raise bad_location("the output directory", directory, why, f"{how}, or give a path or a `file:` URI")
    for io in program.outputs:
        with named_at(program.source, io.span):
            if io.medium in ("spark", "table", "jdbc"):
                target = dict(io.options)
                name = io.path or target.get("name") or target.get("dbtable") or io.relation.name
                refuse_output(name, f"it is written to {_WHAT[io.medium]}")
            elif io.medium == "file":
                uri = io.path if io.path and is_uri(io.path) else None
                check_output(Path(directory, io.path or io.relation.name) if uri is None else uri)
                if uri is not None:
                    raise _located(program, io, uri, _WHY, "give the path of a file")
        if _needs_spark(io, directory) and not spark:
            details = {"name": io.relation.name, "what": _WHAT[io.medium], "how": how}
            raise ProgramError(Problem(errors.OUTPUT_NEEDS_SPARK, details, program.source, io.span))
        if io.medium == "spark" and io.path is not None:
            _check_path(program, io, directory)


def _check_path(program: Program, io: Io, directory: Path | str) -> None:
    """Refuses a folder that would take the place of the output directory, or of a folder above it."""
    path = io.path or ""
    scheme = scheme_of(path)
    folder = local_path("an output", "path", path) if scheme == "file" else Path(path)
    if scheme in (None, "file"):
        home = directory if isinstance(directory, Path) else _ROOT / "…"
        target = (home / folder).resolve()
        if target in (home.resolve(), *home.resolve().parents):
            raise _located(program, io, path, "it is the output directory, or contains it", "name a folder in it")


def _located(program: Program, io: Io, uri: str, why: str, rule: str) -> ArgumentError:
    details = {"what": "an output", "uri": without_secrets(uri), "why": why, "rule": rule}
    return ArgumentError(Problem(errors.BAD_LOCATION, details, program.source, io.span))


def check_spark_outputs(program: Program, directory: Path | str, spark: SparkSession) -> None:
    """Checks all that can be known of the outputs that Spark writes, before there are any facts. The session ends with the command.

    Raises:
        DataError: one of them exists and must not, has other columns, or cannot hold the facts.
        ResourceError: one of them cannot be reached.
    """
    if wanted := spark_outputs(program, directory):
        from evermat.spark import SparkOutputs

        SparkOutputs(spark).check(SparkOutputs.targets(wanted, directory), ends=True)


def write_outputs(
    pin: Pin,
    directory: Path | str,
    *,
    spark: SparkSession | None = None,
    export: str | PathLike[str] | None = None,
    facts: Which = "all",
    representatives: bool = False,
    before_commit: Callable[[], None] = lambda: None,
    after_commit: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Writes all `.output`s of a version's program, prints its `.printsize`s, and writes an RDF file if one is wanted.

    See `api.Materialisation.write_outputs`, also for what is returned and raised.
    """
    if spark is not None:
        check_session("spark", spark)
    program, left_out = pin.program, {}
    session = spark or pin.engine.session
    how = "give the session: `write_outputs(…, spark=spark)`"
    check_outputs(program, directory, spark=session is not None, how=how)
    shown = {
        relation.name: Relation(relation.name, lambda: pin, expanded=not representatives)
        for relation in (*(io.relation for io in program.outputs), *program.sizes)
    }
    folder = directory if isinstance(directory, Path) else _ROOT  # what the driver writes beside a URI has whole paths
    with pin.engine.timer.during("write"), Outputs() as outputs:
        far, targets = _far(program, directory, session, outputs)
        for io in program.outputs:
            rows = shown[io.relation.name]
            target = targets.get(id(io))
            if far is not None and target is not None:
                far.write(target, lambda rows=rows: rows.to_spark(session), len(rows))  # type: ignore[misc]
                left_out[target.shown] = 0
                continue
            written = outputs.write(rows.to_arrow() if len(rows) <= _SORTED else rows.batches(), io, folder)
            left_out[io.path or io.relation.name] = written
        if export is not None:
            file = local_path("an RDF file", "export", export)
            graph = outputs.write_graph(file, triples_of(pin, facts, representatives=representatives))
            left_out[str(export)] = graph.left_out
        for relation in program.sizes:
            outputs.print_size(relation.name, len(shown[relation.name]))
        before_commit()
        if far is not None:
            far.publish()
        outputs.commit(after_commit)
    return left_out


def _far(
    program: Program, directory: Path | str, session: SparkSession | None, outputs: Outputs
) -> tuple[SparkOutputs | None, dict[int, Any]]:
    """What writes with Spark, and the checked targets by the identity of their `.output`s."""
    wanted = spark_outputs(program, directory)
    if not wanted or session is None:
        return None, {}
    from evermat.spark import SparkOutputs

    far = SparkOutputs(session, outputs)
    targets = SparkOutputs.targets(wanted, directory)
    far.check(targets)
    return far, {id(target.io): target for target in targets}
