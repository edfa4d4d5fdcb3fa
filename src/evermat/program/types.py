"""Declared types: primitive types, subtypes, unions, and how they relate."""

from __future__ import annotations

from dataclasses import dataclass

from evermat import errors
from evermat.errors import Problems, did_you_mean
from evermat.program.builtins import Type
from evermat.program.syntax import TypeDeclaration
from evermat.source import Span

_CHAIN_LIMIT = 200
PRIMITIVES = {str(t): t for t in Type}


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type of the program. `parents` of a subtype is what it narrows; `members` of a union what it unites."""

    name: str
    primitive: Type
    parent: str | None = None
    members: tuple[str, ...] = ()


class Types:
    """All types of a program.

    The subtype relation is nominal, as in Soufflé: a subtype is below its parent, a member below its union, and
    every type below its primitive type.
    """

    def __init__(self, declarations: list[TypeDeclaration], problems: Problems) -> None:
        self._types = {name: DeclaredType(name, primitive) for name, primitive in PRIMITIVES.items()}
        self._problems = problems
        self._declarations: dict[str, TypeDeclaration] = {}
        for declaration in declarations:
            name = declaration.name.text
            if name in PRIMITIVES or name in self._declarations:
                first = self._declarations.get(name)
                place = problems.source.place(first.name.span.start) if first else None
                where = f"line {place.line}" if place else "the language itself"
                problems.add(errors.DECLARED_TWICE, declaration.name.span, what="type", name=name, place=where)
            else:
                self._declarations[name] = declaration
        for name in self._declarations:
            self._define(name, [])

    def primitive(self, name: str, span: Span) -> Type | None:
        """The primitive type of a type of that name; reports one that is not declared."""
        if name in self._types:
            return self._types[name].primitive
        if name not in self._declarations:
            self._problems.add(errors.UNKNOWN_TYPE, span, did_you_mean(name, self.names), name=name)
        return None

    @property
    def names(self) -> list[str]:
        """All names of types."""
        return [*self._types, *self._declarations]

    def _define(self, name: str, path: list[str]) -> DeclaredType | None:
        if name in self._types:
            return self._types[name]
        declaration = self._declarations[name]
        if name in path:
            cycle = " → ".join([*path[path.index(name) :], name])
            self._problems.add(errors.CYCLIC_TYPE, declaration.name.span, name=name, cycle=cycle)
            return None
        if len(path) > _CHAIN_LIMIT:
            self._problems.add(errors.TOO_DEEP, declaration.name.span, limit=_CHAIN_LIMIT)
            return None
        found: list[DeclaredType] = []
        for member in declaration.members:
            if member.text not in self._types and member.text not in self._declarations:
                self._problems.add(errors.UNKNOWN_TYPE, member.span, did_you_mean(member.text, self.names), name=member.text)
            elif defined := self._define(member.text, [*path, name]):
                if found and defined.primitive is not found[0].primitive:
                    self._problems.add(
                        errors.MIXED_UNION, member.span, name=name, first=found[0].primitive, second=defined.primitive
                    )
                found.append(defined)
        if len(found) < len(declaration.members):
            return None
        if declaration.subtype:
            defined = DeclaredType(name, found[0].primitive, parent=found[0].name)
        else:
            defined = DeclaredType(name, found[0].primitive, members=tuple(t.name for t in found))
        self._types[name] = defined
        return defined

    def is_subtype(self, low: str, high: str) -> bool:
        """Whether every value of `low` is one of `high`."""
        if low == high or high == str(self._types[low].primitive):
            return True
        below, above = self._types[low], self._types[high]
        if below.members:
            return all(self.is_subtype(member, high) for member in below.members)
        if any(self.is_subtype(low, member) for member in above.members):
            return True
        return below.parent is not None and self.is_subtype(below.parent, high)

    def meet(self, first: str, second: str) -> str | None:
        """A type whose values belong to both, or None if there is none."""
        if self.is_subtype(first, second):
            return first
        if self.is_subtype(second, first):
            return second
        for one, other in ((first, second), (second, first)):
            for member in self._types[one].members:
                if (found := self.meet(member, other)) is not None:
                    return found
        return None
