"""Closures that Spark expands: tasks get the intervals and the values of nodes, and produce pairs on demand.

Nothing is stored, and nothing is computed before an action: a closure of billions of pairs is a DataFrame whose plan has some megabytes. Every
join, filter or count expands it again, a batch at a time. Python returns a row for each source, with a list of its targets, which Spark explodes:
that is less to transfer, and Spark filters sources before it explodes them.

The classes are for tasks; they import no more than reading intervals requires. `expanded_frame` is for the driver. Schemes take part through
`Scheme.leaves` and `Leaf.as_closure`; a leaf that is not a closure is scanned.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns import KEPT, Nodes, Reach, Version, covers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from evermat.columns import Batch, ClosedRelation, Dictionary, Leaf, ReadableTable, Scheme
    from evermat.language import Relation, Type

_PAIRS = 1 << 17  # of a batch
_BYTES = 1 << 30  # of a batch's texts; Spark wants offsets of 32 bits
_LIST = 1 << 10  # pairs of a row, at most
_SHARE = 1 << 22  # pairs that a task expands, if no node has more
_MOST_SHARES = 10_000
_PAIRS_PER_NUMBER = 1 / 3  # by which Spark's estimate is right: a row of lists counts as much as a number
#: bytes. Connect sends the plan with every request, and accepts no more than 128 MB
_SENT_WITH_PLAN = 1 << 24
_PIECE = 1 << 24  # bytes in a row of what is not sent with the plan
_FIRST, _SECONDS = "first", "seconds"


# --- in tasks ----------------------------------------------------------------------------------------------


class Counterparts(NamedTuple):
    """The nodes of a closure in another one, as sources and as targets; -1 where there is none."""

    closure: int
    tails: Nodes
    heads: Nodes
    reversed: bool  # whether the other closure has the same facts as reversed pairs


@dataclass(frozen=True, eq=False)
class CompactClosure:
    """The facts of a closure, as intervals and values."""

    version: Version
    flipped: bool
    sources: Nodes  # that begin pairs
    first: pa.Array  # the values of nodes in the column of sources; texts have offsets of 64 bits
    second: pa.Array
    earlier: tuple[Counterparts, ...]  # in closures whose facts are not repeated here


class Share(NamedTuple):
    """The pairs of a closure that some of its sources begin."""

    closure: int
    begin: int
    end: int
    pairs: int


@dataclass(frozen=True, eq=False)
class ClosureExpansion:
    """Facts of some closures, each once, by shares. The closures that have shares are all flipped, or none of them is."""

    closures: tuple[CompactClosure, ...]
    shares: tuple[Share, ...]
    types: tuple[pa.DataType, pa.DataType]  # of the values of sources and of targets
    chunk: int  # pairs of a batch, at most

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The pairs of a share: rows of a first value and a list of second ones."""
        share = self.shares[number]
        closure = self.closures[share.closure]
        sources = closure.sources[share.begin : share.end]
        for positions, targets in Reach(None, None, closure.version).successors(sources, KEPT, self.chunk):
            tails, heads = self._not_repeated(closure, sources[positions], targets)
            if len(tails):
                yield self._rows(closure, tails, heads)

    def _rows(self, closure: CompactClosure, tails: Nodes, heads: Nodes) -> pa.RecordBatch:
        is_begin = np.zeros(len(tails), np.bool_)
        is_begin[::_LIST] = True
        is_begin[1:] |= tails[1:] != tails[:-1]
        begins = np.flatnonzero(is_begin).astype(np.int32)
        firsts = closure.first.take(pa.array(tails[begins])).cast(self.types[0])
        seconds = closure.second.take(pa.array(heads)).cast(self.types[1])
        bounds = pa.array(np.append(begins, np.int32(len(tails))))
        lists = pa.ListArray.from_arrays(bounds, seconds)
        return pa.RecordBatch.from_arrays([firsts, lists], names=[_FIRST, _SECONDS])

    def _not_repeated(self, closure: CompactClosure, tails: Nodes, heads: Nodes) -> tuple[Nodes, Nodes]:
        """The pairs that are not in an earlier closure."""
        for other in closure.earlier:
            begins, ends = (heads, tails) if other.reversed else (tails, heads)
            is_new = ~covers(self.closures[other.closure].version, other.tails[begins], other.heads[ends])
            tails, heads = tails[is_new], heads[is_new]
        return tails, heads


@dataclass(frozen=True, eq=False)
class ExpandShareTask:
    """A task that expands the shares whose numbers are its rows."""

    expansion: ClosureExpansion

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.expansion.batches(number)


