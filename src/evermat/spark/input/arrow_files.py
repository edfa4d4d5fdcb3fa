"""Facts from tasks for the driver: Arrow files, which `read_task` has written, become batches of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from evermat.columns import ArrowTables, Encodable, encode_table
from evermat.core import Problem, ResourceError, check_stop
from evermat.core import error_catalogue as errors
from evermat.language import Relation
from evermat.spark.input.read_task import Outcome, write_facts
from evermat.spark.scratch_files import reading, remove_files, sizes
from evermat.store import Location, location_of

if TYPE_CHECKING:
    from evermat.columns import Batch, Dictionary


Part: TypeAlias = "ArrowTables | ArrowFileFacts"
"""Facts of one source: in memory or in files."""


class ConcatenatedFacts(Encodable):
    """The facts of a relation from several sources."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    def with_part(self, part: Part) -> ConcatenatedFacts:
        return ConcatenatedFacts([*self.parts, part])

    @property
    def rows(self) -> int:
        return sum(rows_of_part(part) for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the facts as they are now: of texts that repeat, most are there once."""
        return sum(
            part.nbytes if isinstance(part, ArrowFileFacts) else sum(table.nbytes for table in part.tables)
            for part in self.parts
        )

    def written(self, folder: Location) -> list[Location]:
        """Files with the facts, as tasks write them: facts of tables are written into a folder."""
        files: list[Location] = []
        for part in self.parts:
            if isinstance(part, ArrowFileFacts):
                files += part.files
            else:
                for table in part.tables:
                    files.append(folder / f"{len(files)}.arrow")
                    write_facts(table, files[-1])
        return files

    def batches(self, relation: Relation, dictionary: Dictionary) -> Iterator[Batch]:
        for part in self.parts:
            yield from part.batches(relation, dictionary)

    def kept(self) -> ConcatenatedFacts:
        """The same, of which no file is deleted when it has been read."""
        return ConcatenatedFacts([part.kept() if isinstance(part, ArrowFileFacts) else part for part in self.parts])


class ArrowFileFacts(Encodable):
    """The facts of a relation in files, in their order; unless they are kept, each file is deleted when it has been read."""

    def __init__(self, files: Sequence[Location], rows: int, *, keeps: bool = False) -> None:
        self.files, self.rows, self._keeps = files, rows, keeps

    def kept(self) -> ArrowFileFacts:
        """The same facts, whose files are not deleted when they have been read."""
        return ArrowFileFacts(self.files, self.rows, keeps=True)

    @property
    def nbytes(self) -> int:
        by_folder: dict[Location, list[Location]] = {}
        for file in self.files:
            by_folder.setdefault(file.parent, []).append(file)
        return sum(sizes(files, folder) for folder, files in by_folder.items())

    def batches(self, relation: Relation, dictionary: Dictionary) -> Iterator[Batch]:
        """Yields the facts; raises an error if facts are missing."""
        seen = 0
        for file in self.files:
            with reading(file) as source:
                reader = pa.ipc.open_file(source)
                for number in range(reader.num_record_batches):
                    facts = reader.get_batch(number)
                    seen += facts.num_rows
                    yield encode_table(facts, relation, dictionary)
            if not self._keeps:
                remove_files([file])
        if seen != self.rows:
            why = f"{self.rows:,} facts of `{relation.name}` were written, and {seen:,} came back"
            raise ResourceError(Problem(errors.SPARK_FAILED, {"what": "exchange facts", "why": why}))
        dictionary.forget_arrow()


def is_part(facts: object) -> bool:
    """Whether facts are what has been read of one source."""
    return isinstance(facts, ArrowTables | ArrowFileFacts)


def rows_of_part(part: Part) -> int:
    """The number of facts of a part."""
    return part.rows if isinstance(part, ArrowFileFacts) else sum(table.num_rows for table in part.tables)


def exchanged(outcomes: Sequence[Outcome]) -> ArrowFileFacts:
    """The facts that tasks have written."""
    return ArrowFileFacts(
        [location_of(outcome.file) for outcome in outcomes], sum(outcome.rows for outcome in outcomes)
    )


def spooled(tables: Iterable[pa.Table], folder: Location, in_memory: int) -> Part:
    """The facts in some tables: as they are if there are few, else in files of a folder: then no more than a few tables are held at a time."""
    held: list[pa.Table] = []
    files: list[Location] = []
    rows = 0
    for table in tables:
        check_stop()
        held.append(table)
        rows += table.num_rows
        if rows > in_memory:
            for one in held:
                files.append(folder / f"{len(files)}.arrow")
                write_facts(one, files[-1])
            held.clear()
    return ArrowFileFacts(files, rows) if files else ArrowTables(held)
