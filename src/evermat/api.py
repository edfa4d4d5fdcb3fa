"""What users import."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path

from evermat.errors import Problem
from evermat.program import model
from evermat.program.compile import compile_program, read_program
from evermat.program.strata import Stratum
from evermat.source import Source


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

    def __repr__(self) -> str:
        return f"<Program {self._compiled.source.name}: {len(self.relations)} relations, {len(self._compiled.rules)} rules>"
