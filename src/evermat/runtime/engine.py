"""The seam between users and engines: what a materialisation asks of the engine that holds its facts.

Two engines implement it: `memory_engine`, over columns in the memory of this process, and `spark_engine`, over files that Spark's executors
read and write. Everything above it (updates, queries, state directories, streams, exports) is written once, over these protocols. What both
engines do in the same way stands here, and they inherit it.

An engine begins empty. It gets its facts in one of three ways:

    load, then materialise      explicit facts, then all their consequences
    restore                     a version of a state directory, from which nothing has to be derived
    revised                     the facts of another engine, with other rules
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from evermat.algebra import Counters, Rules, Update, View
from evermat.columns import Batch, Dictionary, Renaming, Solutions
from evermat.core import DataError, EngineName, MaterialiseAlgorithm, PhaseTimer, Which
from evermat.engine import BaseState, Difference, Run, SavedRows
from evermat.language import Program, Queries, Query, Relation, Stratum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evermat.runtime.states.saved_version import SavedVersion

Given: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Facts to insert and to delete, by relation, as users have them."""

Changed: TypeAlias = Sequence[Sequence[Given]]
"""Updates that become one, in their order. All that belongs to one of them happens at once, and what it both inserts and deletes stays."""

Described: TypeAlias = Mapping[str, Iterable[SavedRows]]
"""Rows for a state directory, by relation; they may be computed while they are read."""


