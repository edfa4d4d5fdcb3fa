"""What tests need of the inside of a materialisation; not part of the public interface, and may change at any time."""

from __future__ import annotations

from typing import Any

from evermat.api import Materialisation
from evermat.columns import decode_rows
from evermat.core import Which
from evermat.runtime import Engine


def engine_of(m: Materialisation) -> Any:
    """The engine that holds the facts."""
    return m._versions.pin().engine  # noqa: SLF001


def state_of(m: Materialisation) -> Any:
    """The state of the engine: sets, counters and rules of its strata."""
    return engine_of(m).state


def passing_of(m: Materialisation) -> Any:
    """What the last update of a stream has inserted last, because the next one deletes it."""
    return m._versions._passing  # noqa: SLF001


def held_facts(m: Materialisation, which: Which = "all") -> dict[str, set[tuple[Any, ...]]]:
    """The facts of all relations as the engine holds them: of hidden relations too, and over representatives."""
    engine: Engine = engine_of(m)
    reading = engine.snapshot()
    return {
        name: {
            row
            for batch in reading.scan(name, which, expanded=False)
            for row in decode_rows(batch, relation.types, reading.dictionary)
        }
        for name, relation in engine.program.relations.items()
    }
