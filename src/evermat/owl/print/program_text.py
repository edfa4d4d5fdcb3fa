"""Rules printed as a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evermat.language import quote
from evermat.owl.notes import Note
from evermat.owl.ontology.axioms import KINDS
from evermat.owl.ontology.graph import Triple
from evermat.owl.print.prefixes import Names
from evermat.owl.rules.collect import NEEDS_TRIPLES, HelperRelation
from evermat.owl.rules.model import (
    Atom,
    Differ,
    DifferentValues,
    Equal,
    Helper,
    Inconsistent,
    Link,
    Match,
    Member,
    Rule,
    is_variable,
    terms_of,
)
from evermat.owl.vocabulary import TYPE

_COLUMNS = {1: "s:term", 2: "s:term, o:term"}
_HEADINGS = {True: "Beyond rules; the rest of these axioms stands above:", False: "Not translated:"}
OTHER = "other_triple"
INCONSISTENT = "inconsistent"


@dataclass(frozen=True)
class Layout:
    """How a program is to look: see `Translation.text`."""

    forbid: bool = True
    declare: bool = False
    triples: bool = False
    taken: Mapping[str, int] = field(default_factory=dict)


class Printer:
    """Prints rules; knows which names are relations and of how many columns."""

    def __init__(self, names: Names, arities: Mapping[str, int], layout: Layout) -> None:
        self._names, self._layout = names, layout
        self._arities = {**arities, **layout.taken}
        self._helpers: dict[str, str] = {}
        self._declares = layout.declare and not layout.triples
        self._mentioned: set[str] = set()
        self._others = False  # whether a class or property is not a relation of its own

    def program(
        self,
        rules: Iterable[Rule],
        facts: Iterable[Triple],
        helpers: Iterable[HelperRelation],
        notes: Sequence[Note],
        *,
        title: str,
        equality: bool,
    ) -> str:
        helpers = list(helpers)
        for helper in helpers:
            self._helpers[helper.name] = self._free(helper.name)
        groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
        printed = [rule for rule in rules if self._layout.triples or not _is_about_types(rule)]
        for rule in printed:
            groups[rule.kind].append(self._rule(rule))
        links = (Member(o, s) if p == TYPE else Link(p, s, o) for s, p, o in facts)
        stated = [f"{self._atom(link, set())}." for link in links]
        sections = [[f"// {kind}", *lines] for kind, lines in groups.items() if lines]
        if stated:
            sections.append(["// Facts", *stated])
        forbids = any(isinstance(rule.head, Inconsistent) for rule in printed)
        declarations = [*self._declarations(helpers, forbids=forbids)]
        if equality:
            declarations.insert(0, f'.pragma "equality" "{"auto" if self._layout.forbid else "axiomatise"}"')
        if declarations:
            sections.insert(0, declarations)
        prefixes = [f".prefix {name}: <{self._names.prefixes[name]}>" for name in sorted(self._names.used)]
        if prefixes:
            sections.insert(0, prefixes)
        if self._layout.triples:
            notes = [note for note in notes if note.why != NEEDS_TRIPLES]
        for translated, heading in _HEADINGS.items():
            remarks = [_comment(f"{note.axiom}: {note.why}") for note in notes if note.translated == translated]
            if remarks:
                sections.append([f"// {heading}", *remarks])
        return "\n\n".join("\n".join(lines) for lines in ([_comment(title)], *sections)) + "\n"

    def _declarations(self, helpers: Iterable[HelperRelation], *, forbids: bool) -> Iterator[str]:
        if forbids and INCONSISTENT not in self._layout.taken:
            yield f".decl {INCONSISTENT}(axiom:symbol){' forbidden' if self._layout.forbid else ''}"
        for helper in helpers:
            columns = ", ".join(f"{name}:{type_}" for name, type_ in helper.columns)
            yield f".decl {self._helpers[helper.name]}({columns}) {_comment(helper.meaning)}"
        if (self._others or self._declares) and OTHER not in self._layout.taken:
            yield f".decl {OTHER}(s:term, p:term, o:term)"
        for name in sorted(self._mentioned) if self._declares else ():
            if name not in self._layout.taken:
                yield f".decl {self._names(name)}({_COLUMNS[self._arities[name]]})"

    def _free(self, name: str) -> str:
        """A name for a helper that no relation of the user has."""
        while name in self._layout.taken or name in self._helpers.values():
            stem, _, number = name.rpartition("_")
            name = f"{stem}_{int(number) + 1}"
        return name

    def _rule(self, rule: Rule) -> str:
        counts: dict[str, int] = {}
        for atom in (rule.head, *rule.body):
            for term in terms_of(atom):
                counts[term] = counts.get(term, 0) + 1
        once = {term for term, count in counts.items() if count == 1 and is_variable(term)}
        head, *body = [self._atom(atom, once) for atom in (rule.head, *rule.body)]
        return f"{head} :- {', '.join(body)}." if body else f"{head}."

    def _atom(self, atom: Atom, once: set[str]) -> str:
        def term(text: str) -> str:
            return "_" if text in once else self._names(text)

        match atom:
            case Member(name, x):
                if self._is_relation(name, 1):
                    return f"{self._names(name)}({term(x)})"
                return f"{OTHER}({term(x)}, {self._names(TYPE)}, {self._names(name)})"
            case Link(name, x, y):
                if self._is_relation(name, 2):
                    return f"{self._names(name)}({term(x)}, {term(y)})"
                return f"{OTHER}({term(x)}, {self._names(name)}, {term(y)})"
            case Helper(name, terms):
                return f"{self._helpers[name]}({', '.join(map(term, terms))})"
            case Equal(x, y):
                return f"{term(x)} = {term(y)}"
            case Differ(x, y):
                return f"{term(x)} != {term(y)}"
            case DifferentValues(x, y):
                return f"different_values({term(x)}, {term(y)}) = 1"
            case Match(pattern, x, negated):
                return f"{'!' * negated}match({quote(pattern)}, {term(x)})"
            case Inconsistent(axiom):
                return f"{INCONSISTENT}({quote(axiom)})"

    def _is_relation(self, name: str, columns: int) -> bool:
        """Whether a class or a property is a relation of its own; a name that is both is a class."""
        if self._layout.triples:
            return True
        found = self._arities.setdefault(name, columns) == columns
        if found:
            self._mentioned.add(name)
        else:
            self._others = True
        return found


def _is_about_types(rule: Rule) -> bool:
    """Whether a rule has classes for values."""
    return any(isinstance(atom, Link) and atom.name == TYPE for atom in (rule.head, *rule.body))


def _comment(text: str) -> str:
    return "// " + " ".join(text.split())
