"""Declared types: primitive types, subtypes, unions, and how they relate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from evermat.core import Problems, Span
from evermat.core import error_catalogue as errors
from evermat.language.builtins import Type
from evermat.language.syntax.ast import Name, TypeDeclaration, Unread

PRIMITIVES = {str(t): t for t in Type}
_SHOWN = 8  # types of a cycle that are shown
_ELSEWHERE = {  # what other languages call the primitive types
    "double": "float",
    "iri": "term",
    **dict.fromkeys(("int", "int64", "integer"), "number"),
    **dict.fromkeys(("str", "string"), "symbol"),
    **dict.fromkeys(("uint", "uint64"), "unsigned"),
}


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type of the program. `parent` of a subtype is what it narrows; `members` of a union what it unites."""

    name: str
    primitive: Type
    parent: str | None = None
    members: tuple[str, ...] = ()


class Types:
    """All types of a program.

    The subtype relation is nominal, as in Soufflé: a subtype is below its parent, a member below its union, and
    every type below its primitive type.
    """

    def __init__(self, declarations: Iterable[TypeDeclaration | Unread], problems: Problems) -> None:
        self._types = {name: DeclaredType(name, primitive) for name, primitive in PRIMITIVES.items()}
        self._problems = problems
        self._declarations: dict[str, TypeDeclaration] = {}
        self._unread: set[str] = set()
        self._below: dict[str, dict[str, None]] = {}
        for declaration in declarations:
            if isinstance(declaration, Unread):
                self._unread.update(declaration.names)
                continue
            name = declaration.name.text
            if name in PRIMITIVES or name in self._declarations:
                first = self._declarations.get(name)
                problems.add(
                    errors.DECLARED_TWICE, declaration.name.span, what="type", name=name, place=self._place(first)
                )
            else:
                self._declarations[name] = declaration
        self._define_all()
        self._narrower: dict[str, list[str]] = {}
        self._unions: dict[str, list[str]] = {}
        for type_ in self._types.values():
            if type_.parent is not None:
                self._narrower.setdefault(type_.parent, []).append(type_.name)
            for member in dict.fromkeys(type_.members):
                self._unions.setdefault(member, []).append(type_.name)

    def primitive(self, name: str, span: Span) -> Type | None:
        """The primitive type of a type of that name; reports one that is not declared."""
        if name in self._types:
            return self._types[name].primitive
        if name not in self._declarations and name not in self._unread:
            self._problems.add(errors.UNKNOWN_TYPE, span, self._hint(name), name=name)
        return None

    def knows(self, name: str) -> bool:
        """Whether there is a type of that name and nothing is wrong with it."""
        return name in self._types

    def _hint(self, name: str) -> str:
        if name.lower() in _ELSEWHERE:
            return f"did you mean `{_ELSEWHERE[name.lower()]}`?"
        return self._problems.hint(name, {**self._types, **self._declarations})

    def _place(self, first: TypeDeclaration | None) -> str:
        if first is None:
            return "it is a type of the language itself"
        place = self._problems.source.position(first.name.span.start)
        return f"it is declared at {place.line}:{place.column}"

    # --- definitions ---

    def _define_all(self) -> None:
        """Defines every type after those that it mentions; walks without recursion, for chains may be long."""
        done: set[str] = set(PRIMITIVES)
        for start in self._declarations:
            path = {start: self._mentioned(start)} if start not in done else {}
            while path:
                name = next(reversed(path))
                member = next((m for m in path[name] if m.text not in done), None)
                if member is None:
                    path.popitem()
                    done.add(name)
                    self._define(self._declarations[name])
                elif member.text in path:
                    cycle = [*takewhile(member.text.__ne__, reversed(path)), member.text][::-1]
                    self._report_cycle(cycle)
                    done.update(cycle)
                else:
                    path[member.text] = self._mentioned(member.text)

    def _mentioned(self, name: str) -> Iterator[Name]:
        return iter([m for m in self._declarations[name].members if m.text in self._declarations])

    def _define(self, declaration: TypeDeclaration) -> None:
        name = declaration.name.text
        found: list[DeclaredType] = []
        for member in declaration.members:
            if (defined := self._types.get(member.text)) is None:
                self.primitive(member.text, member.span)
                continue
            if found and defined.primitive is not found[0].primitive:
                self._problems.add(
                    errors.MIXED_UNION, member.span, name=name, first=found[0].primitive, second=defined.primitive
                )
            found.append(defined)
        if len(found) < len(declaration.members):
            return
        if declaration.subtype:
            self._types[name] = DeclaredType(name, found[0].primitive, parent=found[0].name)
        else:
            self._types[name] = DeclaredType(name, found[0].primitive, members=tuple(t.name for t in found))

    def _report_cycle(self, cycle: list[str]) -> None:
        first = min(cycle, key=lambda name: self._declarations[name].span.start)
        start = cycle.index(first)
        shown = [*cycle[start:], *cycle[:start], first]
        if len(shown) > _SHOWN:
            shown[_SHOWN // 2 : -_SHOWN // 2] = ["…"]
        steps = " → ".join(f"`{name}`" if name != "…" else name for name in shown)
        self._problems.add(errors.CYCLIC_TYPE, self._declarations[first].name.span, name=first, cycle=steps)

    # --- subtypes ---

    def is_subtype(self, low: str, high: str) -> bool:
        """Whether every value of `low` is one of `high`."""
        return low == high or high == str(self._types[low].primitive) or low in self._all_below(high)

    def meet(self, first: str, second: str) -> str | None:
        """A type whose values belong to both, or None if there is none."""
        if self.is_subtype(first, second):
            return first
        if self.is_subtype(second, first):
            return second
        if not self._types[first].members and not self._types[second].members:
            return None
        return next((name for name in self._all_below(first) if name in self._all_below(second)), None)

    def _all_below(self, high: str) -> dict[str, None]:
        """The types below a declared type, itself included, widest first."""
        if (known := self._below.get(high)) is not None:
            return known
        found = {high: None}
        missing: dict[str, int] = {}  # unions: members not yet found
        waiting = [high]
        for name in waiting:
            below = [*self._types[name].members, *self._narrower.get(name, ())]
            for union in self._unions.get(name, ()):
                if union not in missing:
                    missing[union] = len(set(self._types[union].members))
                missing[union] -= 1
                if not missing[union]:
                    below.append(union)
            new = [other for other in dict.fromkeys(below) if other not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        self._below[high] = found
        return found
