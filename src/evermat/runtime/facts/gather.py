"""The explicit facts of a materialisation with Spark, before it is decided where to reason: all are counted, and few are held.

What is read once, such as a generator, an Arrow stream or a DataFrame, becomes tables or files, so that it can be read again where it does not fit.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from evermat.core import DataError, Problem, check_stop, collected_errors
from evermat.language import Program, Relation, Row
from evermat.runtime.facts.ingest import ERRORS_SHOWN, checked_rows, is_dataframe, is_tabular, relation_of, table_of
from evermat.runtime.facts.inputs import FactSources
from evermat.runtime.streams.stream import Once
from evermat.spark import GIVEN, Intake, checked_pieces, run_named

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

_PIECE = 1 << 16  # rows that are held at a time
_SAMPLED = 1000  # rows of which texts are measured


def gather(
    program: Program,
    sources: FactSources,
    session: SparkSession,
    intake: Intake,
    progress: Callable[[str], None] | None,
) -> dict[str, Any]:
    """All facts by relation; what they take is known to the intake.

    Raises:
        DataError: with everything that is wrong with DataFrames and streams of facts, or else with files.
    """
    given: dict[str, Any] = {}
    with collected_errors() as collecting:
        for name, facts in sources.facts.items():
            with collecting():
                given[name] = _taken_in(name, facts, program, intake, progress)
    for name, rows in program.facts.items():
        intake.note(name, len(rows), 0, GIVEN)
    found = sources.with_facts(given).read_on_spark(program, session, intake, progress)
    return {name: facts.kept() if hasattr(facts, "kept") else facts for name, facts in found.items()}


def _taken_in(name: str, given: Any, program: Program, intake: Intake, progress: Callable[[str], None] | None) -> Any:
    """The facts given for a relation, in a form that can be read twice."""
    if isinstance(given, Once):
        given = given.given
    if is_dataframe(given):
        relation, what = relation_of(name, program), f"read the facts for {name}"
        report = None if progress is None else lambda text: progress(f"{what}: {text}")
        path, spark = intake.scratch.path, given.sparkSession
        return intake.read(
            given,
            relation,
            f"the facts for `{name}`",
            lambda action: run_named(spark, what, action, path, progress=report),
        )
    if is_arriving(given) and (relation := relation_of(name, program)).columns:
        return intake.spool(name, arriving_tables(name, given, relation, program))
    if isinstance(given, Collection) or is_tabular(given):
        intake.note(name, len(given) if hasattr(given, "__len__") else 0, _bytes_of(given), GIVEN)
    return given


def is_arriving(given: Any) -> bool:
    """Whether the number of facts shows only when they have been read, which is possible once."""
    return (isinstance(given, Iterable) and not hasattr(given, "__len__")) or _is_stream(given)


def _is_stream(given: Any) -> bool:
    return hasattr(given, "__arrow_c_stream__") and not hasattr(given, "__len__")


def arriving_tables(
    name: str, given: Any, relation: Relation, program: Program, stored: Callable[[Row], bool] | None = None
) -> Iterator[pa.Table]:
    """The facts of an iterator or an Arrow stream as tables of their relation, some rows at a time; see `checked_rows` for those `stored`.

    Raises:
        DataError: with the first rows that do not fit.
    """
    if _is_stream(given):
        yield from checked_pieces(_streamed(given), relation, f"the facts for `{name}`")
        return
    rows, before = iter(given), 0
    problems: list[Problem] = []
    while piece := list(islice(rows, _PIECE)):
        check_stop()
        try:
            fitting = checked_rows(piece, relation, stored, before)
        except DataError as error:
            problems += error.problems
            if len(problems) >= ERRORS_SHOWN:
                break
        else:
            if not problems:
                yield table_of(name, fitting, program, stored)
        before += len(piece)
    if problems:
        raise DataError(problems[:ERRORS_SHOWN])


def _streamed(given: Any) -> Iterator[pa.Table]:
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(given)
    yield reader.schema.empty_table()  # also without rows its columns have to fit
    for batch in reader:
        yield pa.Table.from_batches([batch])


def _bytes_of(given: Any) -> int:
    """The bytes of facts that this process holds, about; of rows those of their texts."""
    nbytes = getattr(given, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    if is_tabular(given) or isinstance(given, str | bytes | Mapping):
        return 0
    rows = list(islice(given, _SAMPLED))
    texts = sum(
        sys.getsizeof(value) for row in rows if isinstance(row, tuple | list) for value in row if isinstance(value, str)
    )
    return texts * len(given) // max(len(rows), 1)
