"""What readers of a materialisation get: one version of it, whatever happens to the materialisation meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from evermat.algebra import Counters
from evermat.core import Problem, ProgramError
from evermat.core import error_catalogue as errors
from evermat.language import Program, Relation, Stratum
from evermat.runtime.engine import Engine, EngineSnapshot


class Lease:
    """What keeps the files of an engine: they are deleted when they have no reader any more."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Published:
    """What a materialisation shows its readers beside facts. Each commit replaces it as a whole.

    Attributes:
        engine: What holds the facts.
        version: The version of the state directory; None if there is none.
        positions: How far streams have been followed, by their names.
        opened: The stats of the version that was opened, if one was.
        counters: Which counters of each stratum are valid.
        undefined: Bindings dropped because an expression had no value, by the position of the rule.
    """

    engine: Engine
    version: int | None
    positions: Mapping[str, str]
    opened: dict[str, Any] | None
    skipped: Mapping[str, int]
    counters: Mapping[Stratum, Counters]
    undefined: Mapping[int, int]
    lease: Lease = field(default_factory=Lease)

    @classmethod
    def of(
        cls,
        engine: Engine,
        version: int | None = None,
        positions: Mapping[str, str] = MappingProxyType({}),
        opened: dict[str, Any] | None = None,
        skipped: Mapping[str, int] = MappingProxyType({}),
        lease: Lease | None = None,
    ) -> Published:
        """What to publish of an engine that is between two updates."""
        counters, undefined = dict(engine.counters), engine.undefined()
        return cls(engine, version, positions, opened, skipped, counters, undefined, lease or Lease())


@dataclass(frozen=True, slots=True)
class Pin:
    """One version: the facts, which stay valid as long as the pin exists, and what was published with them."""

    published: Published
    reading: EngineSnapshot

    @staticmethod
    def of(engine: Engine) -> Pin:
        """The only version of an engine that is not updated any more."""
        return Pin(Published.of(engine), engine.snapshot())

    @property
    def engine(self) -> Engine:
        return self.published.engine

    @property
    def program(self) -> Program:
        return self.published.engine.program

    def names(self) -> Iterator[str]:
        """The relations that users see."""
        return (name for name, relation in self.program.relations.items() if not relation.hidden)

    def relation(self, name: str) -> Relation:
        """The relation of a name that the program had; raises a `ProgramError` if it has it no more."""
        relation = self.program.relations.get(name)
        if relation is None or relation.hidden:
            raise ProgramError(Problem(errors.RELATION_REMOVED, {"name": name}))
        return relation