class EngineSnapshot(Protocol):
    """The facts of one version, for reading by any threads; later updates do not change it.

    Batches are encoded with `dictionary`. Where equal terms have a representative, facts are *expanded*, over all equal terms, unless the
    caller wants representatives only.
    """

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary that batches are encoded with."""

    @property
    def union_find(self) -> Renaming | None:
        """Which term represents which; None if equal terms have no representative."""

    def count(self, name: str, *, expanded: bool = True) -> int:
        """How many facts a relation has."""

    def count_explicit(self, name: str) -> int:
        """How many explicit facts a relation has."""

    def scan(self, name: str, which: Which = "all", *, expanded: bool = True) -> Iterator[Batch]:
        """The facts of a relation, some at a time; each batch is valid until the next step."""

    def contains(self, name: str, fact: Batch, *, expanded: bool = True) -> bool:
        """Whether a relation has a fact; terms of `fact` may be replaced by their representatives."""

    def evaluate(self, query: Query, run: Run, *, representatives: bool = False) -> Solutions:
        """The answer to a query."""

    def stream(self, query: Query, run: Run) -> Solutions:
        """The answer to a query, expanded, of which no more rows are held than must be."""


class ChangeSet(Protocol):
    """Facts that an update deleted or inserted, expanded; they are listed when they are read."""

    def count(self, name: str) -> int:
        """How many facts of a relation these are."""

    def batch(self, name: str) -> Batch:
        """The facts of a relation."""


class EngineUpdate(Protocol):
    """One update of an engine, as a context: left without `commit`, all is as it was.

    Attributes:
        sets: What algorithms work on; it exists inside the context only.
        deleted_next: The explicit facts that the next update deletes, as far as they are known.
    """

    sets: Update
    deleted_next: View | None
    _state: Any
    _run: Run
    _before: Any

    def __init__(self, state: Any, run: Run, before: Any) -> None:
        self._state, self._run, self._before = state, run, before

    def _begin(self) -> Any:
        """The sets of the update, before anything is derived."""

    def __enter__(self) -> Self:
        self.sets = self._begin().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sets: Any = self.sets
        sets.__exit__(kind, error, trace)

    def _deleted_by(self, changes: Changed) -> Any:
        """The explicit facts that updates delete in the end."""

    def _look_ahead(self, upcoming: Changed) -> Any:
        """The explicit facts that the next update deletes, if it is known; what is wrong with it is reported when its turn comes."""
        with suppress(DataError):
            return self._deleted_by(upcoming) if upcoming else None
        return None

    @property
    def rule_change(self) -> tuple[View, Rules, Rules] | None:
        """The facts before a change of rules, the rules that it removes and those that it adds; None if rules stay."""
        return None if self._before is None else (self._before.materialised, *self._state.changed_rules(self._before))

    def conclude(self) -> None:
        """Determines what the update changes; its algorithms are done."""

    def inserted_rows(self, name: str) -> Iterable[tuple[Any, ...]]:
        """The facts of a relation that the update inserts, decoded, over representatives."""

    def evaluate(self, query: Query) -> Iterable[tuple[Any, ...]]:
        """The answer to a query over the facts as they will be."""

    @property
    def explicit(self) -> Mapping[str, int]:
        """How many explicit facts are `inserted` and `deleted`."""
        sets: Any = self.sets
        return {"inserted": sets.given_inserted.size, "deleted": sets.given_deleted.size}

    @property
    def changes(self) -> tuple[ChangeSet, ChangeSet]:
        """The facts that are deleted, and those that are inserted."""

    def describe(self, counters: Mapping[str, Counters], whole: Collection[str]) -> Described:
        """What the update changes, for a state directory; of `whole` relations all facts after it.

        Args:
            counters: the counters to save of each relation.
            whole: relations of which the state directory does not have all facts.
        """

    def commit(self, valid: Mapping[Stratum, Counters], write: Callable[[], None]) -> None:
        """Makes the changes, all or none; `write` makes them durable, as the last step that can fail.

        Args:
            valid: the counters that are valid afterwards, of strata that were processed.
            write: writes to the state directory, if there is one; when it returns, readers wait for the rest.
        """


class Engine(Protocol):
    """All facts of a program, explicit and derived, and the rules over them.

    Attributes:
        name: Whose facts these are: `memory`, or `spark` if a SparkSession was given, also where the driver holds them.
        distributed: Whether the facts are in files of a cluster rather than in this process.
        run: What the materialisation took: rounds and rule instances.
        timer: What phases of it took.
        sizes: With Spark, the size of the given facts by relation, and how it was found.
        session: The caller's session whose executors hold the facts; None if this process holds them.
    """

    name: EngineName
    distributed: bool
    run: Run
    timer: PhaseTimer
    sizes: Mapping[str, Any] = MappingProxyType({})
    session: SparkSession | None = None
    state: BaseState[Any, Any, Any, Any]
    _algorithm: MaterialiseAlgorithm

    def __init__(self, state: Any, run: Run, timer: PhaseTimer, algorithm: MaterialiseAlgorithm) -> None:
        self.state, self.run, self.timer, self._algorithm = state, run, timer, algorithm

    @property
    def program(self) -> Program:
        """The program, after all changes of its rules."""
        return self.state.program

    @cached_property
    def queries(self) -> Queries:
        """Compiles queries about the program."""
        return Queries(self.program)

    def load(self, facts: Mapping[str, Any]) -> None:
        """Takes in the explicit facts, those of the program's text too.

        Raises:
            DataError: facts do not fit their relations.
        """

    def materialise(self, counters: Counters) -> Any:
        """Derives all consequences of the explicit facts.

        Args:
            counters: which derivation counters to keep for updates.

        Returns:
            None; or, where the facts outgrew this engine, the facts from which another has to go on.
        """

    def restore(self, version: SavedVersion) -> None:
        """Takes in all facts and counters of a saved version.

        Raises:
            StateError: the version is damaged.
        """

    def follows(self, version: SavedVersion) -> bool:
        """Whether changes up to a version of the same program can be taken in without reading all of it."""
        del version
        return False

    def follow(
        self,
        changes: Sequence[tuple[str, SavedRows]],
        valid: Mapping[Stratum, Counters],
        publishing: AbstractContextManager[None],
    ) -> None:
        """Takes in changes that others have saved since the version that this engine holds, all or nothing.

        Args:
            changes: rows by relation, in the order in which they were saved.
            valid: the counters that are valid afterwards.
            publishing: is around the step that changes facts.
        """
        del changes, valid, publishing
        raise RuntimeError("ask first whether this engine follows")

    def snapshot(self) -> EngineSnapshot:
        """The version that was committed last; any thread may ask for it at any time."""

    def dataframe(
        self, reading: Any, relation: Relation, spark: SparkSession, *, expanded: bool = True, kept: object = None
    ) -> DataFrame:
        """The facts of a relation in a snapshot of this engine, as a DataFrame of the caller's session, which keeps an object if it reads files."""

    def release_frames(self) -> None:
        """Releases what DataFrames have kept that do not exist any more."""

    def close(self) -> None:
        """Releases files of the facts, if there are any."""

    # --- updates -------------------------------------------------------------------------------------------------------
    def revised(self, program: Program, run: Run) -> Self:
        """An engine with other rules that shares the facts of this one."""

    def begin_update(
        self, changes: Changed, run: Run, *, upcoming: Changed = (), before: Engine | None = None, durable: bool = False
    ) -> EngineUpdate:
        """Reads the facts of an update, which begins when the result is entered.

        Args:
            changes: facts to insert and to delete.
            run: limits and figures.
            upcoming: the next update of a stream, if it is known.
            before: the engine before a change of rules, with which this one shares its facts.
            durable: whether the update will be written to a state directory.

        Raises:
            DataError: facts do not fit their relations.
        """

    def reclaim(self, run: Run) -> dict[str, Any] | None:
        """Frees what deleted facts have left behind, if that is due after an update; readers keep what they have opened.

        Limits and signals of the run hold: then, or if memory is short, all stays as it is.

        Returns:
            How many `rows`, `symbols` and `bytes` were freed, and the `seconds` that it took, or why it was `skipped`; None if it is not due.
        """

    # --- state directories -------------------------------------------------------------------------------------------
    @property
    def counters(self) -> Mapping[Stratum, Counters]:
        """Which counters of each stratum are valid."""
        return self.state.counters

    def work(self, stratum: Stratum) -> int:
        """How many rule instances it takes, about, to derive a stratum from scratch."""
        return self.state.work(stratum)

    @property
    def storage(self) -> Mapping[str, Any]:
        """Which storage schemes were asked for, the relations that have one, and rules whose heads are not stored."""

    def describe(self, counters: Mapping[str, Counters]) -> Described:
        """All facts of some relations, for a state directory."""

    def difference(
        self, version: SavedVersion, dropped: Collection[str], counters: Mapping[str, Counters]
    ) -> Difference:
        """What turns the facts of a saved version into these; `dropped` relations have another meaning now, or none."""

    # --- figures -----------------------------------------------------------------------------------------------------
    @cached_property
    def _rules(self) -> Mapping[Stratum, Any]:
        return {rules.stratum: rules for rules in self.state.strata}

    def algorithm_of(self, stratum: Stratum) -> str:
        """How a stratum was materialised."""

    def placement_of(self, stratum: Stratum) -> tuple[str, str]:
        """Where a stratum was materialised, and why there."""

    def undefined(self) -> Counter[int]:
        """Bindings dropped because an expression had no value, by the position of the rule."""

    def figures(self, reading: EngineSnapshot) -> dict[str, Any]:
        """What else there is to report: how relations are stored, their bytes, jobs of Spark, all as it is now; facts are those of a snapshot."""
