"""Updates that arrive one after the other: each is processed with a look at the next one, if it has arrived."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from evermat.core import UpdateAlgorithm

if TYPE_CHECKING:
    from evermat.language import Program
    from evermat.runtime.change import Change

#: updates that are read ahead of the one that is processed; then their producer has to wait
ROOM = 64


@dataclass(frozen=True, slots=True)
class StreamedUpdate:
    """One update of a stream.

    Attributes:
        insert: Facts to insert, by relation, as for `Materialisation.update`.
        delete: Facts to delete.
        position: The name of a stream, and how far it has been followed with this update. The version records it; `Materialisation.positions`
            returns it to a process that continues the stream.
    """

    insert: Mapping[str, Any] = field(default_factory=dict)
    delete: Mapping[str, Any] = field(default_factory=dict)
    position: tuple[str, str] | None = None


AnyUpdate: TypeAlias = StreamedUpdate | Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Any]]
"""An update as users have it: also a mapping with `insert` and `delete`, or both as a pair."""


class Follower(Protocol):
    """What follows a stream: a materialisation."""

    @property
    def program(self) -> Program:
        """The program, after all changes of rules."""

    @property
    def positions(self) -> dict[str, str]:
        """How far streams have been followed, by their names."""

    def stream(
        self,
        updates: Iterable[AnyUpdate],
        *,
        algorithm: UpdateAlgorithm = "auto",
        marking: bool | None = None,
        coalesce: bool = False,
    ) -> Iterator[Change]:
        """Carries out updates one after the other."""


class Once:
    """Facts of a relation that are read once, although they are asked for twice: by the look ahead, and when it is their turn."""

    __slots__ = ("_read", "given")

    def __init__(self, given: Any) -> None:
        if hasattr(given, "read_all"):
            given = given.read_all()  # an Arrow stream
        #: the facts as users have them
        self.given = list(given) if isinstance(given, Iterator) else given
        self._read: tuple[Any, Any] | None = None

    def read(self, reader: Callable[[Any], Any], dictionary: Any) -> Any:
        """The result of a reader over the facts, which encodes them with a dictionary; it runs once, as long as that is the same."""
        if self._read is None or self._read[0] is not dictionary:
            self._read = dictionary, reader(self.given)
        return self._read[1]


def streamed(update: AnyUpdate) -> StreamedUpdate:
    """An update as users have it, with facts that can be asked for twice."""
    found = _understood(update)
    insert, delete = ({name: Once(facts) for name, facts in side.items()} for side in (found.insert, found.delete))
    return StreamedUpdate(insert, delete, found.position)


def _understood(update: AnyUpdate) -> StreamedUpdate:
    if isinstance(update, StreamedUpdate):
        return update
    if isinstance(update, Mapping):
        unknown = sorted(map(str, set(update) - {"insert", "delete", "position"}))
        if unknown:
            raise TypeError(f"an update of a stream has `insert` and `delete`, not {', '.join(map(repr, unknown))}")
        return StreamedUpdate(update.get("insert") or {}, update.get("delete") or {}, update.get("position"))
    if isinstance(update, tuple) and len(update) == 2 and all(isinstance(facts, Mapping) for facts in update):
        return StreamedUpdate(*update)
    raise TypeError(
        f"an update of a stream is a mapping with `insert` and `delete`, or both as a pair, not {update!r:.80}"
    )


class Arriving:
    """The updates of a stream, as they arrive: those that have arrived can be looked at without waiting for more.

    A sequence has arrived from the beginning. A thread of its own reads anything else, because reading may wait; the thread also waits while `ROOM`
    updates are read and not yet taken. An error of the producer is raised in the turn of the update that it prevented.
    """

    def __init__(self, updates: Iterable[AnyUpdate]) -> None:
        self._arrived: deque[StreamedUpdate] = deque()
        self._changed = threading.Condition()
        self._ended, self._closed = False, False
        self._error: BaseException | None = None
        self._rest: Iterator[AnyUpdate] = iter(updates)
        self._waits = not isinstance(updates, Sequence)
        if self._waits:
            threading.Thread(target=copy_context().run, args=(self._read,), name="evermat stream", daemon=True).start()

    def _read(self) -> None:
        try:
            for update in self._rest:
                with self._changed:
                    self._arrived.append(streamed(update))
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closed or len(self._arrived) < ROOM)
                    if self._closed:
                        return
        except BaseException as error:  # noqa: BLE001  (it is raised where the stream is followed)
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def take(self, most: int = 1) -> list[StreamedUpdate]:
        """The next update, and up to `most` in all of those that have arrived; waits for the first. Empty at the end."""
        with self._changed:
            if self._waits:
                self._changed.wait_for(lambda: self._arrived or self._ended)
            else:
                self._fill(most)
            if not self._arrived and self._error is not None:
                raise self._error
            taken = [self._arrived.popleft() for _ in range(min(most, len(self._arrived)))]
            self._changed.notify_all()
            return taken

    def look(self, most: int = 1) -> list[StreamedUpdate]:
        """The next update, and up to `most` in all, as far as they have arrived; does not wait."""
        with self._changed:
            if not self._waits:
                self._fill(most)
            return [self._arrived[i] for i in range(min(most, len(self._arrived)))]

    def _fill(self, wanted: int) -> None:
        while len(self._arrived) < wanted and (update := next(self._rest, None)) is not None:
            self._arrived.append(streamed(update))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


Process: TypeAlias = Callable[[Sequence[StreamedUpdate], Sequence[StreamedUpdate]], Any]
"""Processes updates that become one, with a look at those that come next."""


def follow_updates(updates: Iterable[AnyUpdate], process: Process, *, coalesce: bool = False) -> Iterator[Any]:
    """The results of `process` for each update, in their order; with `coalesce`, for all that have arrived when one is taken."""
    arriving = Arriving(updates)
    most = ROOM if coalesce else 1
    try:
        while taken := arriving.take(most):
            yield process(taken, arriving.look(most))
    finally:
        arriving.close()
