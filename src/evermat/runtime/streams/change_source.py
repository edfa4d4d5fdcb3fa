"""The changes of a relation as a data source of Spark, version by version: a stream, or all of them at once.

An offset is a version: the changes of it and of all versions before it have been read. Tasks get ranges of versions, and read them from the
state directory; so the rows between two offsets are always the same. Everything here runs in Spark's Python workers, which have no session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructField, StructType

from evermat.core import DataError, Problem, StateError, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.store import OP, VERSION, Location, VersionReader, read_state

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before 4.2, where Spark itself asks once how far a query reads that ends

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing: there is no such protocol."""


if TYPE_CHECKING:
    from evermat.runtime.streams.file_shares import FileShare
    from evermat.store import Version

# Spark's Python workers load this module again and again: what only some of them need is imported where it is used.

EARLIEST, LATEST = "earliest", "latest"
STATE, RELATION, STARTING, ENDING = "state", "relation", "startingVersion", "endingVersion"
FAIL_ON_DATA_LOSS, MOST_VERSIONS = "failOnDataLoss", "maxVersionsPerTrigger"
READING_OPTIONS = (STATE, RELATION, STARTING, ENDING, FAIL_ON_DATA_LOSS, MOST_VERSIONS)
_ROWS = 1 << 20  # changes of all relations that one task reads
_VERSIONS = 64  # versions that one task reads
_SENT = 1 << 16  # rows of a batch for Spark

UNSIGNED = pa.decimal128(20, 0)
_SPARK_TYPES = {
    pa.string(): StringType(),
    pa.int64(): LongType(),
    UNSIGNED: DecimalType(20, 0),
    pa.float64(): DoubleType(),
}


class StateFeed:
    """The changes of one relation of a state. Every access reads the state, to which others may write meanwhile."""

    def __init__(self, path: Location, name: str) -> None:
        self.path, self.name = path, name

    @property
    def columns(self) -> pa.Schema:
        """The columns of the relation as the newest version stores them: none is named `_op` or `_version`."""

        def read(store: VersionReader) -> pa.Schema:
            newest = store.latest
            known = [name for name in newest.relations if name not in newest.counters["hidden"]]
            name = self._full_name(store)
            if name not in known:
                help_ = did_you_mean(name, known)
                raise DataError(Problem(errors.NO_SUCH_RELATION, {"name": name}, help=help_))
            return store.schema(newest.number, name)

        return read_state(self.path, read)

    @property
    def newest(self) -> int:
        return read_state(self.path, lambda store: store.latest.number)

    @property
    def versions(self) -> list[Version]:
        """The versions that are kept, oldest first."""
        return read_state(self.path, lambda store: store.versions())

    def check(self, version: int) -> None:
        """Raises a `StateError` for a version that is not kept."""
        read_state(self.path, lambda store: store.version(version))

    def content(self, version: int) -> pa.Table:
        """All facts of the relation in a version, by the relation's columns."""
        from evermat.runtime.engines.memory_engine import restored
        from evermat.runtime.facts.ingest import relation_of
        from evermat.runtime.relation import PinnedFacts
        from evermat.runtime.rows import arrow_table
        from evermat.runtime.states.saved_version import SavedVersion

        def read(store: VersionReader) -> pa.Table:
            saved = SavedVersion(store, version)
            relation = relation_of(self.name, saved.program)
            return arrow_table(PinnedFacts(relation, restored(saved, {relation.name}).snapshot()))

        return read_state(self.path, read)

    def shares(self, version: int, *, whole: bool) -> list[FileShare] | None:
        """The files with all facts of a version, or with its changes, divided among tasks; None where rows are not stored as they are read."""
        from evermat.language import EQUALITY_CLASSES
        from evermat.runtime.states.saved_version import SavedVersion
        from evermat.runtime.streams.file_shares import shares_of_changes, shares_of_facts

        def read(store: VersionReader) -> list[FileShare] | None:
            saved, name = SavedVersion(store, version), self._full_name(store)
            compact = {*saved.stored_by_schemes, *saved.copied_by_schemes}
            before = SavedVersion(store, version - 1, before=True) if store.has(version - 1) else None
            if not whole and before is not None:
                compact |= before.stored_by_schemes
            known = name in store.version(version).relations and store.schema(version, name).names
            if not known or name in compact or EQUALITY_CLASSES.name in saved.hidden:
                return None
            return (shares_of_facts if whole else shares_of_changes)(store, version, name, _ROWS)

        return read_state(self.path, read)

    def changes(self, first: int, last: int) -> pa.Table | None:
        """The changes of versions: the columns of the relation, `_op` and `_version`; None if there are none."""
        from evermat.runtime.states.change_history import changes_between

        return changes_between(self.path, first, last).get(read_state(self.path, self._full_name))

    def _full_name(self, store: VersionReader) -> str:
        """The name of the relation without a prefix; the program is looked at only if there is one."""
        if self.name in store.latest.relations:
            return self.name
        from evermat.language import relation_names
        from evermat.runtime.states.saved_version import SavedVersion

        return relation_names(SavedVersion(store).program).full(self.name)


