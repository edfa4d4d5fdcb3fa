"""Facts as users have them (rows, Arrow, pandas, polars, Spark) into the form of the in-memory engine."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from evermat.columns import ArrowTables, Batch, Dictionary, Encodable, WrongTerm, encode_rows, hold_terms, values_at
from evermat.core import DataError, Problem, ask_for, check_stop, collected_errors, count_of, watched_each
from evermat.core import error_catalogue as errors
from evermat.language import (
    MalformedTermError,
    Program,
    Relation,
    Row,
    Term,
    Type,
    is_term,
    is_unicode,
    relation_names,
    term_of,
)
from evermat.runtime.facts.term_rows import held_columns, row_fault, statement, table_fault
from evermat.runtime.rows import is_value, suits
from evermat.runtime.streams.stream import Once

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


def encode_given(
    name: str, given: Any, program: Program, dictionary: Dictionary, stored: Callable[[Row], bool] | None = None
) -> Batch:
    """The facts given for a relation as a batch; see `encode_facts`.

    Rows may have texts that are no terms if they are `stored`: facts of a state that was written when this was not checked can be deleted.
    """
    if isinstance(given, Once):
        read: Batch = given.read(lambda facts: encode_given(name, facts, program, dictionary, stored), dictionary)
        return read
    relation = relation_of(name, program)
    if is_dataframe(given):
        return _from_spark(given, relation, dictionary)
    given = _as_rows_if_terms(given, relation)
    if is_tabular(given):
        return _from_arrow(given, relation, dictionary)
    rows = [_row(row, relation.arity) for row in watched_each(_rows(given, name))]
    if Type.TERM in relation.types and (batch := _encoded_terms(rows, relation, dictionary)) is not None:
        return batch
    return encode_rows(checked_rows(rows, relation, stored), relation.types, dictionary)


def table_of(name: str, given: Any, program: Program, stored: Callable[[Row], bool] | None = None) -> pa.Table:
    """The facts given for a relation, if they are no DataFrame, as an Arrow table of the relation; see `encode_facts`."""
    import pyarrow as pa

    from evermat.io import arrow_schema, conform, nullary

    relation = relation_of(name, program)
    given = _as_rows_if_terms(given, relation)
    if is_tabular(given):
        return conform(_arrow_table(given), relation, f"the facts for `{relation.name}`")
    rows = checked_rows(_rows(given, name), relation, stored)
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
    """The relation that facts are given for; raises an `UnknownRelationError` if there is none."""
    return relation_names(program)[name]


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

    def report(_: Relation, wrong: list[WrongTerm]) -> NoReturn:
        raise DataError(table_fault(relation, one) for one in wrong)

    name = f"the facts for `{relation.name}`"
    table = conform(_arrow_table(given), relation, name, encoded=True, check_terms=False)
    (batch,) = ArrowTables([table], report).batches(relation, dictionary)
    return batch


def _as_rows_if_terms(given: Any, relation: Relation) -> Any:
    """The rows of a frame of pandas with terms of a library, of which Arrow knows only the texts; anything else as it is."""
    if not _is_pandas(given):
        return given
    frame = given if given.ndim > 1 else given.to_frame("values")
    objects = (frame.iloc[:, i] for i, type_ in enumerate(frame.dtypes) if type_.kind == "O")
    if not any(map(is_term, {type(value): value for column in objects for value in watched_each(column)}.values())):
        return given
    names = [column.name for column in relation.columns]
    ordered = frame[names] if sorted(map(str, frame.columns)) == sorted(names) else frame
    return ordered.itertuples(index=False, name=None)


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


def checked_rows(
    rows: Iterable[Sequence[Any]], relation: Relation, stored: Callable[[Row], bool] | None = None, before: int = 0
) -> list[Row]:
    """The rows, terms in their one form, if each of them fits the relation; else raises a `DataError` with the first that do not.

    Rows that are `stored` may have texts for terms that are none. Rows are numbered from 1, after those that came `before`.
    """
    found = [_row(row, relation.arity) for row in watched_each(rows)]
    if Type.TERM not in relation.types:
        if all(suits(row, relation) for row in watched_each(found)):
            return found
    elif (held := _with_terms(found, relation)) is not None:
        return held
    kept: list[Row] = []
    problems: list[Problem] = []
    for number, row in enumerate(watched_each(found), before + 1):
        fact = _fact(row, number, relation, stored)
        if not isinstance(fact, Problem):
            kept.append(fact)
        elif len(problems) < ERRORS_SHOWN:
            problems.append(fact)
        else:
            break
    if problems:
        raise DataError(problems)
    return kept


def _encoded_terms(rows: list[Row], relation: Relation, dictionary: Dictionary) -> Batch | None:
    """The rows as a batch if all fit and all terms are texts, of which each new one is checked once; None if `checked_rows` has to look."""
    if not {relation.arity}.issuperset(map(len, rows)):
        return None
    for position, type_ in enumerate(relation.types):
        values = map(operator.itemgetter(position), rows)
        if type_ is Type.TERM:
            if not {str, Term}.issuperset(map(type, values)):
                return None
        elif not all(is_value(value, type_) for value in watched_each(values)):
            return None
    try:
        batch = encode_rows(rows, relation.types, dictionary)
    except UnicodeEncodeError:
        return None
    return None if hold_terms(batch, relation.types, dictionary) else batch


def _with_terms(rows: list[Row], relation: Relation) -> list[Row] | None:
    """The rows with terms in their one form; None if one does not fit."""
    if not rows:
        return rows
    if any(len(row) != relation.arity for row in watched_each(rows)):
        return None
    columns = [values_at(position, rows) for position in range(relation.arity)]
    for values, type_ in zip(columns, relation.types, strict=True):
        if type_ is not Type.TERM and not all(is_value(value, type_) for value in watched_each(values)):
            return None
    held = held_columns(columns, relation)
    if held is None or all(map(operator.is_, held, columns)):
        return rows if held is not None else None
    return list(zip(*held, strict=True))


def _row(row: Any, arity: int) -> tuple[Any, ...]:
    """A row as a tuple; anything that is not a sequence is the value of a single column."""
    if type(row) is tuple:
        return row
    is_row = isinstance(row, np.ndarray) or (isinstance(row, Sequence) and not isinstance(row, str | bytes))
    return tuple(row) if is_row else statement(row, arity) or (row,)


def _fact(row: Row, number: int, relation: Relation, stored: Callable[[Row], bool] | None) -> Row | Problem:
    """A row with terms in their one form, or what is wrong with it."""
    details: dict[str, Any] = {"row": number, "relation": relation.name}
    if len(row) != relation.arity:
        details |= {"found": count_of(len(row), "column"), "expected": relation.arity}
        return Problem(errors.ROW_COLUMNS, details)
    fact: list[Any] = []
    wrong: Problem | None = None
    for value, column in zip(row, relation.columns, strict=True):
        if column.type is Type.TERM:
            try:
                fact.append(term_of(value))
            except MalformedTermError as error:
                problem = row_fault(value, error.fault, number, column.name, relation)
                if stored is None or type(value) is not str or not is_unicode(value):
                    return problem
                wrong = wrong or problem
                fact.append(value)
        elif is_value(value, column.type):
            fact.append(value)
        else:
            details |= {"value": repr(value)[:60], "column": column.name, "type": column.type}
            help_ = "declare the column as `term`, or use a text: `str(…)`" * (
                column.type is Type.SYMBOL and is_term(value)
            )
            return Problem(errors.ROW_VALUE, details, help=help_)
    if wrong is not None and stored is not None and not stored(tuple(fact)):
        return wrong
    return tuple(fact)
