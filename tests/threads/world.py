"""What agents share: a materialisation that they read and change, its state directory, and the ledger of versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import evermat
from evermat import Materialisation
from tests.threads.harness import Shared
from tests.threads.ledger import Floor, Ledger, Window
from tests.threads.workload import START, Version, Workload, version_of

STEADY = hasattr(Materialisation, "snapshot")  # whether readers keep the version that they began with
FOLLOWS = hasattr(Materialisation, "refresh")


class World:
    """A materialisation of a workload.

    Attributes:
        m: the materialisation; another one once its state was closed and opened again.
        path: its state directory; None if it is in memory only.
        folder: where operations may write.
        threaded: whether agents have threads of their own.
        writers: held together by whoever changes `m`, and alone by who replaces it.
        busy: which parts are being changed.
    """

    def __init__(
        self, workload: Workload, m: Materialisation, folder: Path, *, path: Path | None = None, threaded: bool
    ) -> None:
        self.workload, self.m, self.folder, self.path, self.threaded = workload, m, folder, path, threaded
        self.ledger = Ledger(workload)
        self.ledger.base = m.version
        self.writers, self.busy = Shared(), set[int]()
        self.follower: Materialisation | None = None
        self.live: Materialisation | None = None
        self.followed = Floor()
        self._files = 0

    def file(self, ending: str) -> Path:
        """A path that no other operation writes to."""
        self._files += 1
        return self.folder / f"{id(object())}-{self._files}{ending}"

    def window(self) -> Window:
        """The versions that readers of the materialisation may see from now on."""
        return Window(self.ledger, self.ledger.memory)

    def window_on_disk(self) -> Window:
        """The versions that readers of the state directory may see from now on."""
        return Window(self.ledger, self.ledger.disk)

    def number_of(self, version: Version) -> int | None:
        """The number of a version in the state directory."""
        return None if self.ledger.base is None else self.ledger.base + sum(version)

    def marked(self, facts: Any, window: Window) -> Version:
        """The version of a source that does not change, by its markers."""
        version = version_of(facts["now"])
        window.claim_version("markers", version, lambda one: one)
        return version

    def close(self) -> None:
        for m in (self.m, self.follower, self.live):
            if m is not None:
                m.close()


class Source:
    """What is read: the materialisation as it is at each moment, or something that stays as it is.

    Attributes:
        steady: whether something that is read in several steps keeps the version of the first one, whatever happens meanwhile.
    """

    def __init__(self, world: World, facts: Callable[[], Any], window: Callable[[], Window], *, steady: bool) -> None:
        self.world, self._facts, self.window, self.steady = world, facts, window, steady

    @property
    def facts(self) -> Any:
        """The materialisation or snapshot; to be asked for after a window was begun."""
        return self._facts()

    @classmethod
    def changing(cls, world: World) -> Source:
        """The materialisation."""
        return cls(world, lambda: world.m, world.window, steady=STEADY)

    @classmethod
    def fixed(cls, world: World, facts: Any, version: Version) -> Source:
        """Something of which the version is known."""
        return cls(world, lambda: facts, lambda: Window(world.ledger, world.ledger.memory, version), steady=True)


def started(workload: Workload, folder: Path, *, state: bool = False, threaded: bool = True, **options: Any) -> World:
    """A world at its first version."""
    m = evermat.Program.parse(workload.text).materialise(workload.oracle_facts(START), **options)
    path = folder / "state" if state else None
    if path is not None:
        m.save(path)
    return World(workload, m, folder, path=path, threaded=threaded)