def expand_sent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task whose rows are pieces of an expansion, all with the number of its share."""
    pieces, number = {}, -1
    for batch in batches:
        for row, position, piece in zip(*batch.columns, strict=True):
            number, pieces[position.as_py()] = row.as_py(), piece.as_buffer()
    if pieces:
        joined = b"".join(pieces.pop(position) for position in sorted(pieces))
        expansion: ClosureExpansion = pickle.loads(joined)  # noqa: S301  (the driver has written it)
        yield from expansion.batches(number)


# --- in the driver -----------------------------------------------------------------------------------------


def expanded_frame(spark: SparkSession, relation: Relation, table: ReadableTable, dictionary: Dictionary) -> DataFrame:
    """The current facts of a relation that is stored by a scheme, as the DataFrame that `dataframes.to_frame` returns.

    Facts that are not pairs of a closure, such as rows of tables or of any other scheme, come from the driver.
    """
    from evermat.io import arrow_schema  # noqa: PLC0415  (tasks need none of this)
    from evermat.spark.dataframes import to_frame  # noqa: PLC0415

    assert table.scheme is not None
    closures, others = _leaves(table.scheme)
    schema = arrow_schema(relation)
    rows = pa.Table.from_batches(_listed_facts(closures, others, relation, dictionary), schema)
    columns = to_frame(spark, schema.empty_table(), relation).schema.fields
    expansions = _expansions(closures, relation, dictionary)
    frames = [_by_tasks(spark, expansion, columns, flipped=flipped) for flipped, expansion in expansions]
    if rows.num_rows or not frames:
        frames.append(to_frame(spark, rows, relation))
    return reduce(lambda one, other: one.union(other), frames)


def _leaves(scheme: Scheme) -> tuple[list[ClosedRelation], list[Leaf]]:
    """The closures that a relation consists of, and the leaves whose facts have to be scanned."""
    leaves = [(leaf, leaf.as_closure()) for leaf in scheme.leaves()]
    return [c for _, c in leaves if c is not None], [leaf for leaf, closure in leaves if closure is None]


def _listed_facts(
    closures: list[ClosedRelation], others: list[Leaf], relation: Relation, dictionary: Dictionary
) -> Iterator[pa.RecordBatch]:
    """The facts of other leaves that are not in closures, each once."""
    from evermat.columns import BEFORE, decode_arrow, in_domain  # noqa: PLC0415
    from evermat.io import arrow_schema  # noqa: PLC0415

    earlier: list[Leaf] = [*closures]
    for leaf in others:
        for batch in leaf.scan(BEFORE, _PAIRS):
            facts: Batch = np.ascontiguousarray(batch)
            for other in earlier:
                facts = np.ascontiguousarray(facts[:, ~in_domain(other, facts, facts.shape[1], BEFORE)])
            columns = [decode_arrow(facts[i], type_, dictionary) for i, type_ in enumerate(relation.types)]
            yield from pa.Table.from_arrays(columns, schema=arrow_schema(relation)).to_batches()
        earlier.append(leaf)


def _expansions(
    closures: list[ClosedRelation], relation: Relation, dictionary: Dictionary
) -> Iterator[tuple[bool, ClosureExpansion]]:
    """The facts of closures; those of flipped ones have rows of their own."""
    from evermat.io import parquet_schema  # noqa: PLC0415

    compact = tuple(_compact(closures, number, relation, dictionary) for number in range(len(closures)))
    longest = max((_longest(column) for closure in compact for column in (closure.first, closure.second)), default=0)
    chunk = max(1, min(_PAIRS, _BYTES // max(longest, 1)))
    for flipped in (False, True):
        numbers = [number for number, closure in enumerate(compact) if closure.flipped == flipped]
        shares = tuple(share for number in numbers for share in _shares(number, compact[number]))
        if shares:
            first, second = parquet_schema(relation).types[:: -1 if flipped else 1]
            yield flipped, ClosureExpansion(compact, shares, (first, second), chunk)


def _compact(closures: list[ClosedRelation], number: int, relation: Relation, dictionary: Dictionary) -> CompactClosure:
    own = closures[number]
    edges, reach = own.pairs.edges, own.pairs.reach()
    version = reach.now if reach.before is None else reach.before  # the committed one, even during an update
    nodes = np.arange(version.n, dtype=np.int32)
    values, begins = edges.values_of(nodes), edges.may_begin(nodes)
    first, second = relation.types[::-1] if own.flipped else relation.types
    if first == second:
        firsts = seconds = _decoded(values, np.ones(len(nodes), np.bool_), second, dictionary)
    else:  # a linear closure, whose sources are values of another type
        firsts, seconds = (
            _decoded(values, of_type, type_, dictionary) for of_type, type_ in ((begins, first), (~begins, second))
        )
    earlier = []
    for i, other in enumerate(closures[:number]):
        tails = other.pairs.edges.find_nodes(values, source=other.pairs.edges.linear)
        heads = other.pairs.edges.find_nodes(values, source=False)
        earlier.append(Counterparts(i, tails, heads, reversed=own.flipped != other.flipped))
    sources = nodes[begins & (version.counts > 0)]
    return CompactClosure(version, own.flipped, sources, firsts, seconds, tuple(earlier))


def _decoded(
    values: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_], type_: Type, dictionary: Dictionary
) -> pa.Array:
    """The values of chosen nodes, at the positions of these."""
    from evermat.columns import decode_arrow  # noqa: PLC0415
    from evermat.io import PARQUET_UNSIGNED  # noqa: PLC0415
    from evermat.language import Type  # noqa: PLC0415

    if type_ in (Type.SYMBOL, Type.TERM):
        column = dictionary.decode_arrow(values[chosen].astype(np.int32)).cast(pa.large_string())
    else:
        column = decode_arrow(values[chosen], type_, dictionary)
        column = column.cast(PARQUET_UNSIGNED) if type_ is Type.UNSIGNED else column
    whole = column.combine_chunks()
    if chosen.all():
        return whole
    return whole.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


def _longest(column: pa.Array) -> int:
    """The bytes of the longest value."""
    if not pa.types.is_large_string(column.type):
        return 16
    return int(np.diff(np.frombuffer(column.buffers()[1], np.int64)).max(initial=0))


def _shares(number: int, closure: CompactClosure) -> Iterator[Share]:
    """Parts of a closure with about equal numbers of pairs."""
    counts = Reach(None, None, closure.version).counts(closure.sources, KEPT)
    ends = np.cumsum(counts)
    if not len(ends):
        return
    parts = int(min(max(-(-ends[-1] // _SHARE), 1), _MOST_SHARES))
    bounds = np.searchsorted(ends, np.arange(1, parts) * (ends[-1] / parts), side="right")
    for begin, end in pairwise([0, *bounds.tolist(), len(ends)]):
        if begin < end:
            yield Share(number, begin, end, int(counts[begin:end].sum()))


def _by_tasks(
    spark: SparkSession, expansion: ClosureExpansion, columns: list[StructField], *, flipped: bool
) -> DataFrame:
    """The facts of an expansion, with columns of these names and types."""
    from pyspark.sql.functions import col, explode  # noqa: PLC0415
    from pyspark.sql.types import ArrayType, StructField, StructType  # noqa: PLC0415

    from evermat.spark.python_probe import check_python  # noqa: PLC0415

    check_python(spark)
    first, second = columns[::-1] if flipped else columns
    lists = ArrayType(second.dataType, containsNull=False)
    schema = StructType([StructField(_FIRST, first.dataType, False), StructField(_SECONDS, lists, False)])
    rows = _listed(spark, expansion, schema)
    one, other = col(_FIRST).alias(first.name), explode(_SECONDS).alias(second.name)
    return rows.select(other, one) if flipped else rows.select(one, other)


def _listed(spark: SparkSession, expansion: ClosureExpansion, schema: StructType) -> DataFrame:
    """The rows that tasks produce, one task for each share."""
    from pyspark.sql.functions import broadcast  # noqa: PLC0415

    from evermat.spark.dataframes import numbers_of_tasks  # noqa: PLC0415
    from evermat.spark.jobs import is_connect  # noqa: PLC0415

    shares = len(expansion.shares)
    sent = pickle.dumps(expansion, protocol=5) if is_connect(spark) else b""
    if len(sent) <= _SENT_WITH_PLAN:  # or Spark broadcasts the task, if it is large
        numbers = numbers_of_tasks(spark, shares, sum(share.pairs for share in expansion.shares), _PAIRS_PER_NUMBER)
        return numbers.mapInArrow(ExpandShareTask(expansion).__call__, schema)
    pieces = [sent[begin : begin + _PIECE] for begin in range(0, len(sent), _PIECE)]
    local = pa.table({"position": pa.array(range(len(pieces)), pa.int32()), "piece": pa.array(pieces, pa.binary())})
    numbers = spark.range(0, shares, 1, shares)
    return numbers.crossJoin(broadcast(spark.createDataFrame(local))).mapInArrow(expand_sent, schema)