@dataclass(frozen=True)
class Range(InputPartition):  # type: ignore[misc]
    """The input of one task: the changes of some versions, or, if `whole`, all facts of the only version; of one version perhaps a share."""

    first: int
    last: int
    whole: bool = False
    share: FileShare | None = None


def schema_of(columns: pa.Schema) -> StructType:
    """The columns of the changes of a relation."""
    fields = [StructField(field.name, _SPARK_TYPES[field.type]) for field in columns]
    return StructType([*fields, StructField(OP, StringType()), StructField(VERSION, LongType())])


class _Reading:
    def __init__(self, feed: StateFeed, schema: StructType, options: Mapping[str, str]) -> None:
        self._feed, self._schema, self._options = feed, schema, options

    def _start(self) -> tuple[int, bool]:
        """The first version that is read, and whether all its facts are."""
        text = self._options.get(STARTING, EARLIEST)
        if text == EARLIEST:
            return self._feed.versions[0].number, True
        newest = self._feed.newest
        if text == LATEST:
            return newest + 1, False
        number = _number(STARTING, text, f"a number, `{EARLIEST}` or `{LATEST}`")
        if number != newest + 1:
            self._feed.check(number)
        return number, False

    def _ranges(self, first: int, last: int, *, whole: bool) -> list[Range]:
        """Ranges of versions, none of them too large for a task."""
        if first > last:
            return []
        kept = self._feed.versions
        for wanted in (first, last):
            if not kept[0].number <= wanted <= kept[-1].number:
                self._feed.check(wanted)  # its error names the kept versions
        ranges = self._of_version(first, whole=True) if whole else []
        begin, rows = first + whole, 0
        for version in kept:
            number = version.number
            if begin <= number <= last:
                rows += version.inserted + version.deleted
                if version.inserted + version.deleted >= _ROWS:
                    if begin < number:
                        ranges.append(Range(begin, number - 1))
                    ranges += self._of_version(number, whole=False)
                elif rows >= _ROWS or number - begin + 1 == _VERSIONS or number == last:
                    ranges.append(Range(begin, number))
                else:
                    continue
                begin, rows = number + 1, 0
        return ranges

    def _of_version(self, number: int, *, whole: bool) -> list[Range]:
        """The ranges of one version, whose rows are many: by files, where these have the rows as they are read."""
        shares = self._feed.shares(number, whole=whole)
        return [Range(number, number, whole, share) for share in ([None] if shares is None else shares)]

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        if partition.share is not None:
            return self._of_share(partition.share, whole=partition.whole)
        if partition.first > partition.last:
            return iter(())
        if not partition.whole:
            found = self._feed.changes(partition.first, partition.last)
            return iter(()) if found is None else self._batches(found.columns)
        facts = self._feed.content(partition.first)
        return self._batches([*facts.columns, *_own(facts.num_rows, partition.first)])

    def _of_share(self, share: FileShare, *, whole: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a share: facts as insertions, or changes."""
        from evermat.runtime.states.change_history import plain_rows

        rows = plain_rows(share.facts() if whole else share.changed())
        op, version = _own(rows.num_rows, share.version)
        return self._batches([*rows.columns, *([op] if whole else []), version])

    def _batches(self, columns: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        stored = self._feed.columns
        types = [*stored.types, pa.string(), pa.int64()]
        held = [pa.uint64() if type_ == UNSIGNED else type_ for type_ in types]
        if schema_of(stored) != self._schema or [column.type for column in columns] != held:
            why = f"`{self._feed.name}` did not always have the columns that it has: start where it has them"
            raise StateError(Problem(errors.STATE_UNREADABLE, {"file": self._feed.path, "why": why}))
        cast = [column.cast(type_) for column, type_ in zip(columns, types, strict=True)]
        return iter(pa.Table.from_arrays(cast, names=self._schema.names).to_batches(_SENT))


def _own(rows: int, version: int) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The columns of insertions by a version beside those of the relation."""
    number = pa.scalar(version, pa.int64())
    return pa.chunked_array([pa.repeat("+", rows)]), pa.chunked_array([pa.repeat(number, rows)])


def _number(option: str, text: str, expected: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"`{text}` cannot be the `{option}`: it is {expected}")
    return int(text)


class ChangeReader(_Reading, DataSourceReader):  # type: ignore[misc]
    """All changes of a range of versions, at once."""

    def partitions(self) -> list[Range]:
        first, whole = self._start()
        last = self._feed.newest
        text = self._options.get(ENDING, LATEST)
        if text != LATEST:
            last = _number(ENDING, text, f"a number or `{LATEST}`")
            self._feed.check(last)
        return self._ranges(first, last, whole=whole) or [Range(first, first - 1)]


class ChangeStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """The changes as they are committed."""

    _until: int | None = None  # the newest version when a query began that reads no further

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        first, whole = self._start()
        return {"version": first - 1, "whole": whole}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """As many versions as the option allows for one batch: Spark knows only limits of rows, files or bytes."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

        text = self._options.get(MOST_VERSIONS)
        if text is None:
            return ReadAllAvailable()
        most = _number(MOST_VERSIONS, text, "a number, at least 1")
        if not most:
            raise ValueError(f"`{text}` cannot be the `{MOST_VERSIONS}`: it is a number, at least 1")
        return ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The newest version to read. Before 4.2, Spark passes neither where a batch starts nor its limit."""
        last = self._feed.newest if self._until is None else self._until
        if start is None:
            if MOST_VERSIONS in self._options:
                raise ValueError(f"`{MOST_VERSIONS}` needs PySpark 4.2 or newer")
            return {"version": last, "whole": False}
        most = getattr(limit, "max_files", None)
        if most is not None and last > start["version"]:
            # A version that is no longer kept has to be skipped, or is an error: neither takes several batches.
            first = max(start["version"] + 1, self._feed.versions[0].number)
            last = min(last, first - 1 + most)
        if last < start["version"]:
            self._feed.check(start["version"])  # raises if this is another state than before
        return start if last <= start["version"] else {"version": last, "whole": False}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._feed.newest

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Range]:
        first, whole = start["version"] + 1, start["whole"]
        if end["version"] < start["version"]:
            self._feed.check(start["version"])  # as in `latestOffset`
        if not self._fails_on_loss():
            first = max(first, self._feed.versions[0].number)
        return self._ranges(first, end["version"], whole=whole) if first <= end["version"] else []

    def _fails_on_loss(self) -> bool:
        text = self._options.get(FAIL_ON_DATA_LOSS, "true").lower()
        if text not in {"true", "false"}:
            raise ValueError(f"`{text}` cannot be `{FAIL_ON_DATA_LOSS}`: it is `true` or `false`")
        return text == "true"
