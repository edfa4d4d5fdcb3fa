"""Values as 64-bit integers: symbols and terms by their id, floats and unsigned numbers by their bits.

Equality of values is equality of integers; anything else asks the type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from evermat.columns.storage.arrays import Batch, Numbers
from evermat.columns.storage.dictionary import Dictionary
from evermat.core import ask_for, check_stop
from evermat.language import MAX_NUMBER, Relation, TermFault, Type, Value

if TYPE_CHECKING:
    import pyarrow as pa


_BY_ID = (Type.SYMBOL, Type.TERM)
_PIECE = 1 << 12  # rows that are encoded at a time
_SHOWN = 10  # wrong values that are looked for
_KINDS: dict[Type, Any] = {Type.FLOAT: np.float64, Type.UNSIGNED: np.uint64}
_ARROW_KINDS = {"float64": "double", "uint64": "uint64", "int64": "int64"}


class Encodable(ABC):
    """Facts of a relation that were read and checked, and that are yet to be encoded."""

    @abstractmethod
    def batches(self, relation: Relation, dictionary: Dictionary) -> Iterator[Batch]:
        """The facts, encoded; can be asked for once."""


class ArrowTables(Encodable):
    """The facts of a relation in Arrow tables with its columns.

    Terms are taken as they are, unless there is `wrong`: then they are checked, and it is called for those that are none, and raises an
    error that says where they stand.
    """

    def __init__(
        self, tables: Sequence[pa.Table], wrong: Callable[[Relation, list[WrongTerm]], NoReturn] | None = None
    ) -> None:
        self.tables, self._wrong = tables, wrong

    def with_table(self, table: pa.Table) -> ArrowTables:
        return ArrowTables([*self.tables, table], self._wrong)

    def batches(self, relation: Relation, dictionary: Dictionary) -> Iterator[Batch]:
        for table in self.tables:
            check_stop()
            ask_for(8 * relation.arity * table.num_rows)
            batch = encode_table(table, relation, dictionary)
            if self._wrong is not None and (wrong := hold_terms(batch, relation.types, dictionary)):
                self._wrong(relation, wrong)
            yield batch
        dictionary.forget_arrow()


class WrongTerm(NamedTuple):
    """A text that is not a term, and where it stands; row and column are counted from 0."""

    row: int
    column: int
    fault: TermFault


def hold_terms(batch: Batch, types: Sequence[Type], dictionary: Dictionary) -> list[WrongTerm]:
    """Brings the terms of a batch to their one form, or returns the first texts that are none, in the order of their rows."""
    wrong: list[WrongTerm] = []
    for position, type_ in enumerate(types):
        if type_ is not Type.TERM:
            continue
        ids = batch[position].astype(np.int32)
        terms, faults = dictionary.as_terms(ids)
        if terms is not ids:
            batch[position] = terms
        if faults:
            rows = np.flatnonzero(np.isin(batch[position], list(faults)))[:_SHOWN].tolist()
            wrong += [WrongTerm(row, position, faults[int(batch[position, row])]) for row in rows]
    return sorted(wrong)[:_SHOWN]


def encode(value: Value, type_: Type, dictionary: Dictionary) -> int:
    """One value as an integer."""
    if type_ in _BY_ID:
        return int(dictionary.encode([str(value)])[0])
    if type_ is Type.FLOAT:
        return int(np.float64(value).view(np.int64))
    if type_ is Type.UNSIGNED and int(value) > MAX_NUMBER:
        return int(value) - 2**64
    return int(value)


def encode_rows(rows: Iterable[Sequence[Value]], types: Sequence[Type], dictionary: Dictionary) -> Batch:
    """Rows of values of the right types, as a batch [arity, n]."""
    listed = rows if isinstance(rows, list) else list(rows)
    ask_for(8 * len(types) * len(listed))
    out = np.empty((len(types), len(listed)), np.int64)
    for first in range(0, len(listed), _PIECE):
        check_stop()
        some = listed[first : first + _PIECE]
        for position, type_ in enumerate(types):
            column = values_at(position, some)
            to = out[position, first : first + _PIECE]
            to[:] = dictionary.encode(column) if type_ in _BY_ID else _as_integers(column, type_)
    return out


def values_at(position: int, rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of rows in one column.

    Not by `zip(*rows)`, which makes an iterator of each row: so many new objects have Python look through all that exist for garbage, and no
    other thread runs meanwhile.
    """
    value, found = itemgetter(position), list[Any]()
    for first in range(0, len(rows), _PIECE):  # other threads may run in between
        found += map(value, rows[first : first + _PIECE])
    return found


