"""Facts as users have them (rows, Arrow, pandas, polars, Spark) into the form of the in-memory engine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns import ArrowTables, Batch, Dictionary, Encodable, encode_rows
from evermat.core import DataError, Problem, ask_for, check_stop, collected_errors, count_of, did_you_mean, watched_each
from evermat.core import error_catalogue as errors
from evermat.language import Program, Relation, Row
from evermat.runtime.rows import is_value, suits
from evermat.runtime.stream import Once

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.io import FileChanges, RdfOptions

ERRORS_SHOWN = 10  # of one relation
_SAMPLED = 1000  # rows of a frame from which its size as a table is guessed
_COPIES = 2  # of a frame: what becomes of it when it fits its relation


def encode_facts(name: str, given: Any, program: Program, dictionary: Dictionary) -> Iterator[Batch]:
    """Batches of the facts given for a relation and of those in the program's text.

    Raises:
        DataError: there is no such relation, or something does not fit it.
        TypeError: what is given are no facts at all.
    """
    if isinstance(given, Encodable):
        yield from given.batches(program.relations[name], dictionary)
    elif given is not None:
        yield encode_given(name, given, program, dictionary)
    if rows := program.facts.get(name):
        yield encode_rows(rows, program.relations[name].types, dictionary)


def encode_given(name: str, given: Any, program: Program, dictionary: Dictionary) -> Batch:
    """The facts given for a relation as a batch; see `encode_facts`."""
    if isinstance(given, Once):
        batch: Batch = given.read(lambda facts: encode_given(name, facts, program, dictionary), dictionary)
        return batch
    relation = relation_of(name, program)
    if is_dataframe(given):
        return _from_spark(given, relation, dictionary)
    if is_tabular(given):
        return _from_arrow(given, relation, dictionary)
    return encode_rows(checked_rows(_rows(given, name), relation), relation.types, dictionary)


def table_of(name: str, given: Any, program: Program) -> pa.Table:
    """The facts given for a relation, if they are no DataFrame, as an Arrow table of the relation; see `encode_facts`."""
    import pyarrow as pa

    from evermat.io import arrow_schema, conform, nullary

    relation = relation_of(name, program)
    if is_tabular(given):
        return conform(_arrow_table(given), relation, f"the facts for `{relation.name}`")
    rows = checked_rows(_rows(given, name), relation)
    if not relation.columns:
        return nullary(present=bool(rows))
    schema = arrow_schema(relation)
    columns = [
        pa.array([row[i] for row in watched_each(rows)], field.type, from_pandas=False)
        for i, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def read_change_files(
    updates: Iterable[Sequence[Path]], program: Program, options: RdfOptions, skipped: dict[str, int] | None = None
) -> list[FileChanges]:
    """The changes in the files of each update; nothing is returned unless all of them are right.

    Malformed statements that were left out are counted in `skipped`, by file.

    Raises:
        DataError: with everything that is wrong with any of them.
    """
    from evermat.io import read_update

    found: list[FileChanges] = []
    with collected_errors() as collecting:
        for paths in updates:
            check_stop()  # reading may wait for long: a pipe, a terminal
            with collecting():
                found.append(read_update(paths, program, options, skipped))
    return found


def relation_of(name: str, program: Program) -> Relation:
    """The relation that facts are given for; raises a `DataError` if there is none."""
    relation = program.relations.get(name)
    if relation is None or relation.hidden:
        visible = [n for n, r in program.relations.items() if not r.hidden]
        raise DataError(Problem(errors.NO_SUCH_RELATION, {"name": name}, help=did_you_mean(name, visible)))
    return relation


def is_tabular(given: Any) -> bool:
    """Whether facts are in columns: Arrow, and whatever speaks its interface, or pandas."""
    return hasattr(given, "__arrow_c_stream__") or _is_pandas(given)


def _rows(given: Any, name: str) -> Iterable[Sequence[Any]]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(
            f"the facts for `{name}` are of type {type(given).__name__}: give rows, Arrow, pandas, polars or a Spark DataFrame"
        )
    return given


def _is_pandas(given: Any) -> bool:
    """Whether it is a frame or a series of pandas; not all versions of these speak Arrow's interface themselves."""
    pandas = sys.modules.get("pandas")  # another thread may be importing it right now: then there is no frame yet
    return isinstance(given, (getattr(pandas, "DataFrame", ()), getattr(pandas, "Series", ())))


def is_dataframe(given: Any) -> bool:
    """Whether it is a DataFrame of Spark; then pyspark is loaded already."""
    if "pyspark" not in sys.modules:
        return False
    from evermat.spark import is_dataframe as is_frame

    return is_frame(given)


def _from_spark(given: Any, relation: Relation, dictionary: Dictionary) -> Batch:
    from evermat.spark import Scratch, frame_tables

    with Scratch() as scratch:
        tables = ArrowTables(list(frame_tables(given, relation, scratch, f"the facts for `{relation.name}`")))
        batches = list(tables.batches(relation, dictionary))
    return np.concatenate([np.empty((relation.arity, 0), np.int64), *batches], axis=1)


def _from_arrow(given: Any, relation: Relation, dictionary: Dictionary) -> Batch:
    """A batch from anything that speaks Arrow's PyCapsule interface."""
    from evermat.io import conform

    table = conform(_arrow_table(given), relation, f"the facts for `{relation.name}`")
    (batch,) = ArrowTables([table]).batches(relation, dictionary)
    return batch


def _arrow_table(given: Any) -> pa.Table:
    """The table, or the table of one column; the index of a pandas frame is not a column."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    if _is_pandas(given):
        frame = given if given.ndim > 1 else given.to_frame("values")
        step = max(len(frame) // _SAMPLED, 1)
        ask_for(_COPIES * step * pa.Table.from_pandas(frame.iloc[::step], preserve_index=False).nbytes)
        return pa.Table.from_pandas(frame, preserve_index=False)
    try:
        return pa.RecordBatchReader.from_stream(given).read_all()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.table({"values": pa.chunked_array(given)})


def checked_rows(rows: Iterable[Sequence[Any]], relation: Relation, before: int = 0) -> list[Row]:
    """The rows, if each of them fits the relation; else raises a `DataError` with the first of those that do not.

    Rows are numbered from 1, after those that came `before`.
    """
    found = [_row(row) for row in watched_each(rows)]
    if all(suits(row, relation) for row in watched_each(found)):
        return found
    problems = []
    for number, row in enumerate(watched_each(found), before + 1):
        if (problem := _misfit(row, number, relation)) is not None:
            problems.append(problem)
            if len(problems) == ERRORS_SHOWN:
                break
    raise DataError(problems)


def _row(row: Any) -> tuple[Any, ...]:
    """A row as a tuple; anything that is not a sequence is the value of a single column."""
    is_row = isinstance(row, np.ndarray) or (isinstance(row, Sequence) and not isinstance(row, str | bytes))
    return tuple(row) if is_row else (row,)


def _misfit(row: tuple[Any, ...], number: int, relation: Relation) -> Problem | None:
    details: dict[str, Any] = {"row": number, "relation": relation.name}
    if len(row) != relation.arity:
        details |= {"found": count_of(len(row), "column"), "expected": relation.arity}
        return Problem(errors.ROW_COLUMNS, details)
    for value, column in zip(row, relation.columns, strict=True):
        if not is_value(value, column.type):
            details |= {"value": repr(value)[:60], "column": column.name, "type": column.type}
            return Problem(errors.ROW_VALUE, details)
    return None
