"""The facts on their way in, and how many they are: into the driver as long as they fit there, else from task to task.

How large a DataFrame is shows only when it has been computed; statistics can be wrong by any factor. So it is computed once, into files of
the scratch folder, whose rows are counted before any of them comes to the driver. An estimate only decides which kind of files that are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from evermat.columns import ArrowTables
from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.spark import dataframes
from evermat.spark.input.arrow_files import ArrowFileFacts, ConcatenatedFacts, Part, spooled
from evermat.spark.input.frame_size import FOOTERS, STATISTICS, estimate_of
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import is_seen, remove_folder
from evermat.store import Location

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from evermat.language import Relation

COUNT, GIVEN, READ, ARRIVED = "count", "given", "read", "counted as they came"

_IN_MEMORY = 1 << 20  # rows of a frame that need no files before they are encoded
_Result = TypeVar("_Result")


class _Watched(Protocol):
    def __call__(self, action: Callable[[], _Result], /) -> _Result: ...


def _at_once(action: Callable[[], _Result]) -> _Result:
    return action()


@dataclass(slots=True)
class Size:
    """How many facts a relation is given, their bytes as far as these are known, and how that was found."""

    facts: int = 0
    nbytes: int = 0
    found: str = ""

    def add(self, facts: int, nbytes: int, found: str) -> None:
        self.facts += facts
        self.nbytes += nbytes
        if found not in self.found.split(", "):
            self.found = f"{self.found}, {found}".removeprefix(", ")


class Room:
    """How much of the driver's memory facts may take.

    Args:
        nbytes: the bytes; None if there is no bound.
        fact: bytes that a fact takes in the driver, its share of indexes and of usual texts included.
    """

    def __init__(self, nbytes: int | None, fact: int) -> None:
        self.nbytes, self._fact = nbytes, fact

    def needed(self, facts: int, nbytes: int) -> int:
        """The memory for so many facts of so many bytes: texts count where they are longer than usual."""
        return max(facts * self._fact, nbytes)

    def facts_beside(self, taken: int) -> int | None:
        """How many facts fit beside what takes so many bytes."""
        return None if self.nbytes is None else max(self.nbytes - taken, 0) // self._fact


class Intake:
    """Takes in the facts of a materialisation, and knows the size of each relation.

    Args:
        scratch: where facts are kept as files.
        room: what the driver has room for.
        spread: whether no facts of DataFrames come to the driver, however few there are.
    """

    def __init__(self, scratch: Scratch, room: Room | None = None, *, spread: bool = False) -> None:
        self.scratch, self.room, self.spread = scratch, room or Room(None, 1), spread
        self.sizes: dict[str, Size] = {}

    @property
    def taken(self) -> int:
        """The bytes that what has come so far needs in the driver."""
        return sum(self.room.needed(size.facts, size.nbytes) for size in self.sizes.values())

    @property
    def fits(self) -> bool:
        """Whether the driver has room for all that has come so far."""
        return self.room.nbytes is None or self.taken <= self.room.nbytes

    def note(self, name: str, facts: int, nbytes: int, found: str) -> None:
        """Records facts of a relation."""
        self.sizes.setdefault(name, Size()).add(facts, nbytes, found)

    def take(self, name: str, part: Part, found: str = READ) -> Part:
        """Records facts of a relation that have been read, and returns them."""
        facts = ConcatenatedFacts([part])
        self.note(name, facts.rows, facts.nbytes, found)
        return part

    def read(self, frame: DataFrame, relation: Relation, name: str, watched: _Watched = _at_once) -> Part:
        """The facts of a DataFrame, which errors call `name`; jobs run within `watched`.

        Raises:
            DataError: it does not fit the relation.
            ResourceError: it does not fit the driver, and executors do not share the scratch folder.
        """
        dataframes.check_static(frame, name)
        by_tasks = self.spread or not self.fits
        found = COUNT
        if not by_tasks and self.room.nbytes is not None:
            estimate = watched(lambda: estimate_of(frame))
            if estimate is not None and self._outgrown_by(estimate.rows, 0):
                by_tasks = True
                found = FOOTERS if estimate.source == FOOTERS else f"{STATISTICS} and a count"
            elif estimate is not None and estimate.source == FOOTERS:
                found = FOOTERS
        part = watched(lambda: (self._by_tasks if by_tasks else self._by_driver)(frame, relation, name))
        return self.take(relation.name, part, found)

    def _outgrown_by(self, facts: int, nbytes: int) -> bool:
        """Whether the driver has no room for so many facts more."""
        most = self.room.nbytes
        return most is not None and self.taken + self.room.needed(facts, nbytes) > most

    def _by_tasks(self, frame: DataFrame, relation: Relation, name: str) -> ArrowFileFacts:
        facts = dataframes.frame_files(frame, relation, self.scratch, name)
        if not all(map(is_seen, facts.files)):
            raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": self.scratch.path}))
        return facts

    def _by_driver(self, frame: DataFrame, relation: Relation, name: str) -> Part:
        """The facts, checked row by row here; by tasks after all, if their number turns out to be too large."""
        if not relation.columns:
            return ArrowTables(list(dataframes.frame_tables(frame, relation, self.scratch, name)))
        written = dataframes.WrittenFrame.of(frame, relation, self.scratch, name)
        try:
            if written.files is None:
                if self.room.nbytes is not None and self._outgrown_by(frame.count(), 0):
                    raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": self.scratch.path}))
            elif self._outgrown_by(written.rows, 0):
                return self._by_tasks(written.again(frame), relation, name)
            return spooled(written.tables(), self.scratch.folder(relation.name), _IN_MEMORY)
        finally:
            remove_folder(written.folder)

    def spool(self, name: str, tables: Iterable[pa.Table]) -> Part:
        """Facts that arrive here piece by piece: they are not held, unless they are few."""
        folder = self.scratch.folder(name)
        with self.scratch.writing():
            part = spooled(tables, folder, _IN_MEMORY)
        return self.take(name, part, ARRIVED)

    def stats(self) -> dict[str, Any]:
        """The sizes by relation, as statistics report them."""
        return {
            name: {"facts": size.facts, "bytes": size.nbytes, "found": size.found} for name, size in self.sizes.items()
        }


def written_facts(facts: Iterable[pa.Table], folder: Location) -> list[Location]:
    """Files with all facts of some tables, of which few are held at a time."""
    part = spooled(facts, folder, -1)
    return list(part.files) if isinstance(part, ArrowFileFacts) else []