def decode_rows(batch: Batch, types: Sequence[Type], dictionary: Dictionary) -> list[tuple[Value, ...]]:
    """The rows of a batch as tuples of Python values."""
    if not types:
        return [()] * batch.shape[1]
    columns = [decode_column(batch[i], type_, dictionary) for i, type_ in enumerate(types)]
    return list(zip(*columns, strict=True))


def decode_column(column: Numbers, type_: Type, dictionary: Dictionary) -> list[Value]:
    """A column as Python values."""
    if type_ in _BY_ID:
        return list(dictionary.decode(column.astype(np.int32)))
    return as_typed(column, type_).tolist()  # type: ignore[no-any-return]


def as_typed(column: Numbers, type_: Type) -> npt.NDArray[Any]:
    """A number column with the type that it stands for."""
    return column.view(_KINDS.get(type_, np.int64))


def _as_integers(values: Any, type_: Type) -> Numbers:
    typed: npt.NDArray[Any] = np.asarray(values, _KINDS.get(type_, np.int64))
    return (typed + 0.0 if type_ is Type.FLOAT else typed).view(np.int64)  # −0.0 becomes 0.0


def encode_arrow(column: pa.ChunkedArray, type_: Type, dictionary: Dictionary) -> Numbers:
    """A column of an Arrow table of the right type, without nulls, as integers."""
    if type_ in _BY_ID:
        return dictionary.encode_arrow(column).astype(np.int64)
    kind = np.dtype(_KINDS.get(type_, np.int64))
    if column.num_chunks == 1 and str(column.type) == _ARROW_KINDS[kind.name] and not column.null_count:
        # What they lie in as it is: each conversion by Arrow lets other threads run several times, however few the values are.
        (chunk,) = column.chunks
        if len(chunk):
            return _as_integers(
                np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize), type_
            )
    if type_ is Type.UNSIGNED:
        column = column.cast("uint64")  # files may have decimals
    return _as_integers(column.to_numpy(), type_)


def encode_columns(columns: Iterable[Any], count: int, relation: Relation, dictionary: Dictionary) -> Batch:
    """The facts in Arrow columns of a relation, chunked or not, as a batch [arity, count]."""
    import pyarrow as pa  # noqa: PLC0415

    out = np.empty((relation.arity, count), np.int64)
    for to, column, type_ in zip(out, columns, relation.types, strict=True):
        to[:] = encode_arrow(
            column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]), type_, dictionary
        )
    return out


def encode_table(facts: pa.RecordBatch | pa.Table, relation: Relation, dictionary: Dictionary) -> Batch:
    """The facts in the first columns of an Arrow table, which are those of a relation, as a batch [arity, n]."""
    return encode_columns(facts.columns[: relation.arity], facts.num_rows, relation, dictionary)


def decode_arrow(column: Numbers, type_: Type, dictionary: Dictionary) -> pa.ChunkedArray:
    """A column of integers as an Arrow array."""
    import pyarrow as pa  # noqa: PLC0415

    if type_ in _BY_ID:
        return dictionary.decode_arrow(column.astype(np.int32)).cast(pa.string())
    return pa.chunked_array([pa.array(np.ascontiguousarray(as_typed(column, type_)))])
