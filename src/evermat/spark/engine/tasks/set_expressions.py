r"""Expressions over sets of facts of one relation, as tasks get them: leaves are files, everything else is ∪, ∩ and \ ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evermat.spark.engine.tasks.serialization import FactFile

_UNBOUNDED = 1 << 62


@dataclass(frozen=True, eq=False)
class Files:
    """The facts in some files; no fact is in two of them."""

    files: tuple[FactFile, ...]


@dataclass(frozen=True, eq=False)
class Counted:
    """The facts whose amounts in some files sum up to more than 0. Only to be intersected with, or subtracted from, another expression."""

    files: tuple[FactFile, ...]


@dataclass(frozen=True, eq=False)
class Arrived:
    """The facts that tasks have derived and sent; a singleton in every process."""

    def __reduce__(self) -> str:
        return "ARRIVED"


@dataclass(frozen=True, eq=False)
class Combined:
    """Facts of either (`|`), of both (`&`), or of the first but not the second (`-`)."""

    operator: str
    left: Expression
    right: Expression


Leaf: TypeAlias = Files | Counted | Arrived
Expression: TypeAlias = Leaf | Combined

ARRIVED = Arrived()


def combined(operator: str, left: Expression | None, right: Expression | None) -> Expression | None:
    """A combination; None is the empty set."""
    if left is None:
        return right if operator == "|" else None
    if right is None:
        return None if operator == "&" else left
    return Combined(operator, left, right)


def files_of(files: Sequence[FactFile]) -> Expression | None:
    """The facts in some files; None if there are no files."""
    return Files(tuple(files)) if files else None


def most(expression: Expression | None) -> int:
    """An upper bound of the number of facts, computed without reading them."""
    match expression:
        case None:
            return 0
        case Files(files):
            return sum(file.rows for file in files)
        case Combined("|", left, right):
            return most(left) + most(right)
        case Combined("&", left, right):
            return min(most(left), most(right))
        case Combined(_, left, _):
            return most(left)
    return _UNBOUNDED


def leaves(expression: Expression) -> Iterator[Leaf]:
    """All leaves, with repetitions."""
    if isinstance(expression, Combined):
        yield from leaves(expression.left)
        yield from leaves(expression.right)
    else:
        yield expression


def generators(expression: Expression) -> Iterator[Leaf]:
    """Leaves that together hold all facts of the expression: of an intersection, those of the smaller side."""
    match expression:
        case Combined("|", left, right):
            yield from generators(left)
            yield from generators(right)
        case Combined("&", left, right):
            yield from generators(left if most(left) <= most(right) else right)
        case Combined(_, left, _):
            yield from generators(left)
        case _:
            assert not isinstance(expression, Counted)
            yield expression
