"""An engine whose versions are published one after the other: for any number of readers, and one writer at a time.

Readers pin what is published, and wait for nothing but the moment in which a commit sets bits in memory. A writer holds the
writer's lock. What is published changes in that same moment: facts, the version of the state directory, positions of streams and figures are
always of the same version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, final
from weakref import finalize

from evermat.core import Problem, ProgramError, StateError, held_back, this_process
from evermat.core import error_catalogue as errors
from evermat.engine import Run
from evermat.language import revise
from evermat.runtime.pin import Lease, Pin, Published
from evermat.runtime.results.views import CurrentViews
from evermat.runtime.statistics import materialisation_stats
from evermat.runtime.writer_lock import WriterLock

if TYPE_CHECKING:
    from evermat.core import SavedPositions
    from evermat.reasoning import Passing
    from evermat.runtime.change import Change
    from evermat.runtime.engine import Changed, Engine
    from evermat.runtime.states.persistence import StateBinding
    from evermat.runtime.update import Ahead
    from evermat.store import Keep, Location

Opened: TypeAlias = "tuple[Engine, StateBinding, dict[str, Any]]"
"""An engine with the facts of a version of a state directory, what ties them, and the statistics of the version."""

_TRIES = 10  # to become the writer, while others commit


@final
class VersionedEngine:
    """The engine of a materialisation, with its state directory if it has one.

    `open_again` opens the newest version of the state directory, for readers that take over what others commit; `live` ones do before each read.
    """

    def __init__(
        self,
        engine: Engine,
        binding: StateBinding | None = None,
        opened: dict[str, Any] | None = None,
        skipped: Mapping[str, int] | None = None,
        open_again: Callable[[], Opened] | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._open_again, self._live, self._process = open_again, live, this_process()
        self._lock = WriterLock()
        #: held while a reader pins, and while a commit changes facts in memory and what is published; reentrant for signal handlers
        self._latch = RLock()
        self._published: Published | None = _published(engine, binding, opened, skipped or {})
        self.views = CurrentViews()
        # Of the writer:
        self._binding = binding
        self._passing: Passing | None = None  # what the last update has inserted last, because the next one deletes it

    # --- readers -----------------------------------------------------------------------------------------------------
    def pin(self) -> Pin:
        """The newest version; of a live materialisation the newest one of its state directory."""
        self._process.check()
        if self._live and (binding := self._binding) is not None and not binding.seems_current():
            self._catch_up()
        return self._newest()

    def _newest(self) -> Pin:
        with self._latch:
            published = self._published
            if published is not None:
                return Pin(published, published.engine.snapshot())
        raise _closed()

    def _catch_up(self) -> None:
        """Takes over a newer version; of several threads one does, and the others wait for it. A writer's callbacks read the version before."""
        if not self._lock.is_mine:
            with self._lock.held():
                self._take_over()

    # --- updates -----------------------------------------------------------------------------------------------------
    def update(
        self,
        changes: Changed,
        algorithm: str,
        run: Run,
        *,
        rules: tuple[str, str] = ("", ""),
        position: tuple[str, str] | None = None,
        look: tuple[Changed, float] | None = None,
    ) -> tuple[Change, int | None]:
        """Carries out one update, whole or not at all; see `api.Materialisation.update`.

        Args:
            changes: facts to insert and to delete.
            algorithm: how to maintain.
            run: limits, which hold for waiting too.
            rules: rules to add and to remove, as text.
            position: how far a stream is followed with this update.
            look: the next update, as far as it is known, and the share of it that must come by this one for marks.

        Returns:
            The changes, and the version of the state directory that they make.
        """
        from evermat.runtime.update import Ahead, CommitTarget, carry_out

        with self._writing(run) as (before, binding):
            engine, changed_rules = before, None
            if any(rules):
                revision = revise(before.program, *rules)
                engine, changed_rules = before.revised(revision.program, run), before
                changes, algorithm = [[*changes[0], (revision.inserted, revision.deleted)]], "dred"
            ahead = None if look is None else Ahead(self._passing, *look)
            change = carry_out(
                engine,
                changes,
                algorithm,
                run,
                CommitTarget(self._publishing(engine, position, ahead), binding, position),
                before=changed_rules,
                ahead=ahead,
            )
            version = None if binding is None else binding.version
            if changed_rules is not None:
                engine.run.leave()
            if binding is not None:
                binding.tidy(engine)
            self._reclaim(engine, change, run)
            if self.views.exist:
                self.views.renew(self._newest(), None if changed_rules is not None else changed_relations(change))
        return change, version

    @contextmanager
    def _writing(self, run: Run) -> Iterator[tuple[Engine, StateBinding | None]]:
        """Holds the lock, also that of the state directory if there is one."""
        self._process.check()
        with self._lock.held(run):
            self._current()
            self._lock_state()
            yield self._current().engine, self._binding

    def _lock_state(self) -> None:
        """Becomes the writer of the state directory, if there is one."""
        if self._live:
            self._take_over()
        if self._binding is not None:
            self._binding.become_writer()

    def become_writer(self) -> None:
        """Takes over the newest version of the state directory, and then has its lock, as after an update."""
        with self._lock.held():
            self._current()
            for _ in range(_TRIES):
                self._take_over()
                try:
                    self._lock_state()
                except StateError as error:
                    if error.problems[0].kind != errors.STATE_MOVED:
                        raise
                else:
                    return
            self._lock_state()

    def step_down(self) -> None:
        """Releases the lock of the state directory; the facts stay, and can take over later versions."""
        with self._lock.held():
            if self._binding is not None:
                self._binding.become_reader()

    def _current(self) -> Published:
        if self._published is None:
            raise _closed()
        return self._published

    @contextmanager
    def _publishing(self, engine: Engine, position: tuple[str, str] | None, ahead: Ahead | None) -> Iterator[None]:
        """Around the step of a commit that changes facts in memory: readers see all of it, or nothing."""
        with self._latch:
            yield
            published, binding = self._current(), self._binding
            if binding is None:
                positions = {**published.positions, **dict([] if position is None else [position])}
            else:
                positions = binding.positions
            self._published = Published.of(
                engine,
                None if binding is None else binding.version,
                positions,
                published.opened,
                published.skipped,
                published.lease,
            )
            self._passing = None if ahead is None else ahead.found

    def _reclaim(self, engine: Engine, change: Change, run: Run) -> None:
        """Frees what deleted facts have left behind, if that is due; the change is committed."""
        report = engine.reclaim(run)
        if report is not None:
            change.stats["reclaimed"] = report
            if "skipped" not in report:
                self._passing = None  # it is about rows that no longer exist

    # --- the state directory -----------------------------------------------------------------------------------------
    def save(self, path: Location, *, keep: Keep | None = None, positions: SavedPositions = "refuse") -> None:
        """See `api.Materialisation.save`."""
        from evermat.runtime.states.persistence import save_state
        from evermat.store import resolved

        self._process.check()
        with self._lock.held():
            if self._binding is not None and resolved(path) == resolved(self._binding.path):
                self._lock_state()  # every update is there already
                self._binding.keep(keep)
                return
            published, stats = self._current(), materialisation_stats(self.pin())
            binding = save_state(published.engine, path, stats, keep=keep, positions=positions)
            self._bind(binding, replace(published, version=binding.version, positions=binding.positions))

    def _bind(self, binding: StateBinding | None, published: Published | None) -> None:
        """Has another state directory, or none."""
        before = self._binding
        with held_back(), self._latch:
            self._binding, self._published = binding, published
        if before is not None:
            before.close()

    def refresh(self) -> bool:
        """See `api.Materialisation.refresh`."""
        self._process.check()
        with self._lock.held():
            self._current()
            if self._binding is None:
                raise ProgramError(Problem(errors.NO_STATE, {}))
            return self._take_over()

    def _take_over(self) -> bool:
        """Takes over the newest version of the state directory; if it cannot be read, the old one stays. Returns whether there was one.

        Who has updated anything is the writer, and has nothing to take over.
        """
        binding, before = self._binding, self._current()
        if binding is None or self._open_again is None or binding.is_current():
            return False
        if binding.follow(before.engine, self._following):
            before.engine.reclaim(Run())
        else:
            engine, newer, stats = self._open_again()
            self._bind(newer, _published(engine, newer, stats, before.skipped))
            self._close_when_unread(before)
        if self.views.exist:
            self.views.renew(self._newest())
        return True

    @contextmanager
    def _following(self, binding: StateBinding, stats: dict[str, Any]) -> Iterator[None]:
        """Around the step in which the engine takes in changes of others."""
        before, former = self._current(), self._binding
        with held_back(), self._latch:
            yield
            self._published = _published(before.engine, binding, stats, before.skipped, before.lease)
            self._binding = binding
        if former is not None:
            former.close()

    def _close_when_unread(self, published: Published) -> None:
        """Deletes the files of an engine when they have no reader any more."""
        engine, process = published.engine, self._process

        def close() -> None:
            if not process.is_parent:
                engine.close()

        finalize(published.lease, close)

    def close(self) -> None:
        """See `api.Materialisation.close`."""
        if self._process.is_parent:
            return  # all is the parent's
        with self._lock.held():
            published = self._published
            if published is None:
                return
            self._passing = None
            if published.engine.distributed:
                self.views.end()
                self._bind(None, None)
                self._close_when_unread(published)
                engine = published.engine
                del published
                engine.release_frames()  # or the files stay until the last DataFrame is released
            else:
                self._bind(None, replace(published, version=None))


def _published(
    engine: Engine,
    binding: StateBinding | None,
    opened: dict[str, Any] | None,
    skipped: Mapping[str, int],
    lease: Lease | None = None,
) -> Published:
    if binding is None:
        return Published.of(engine, opened=opened, skipped=skipped)
    return Published.of(engine, binding.version, binding.positions, opened, skipped, lease)


def _closed() -> ProgramError:
    details = {"what": "materialisation", "why": "its facts were in files of a cluster, which are deleted"}
    return ProgramError(Problem(errors.CLOSED, details))


def changed_relations(change: Change) -> list[str]:
    """The relations of which an update has inserted or deleted facts."""
    return [name for name in change.inserted if len(change.inserted[name]) or len(change.deleted[name])]
