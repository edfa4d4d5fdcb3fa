"""What users import."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.errors import Problem
from evermat.program import model
from evermat.program.compile import compile_program, read_program
from evermat.program.strata import Stratum
from evermat.source import Source

if TYPE_CHECKING:
    from evermat.materialisation import Materialisation


class Program:
    """A Datalog program that passed all checks.

    >>> program = Program.parse(".decl a(x:number) .decl b(x:number) b(x) :- a(x).")
    >>> program.relations
    ['a', 'b']
    """

    def __init__(self, compiled: model.Program) -> None:
        self._compiled = compiled

    @classmethod
    def parse(cls, text: str, name: str = "<text>") -> Program:
        """The program in a text; `name` is what errors call it.

        Raises:
            ProgramError: with all errors of the text at once.
        """
        return cls(compile_program(Source(name, text)))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Program:
        """The program in a file.

        Raises:
            ProgramError: if it cannot be read, or with all its errors at once.
        """
        return cls(read_program(Path(path)))

    @cached_property
    def relations(self) -> list[str]:
        """The names of the relations, in the order of their declaration."""
        return [name for name, relation in self._compiled.relations.items() if not relation.hidden]

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """The strata in the order of evaluation."""
        return self._compiled.strata

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is worth saying about the program but harmless."""
        return self._compiled.warnings

    def materialise(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        engine: str = "memory",
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | None = None,
        counters: str = "none",
    ) -> Materialisation:
        """Computes all consequences of the program and some explicit facts.

        Args:
            facts: explicit facts by relation, as rows, Arrow, pandas or polars; any relation may have some.
            engine: `memory`.
            limit_rounds: stop after so many rounds of rule application.
            limit_facts: stop when there are more facts.
            limit_seconds: stop when reasoning takes longer.
            memory: stop when the process uses more bytes.
            counters: which derivation counters to keep for later updates: `none`, `nonrecursive` or `both`.

        Raises:
            DataError: the facts do not fit their relations.
            LimitError: a limit was reached.
        """
        from evermat.algebra import Counters  # noqa: PLC0415
        from evermat.columns.run import Limits  # noqa: PLC0415
        from evermat.materialisation import materialise_program  # noqa: PLC0415

        if engine != "memory":
            raise ValueError(f"engine {engine!r} is not known: use 'memory'")
        if counters.upper() not in Counters.__members__:
            raise ValueError(f"counters {counters!r} are not known: use 'none', 'nonrecursive' or 'both'")
        limits = Limits(limit_rounds, limit_facts, limit_seconds, memory)
        kept = Counters[counters.upper()]
        return materialise_program(self._compiled, facts or {}, limits=limits, counters=kept)

    def __repr__(self) -> str:
        return f"<Program {self._compiled.source.name}: {len(self.relations)} relations, {len(self._compiled.rules)} rules>"
