"""What comes out of a translation: rules, each once and safe, and notes on what rules cannot say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evermat.owl import vocabulary as vocab
from evermat.owl.notes import Note
from evermat.owl.ontology.expressions import Namer, written
from evermat.owl.ontology.graph import Triple
from evermat.owl.rules.model import (
    Atom,
    Body,
    Differ,
    Equal,
    Helper,
    Inconsistent,
    Link,
    Member,
    Rule,
    is_variable,
    substituted,
    terms_of,
)
from evermat.owl.vocabulary import is_blank, is_iri, owl

NEEDS_TRIPLES = "classes are values here, which only rules over `triple` can express"
_LONGEST = 500  # characters of an axiom that an inconsistency shows
_VARIABLES = "xyzuvw"
_SCHEMA = (
    vocab.CHARACTERISTICS.keys()
    | {vocab.SUB_CLASS, vocab.EQUIVALENT_CLASS, vocab.SUB_PROPERTY, vocab.EQUIVALENT_PROPERTY}
    | {vocab.DOMAIN, vocab.RANGE, vocab.INVERSE, owl("disjointWith")}
)


@dataclass(frozen=True, slots=True)
class HelperRelation:
    """A relation of the translation's own, its columns with their types, and what is in it."""

    name: str
    columns: tuple[tuple[str, str], ...]
    meaning: str


class Output:
    """Collects rules and notes, axiom by axiom."""

    def __init__(self, name: Namer) -> None:
        self.name = name
        self.notes: list[Note] = []
        self.helpers: dict[str, HelperRelation] = {}
        self.facts: list[Triple] = []  # that no rule can state, as they are about nodes without a name
        self._rules: dict[tuple[Atom, Body], Rule] = {}
        self._numbers: dict[str, int] = {}  # of helpers, by the beginning of their names
        self._kind = self._text = ""
        self._lost: dict[str, str] = {}  # what is lost, with the same without names
        self._emitted = False
        self._variables = 0

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(self._rules.values())

    def keep(self, rules: Sequence[Rule]) -> None:
        """Leaves only these rules, and those relations of the translation's own that they use, renumbered."""
        used = {atom.name for rule in rules for atom in (rule.head, *rule.body) if isinstance(atom, Helper)}
        self._numbers = {}
        new: dict[str, str] = {}
        for name in self.helpers:
            if name in used:
                stem = name.rpartition("_")[0]
                self._numbers[stem] = self._numbers.get(stem, 0) + 1
                new[name] = f"{stem}_{self._numbers[stem]}"
        self.helpers = {new[name]: replace(self.helpers[name], name=new[name]) for name in new}

        def called(atom: Any) -> Any:
            return Helper(new[atom.name], atom.terms) if isinstance(atom, Helper) else atom

        renamed = [replace(rule, head=called(rule.head), body=tuple(map(called, rule.body))) for rule in rules]
        gone = {rule.axiom for rule in self.rules} - {rule.axiom for rule in renamed}
        self.notes = [replace(note, translated=note.translated and note.axiom not in gone) for note in self.notes]
        self._rules = {(rule.head, rule.body): rule for rule in renamed}

    def begin(self, kind: str, text: str) -> None:
        """What follows comes from an axiom with this text."""
        self._kind, self._text, self._lost, self._emitted, self._variables = kind, text, {}, False, 0

    def end(self) -> None:
        """Notes what was lost of the axiom."""
        self.notes += [Note(self._text, why, self._emitted, self._kind, reason) for why, reason in self._lost.items()]

    def lose(self, expression: object, role: str, why: str, reason: str = "") -> None:
        """Notes that a part of the axiom, here in some role, is not translated; `reason` is the same without names."""
        text = "" if expression is None else written(expression, self.name)
        what = f" as a {role}: " if role else ": "
        constructor, parenthesis, _ = text.partition("(")
        self._lost.setdefault(
            f"{text and text + what}{why}", f"{constructor + what if parenthesis else ''}{reason or why}"
        )

    def fresh(self) -> str:
        """A variable that the axiom does not have yet."""
        self._variables += 1
        return f"v{self._variables}"

    def helper(self, stem: str, columns: tuple[str, ...], meaning: str = "") -> str:
        """A relation of the translation's own; columns are `name` or `name:type`."""
        self._numbers[stem] = self._numbers.get(stem, 0) + 1
        name = f"{stem}_{self._numbers[stem]}"
        typed = tuple((column.partition(":")[0], column.partition(":")[2] or "term") for column in columns)
        self.helpers[name] = HelperRelation(name, typed, meaning or self._text)
        return name

    def emit(self, head: Atom, body: Body) -> None:
        """Adds a rule, unless it says nothing; what cannot be said is noted."""
        found = _usual(*_without_equations(head, body))
        if found is None:
            self._emitted = True
            return
        head, body = found
        if isinstance(head, Inconsistent):
            text = self._text if len(self._text) <= _LONGEST else f"{self._text[:_LONGEST]}…"
            head = Inconsistent(head.axiom or text)
        if not body and any(map(is_blank, terms_of(head))) and (fact := _triple(head)):
            self.facts.append(fact)  # of a node that has no name outside
            self._emitted = True
            return
        if any(isinstance(atom, Link) and atom.name in vocab.TOP for atom in body) or not _is_safe(head, body):
            self.lose(None, "", "it ranges over everything")
            return
        about_types = any(isinstance(atom, Link) and atom.name == vocab.TYPE for atom in (head, *body))
        if about_types:
            self.lose(None, "", NEEDS_TRIPLES)
        elif isinstance(head, Link | Member) and head.name in _SCHEMA:
            self.lose(None, "", "it is about the ontology itself: its consequences are not translated to rules")
        head, body = _renamed(head, body)
        self._emitted = self._emitted or not about_types
        self._rules.setdefault((head, body), Rule(head, body, self._kind, self._text))


def _triple(head: Atom) -> Triple | None:
    match head:
        case Member(name, term):
            return term, vocab.TYPE, name
        case Link(name, subject, object_):
            return subject, name, object_
        case Equal(left, right):
            return left, vocab.SAME, right
    return None


def _without_equations(head: Atom, body: Body) -> tuple[Atom, Body]:
    """A rule in which a variable that can only be one term is that term."""
    if not any(isinstance(atom, Equal) for atom in body):
        return head, body
    terms: dict[str, str] = {}
    rest: list[Atom] = []
    for atom in body:
        if not isinstance(atom, Equal):
            rest.append(atom)
            continue
        left, right = terms.get(atom.left, atom.left), terms.get(atom.right, atom.right)
        if not is_variable(left):
            left, right = right, left
        if is_variable(left):
            terms = {term: right if other == left else other for term, other in terms.items()} | {left: right}
        elif left != right:
            rest.append(Link(vocab.SAME, right, left))
    return substituted(head, terms), tuple(substituted(atom, terms) for atom in rest)


def _usual(head: Atom, body: Body) -> tuple[Atom, Body] | None:
    """A rule in its usual form, or None if it says nothing."""
    literals = [_as_member(atom) for atom in body]
    head = _as_member(head)
    match head:
        case Link(name) if name in vocab.TOP:
            return None
        case Member(name) if name in vocab.EVERYTHING:
            return None
        case Link(name) if name in vocab.BOTTOM:
            head = Inconsistent("")
        case Member(name) if name == vocab.NOTHING:
            head = Inconsistent("")
        case Link(name, left, right) if name == vocab.SAME:
            head = Equal(left, right)
    if isinstance(head, Equal):
        if head.left == head.right:
            return None
        if is_variable(head.left) or is_variable(head.right):
            literals.append(Differ(head.left, head.right))
    literals = list(dict.fromkeys(literals))
    if head in literals or any(isinstance(atom, Link) and atom.name in vocab.BOTTOM for atom in literals):
        return None
    return head, tuple(literals)


def _as_member(atom: Atom) -> Atom:
    """A triple that gives a class is a fact of the class."""
    if isinstance(atom, Link) and atom.name == vocab.TYPE and is_iri(atom.object):
        return Member(atom.object, atom.subject)
    return atom


def _is_safe(head: Atom, body: Body) -> bool:
    """Whether every variable is bound by an atom."""
    bound = {term for atom in body if isinstance(atom, Member | Link | Helper) for term in terms_of(atom)}
    return all(term in bound for atom in (head, *body) for term in terms_of(atom) if is_variable(term))


def _renamed(head: Atom, body: Body) -> tuple[Atom, Body]:
    """A rule whose variables are called x, y, z and so on, in the order in which the body has them."""
    names: dict[str, str] = {}
    for atom in (*body, head):
        for term in terms_of(atom):
            if is_variable(term) and term not in names:
                round_, letter = divmod(len(names), len(_VARIABLES))
                names[term] = f"{_VARIABLES[letter]}{round_ or ''}"
    return substituted(head, names), tuple(substituted(atom, names) for atom in body)
