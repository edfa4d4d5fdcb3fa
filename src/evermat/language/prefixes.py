"""Prefixes of a program, and the names of relations as users write them: `ex:Person` for `<http://example.org/Person>`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from evermat.core import DataError, Problem, UnknownRelationError, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.language.patterns.triples import OTHER_TRIPLE, TRIPLE

if TYPE_CHECKING:
    from evermat.language.model import Program, Relation

_T = TypeVar("_T")
_BLANK = r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*"
_IRI = r'<(?P<iri>[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]*)>'
# What may look like a declaration but is none is taken whole: comments, texts, IRIs.
_DECLARATION = re.compile(
    rf'//[^\n]*|/\*(?s:.*?)\*/|"(?:[^"\\\n]|\\.)*"|<[^<>"\s]*>'
    rf"|\.prefix\s+(?P<name>[A-Za-z][A-Za-z0-9_-]*):{_BLANK}{_IRI}"
)
_PREFIXED = re.compile(r"(?P<prefix>[A-Za-z][A-Za-z0-9_-]*):(?P<local>[^\x00-\x20<>\"{}|^`\\]*)")
_LAST_WORD = re.compile(r"[#/:](?=[^#/:]*>?$)")


def declared_prefixes(text: str) -> dict[str, str]:
    """The prefixes that the text of a program declares, with what they abbreviate; of two with one name the last one."""
    return {found["name"]: found["iri"] for found in _DECLARATION.finditer(text) if found["name"]}


class RelationNames(Mapping[str, "Relation"]):
    """Relations by name. A name may be abbreviated by a prefix; iteration yields the names in full.

    Attributes:
        prefixes: What each prefix abbreviates.
    """

    def __init__(self, relations: Mapping[str, Relation], prefixes: Mapping[str, str]) -> None:
        self._relations, self.prefixes = relations, prefixes

    def full(self, name: str) -> str:
        """The name in full of the relation that is meant; an unknown name stays as it is."""
        expanded = self._expanded(name)
        return expanded if expanded in self._relations else name

    def _expanded(self, name: str) -> str:
        """A name in full, whether there is such a relation or not."""
        found = _PREFIXED.fullmatch(name) if isinstance(name, str) and name not in self._relations else None
        namespace = None if found is None else self.prefixes.get(found["prefix"])
        return name if found is None or namespace is None else f"<{namespace}{found['local']}>"

    def __getitem__(self, name: str) -> Relation:
        relation = self._relations.get(self.full(name))
        if relation is None:
            raise UnknownRelationError(
                Problem(errors.NO_SUCH_RELATION, {"name": name}, help=self.hint(name) or self._elsewhere(name))
            )
        return relation

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.full(name) in self._relations

    def get(self, name: str, default: _T | None = None) -> Relation | _T | None:  # type: ignore[override]
        return self._relations.get(self.full(name), default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def abbreviated(self, name: str) -> str:
        """A name as users write it: with the prefix whose namespace is the longest that fits, else in full."""
        if not name.startswith("<"):
            return name
        fitting = [
            (len(iri), p) for p, iri in self.prefixes.items() if name.startswith(iri, 1) and len(iri) < len(name) - 2
        ]
        return name if not fitting else f"{max(fitting)[1]}:{name[max(fitting)[0] + 1 : -1]}"

    def hint(self, name: object) -> str:
        """Which relation may have been meant by an unknown name; nothing if none is near."""
        if not isinstance(name, str):
            return ""
        if f"<{name}>" in self._relations:
            return f"did you mean `<{name}>`?"
        shown = {self.abbreviated(full): full for full in self._relations}
        found = _PREFIXED.fullmatch(name)
        unknown = found is not None and found["prefix"] not in self.prefixes
        local = found["local"] if found is not None and unknown else name
        alike = [short for short, full in shown.items() if full.startswith("<") and _last_word(full) == local]
        meant = f"did you mean `{alike[0]}`?" if len(alike) == 1 else did_you_mean(name, [*shown, *self._relations])
        if found is None or not unknown or name.startswith(("http:", "https:", "urn:")):
            return meant
        return "; ".join(
            filter(
                None, (f"the prefix `{found['prefix']}:` is not declared", meant or self._prefix_hint(found["prefix"]))
            )
        )

    def _prefix_hint(self, prefix: str) -> str:
        return prefix_hint(prefix, self.prefixes)

    def _elsewhere(self, name: str) -> str:
        """Where the facts of a class or property are that has no relation of its own."""
        general = next((held for held in (TRIPLE, OTHER_TRIPLE) if held in self._relations), None)
        if general is None or not self._expanded(name).startswith("<"):
            return ""
        return f"its facts, if there are any, are in `{general}`; a query finds them: `{name}(x)` or `{name}(x, y)`"


def prefix_hint(prefix: str, known: Iterable[str]) -> str:
    """Which known prefix may have been meant."""
    return did_you_mean(f"{prefix}:", [f"{name}:" for name in known])


def suggestion(name: str, known: Collection[str]) -> str:
    """Which of the known names may have been meant, for relations also by their prefixes."""
    return known.hint(name) if isinstance(known, RelationNames) else did_you_mean(name, known)


def full_names(facts: Mapping[str, _T], names: RelationNames) -> Mapping[str, _T]:
    """Facts by relation, with the names in full.

    Raises:
        DataError: a relation is there by two of its names.
    """
    if all(names.full(name) == name for name in facts):
        return facts
    found: dict[str, _T] = {}
    before: dict[str, str] = {}
    for name, rows in facts.items():
        full = names.full(name)
        if full in found:
            raise DataError(Problem(errors.RELATION_TWICE, {"first": before[full], "second": name}))
        found[full], before[full] = rows, name
    return found


def _last_word(iri: str) -> str:
    split = _LAST_WORD.search(iri)
    return "" if split is None else iri[split.end() :].rstrip(">")


_KNOWN: WeakKeyDictionary[Program, RelationNames] = WeakKeyDictionary()


def relation_names(program: Program) -> RelationNames:
    """The relations of a program that users see, by all names that users may call them: its own prefixes come before others."""
    found = _KNOWN.get(program)
    if found is None:
        visible = {name: relation for name, relation in program.relations.items() if not relation.hidden}
        declared = declared_prefixes(program.source.text) if ".prefix" in program.source.text else {}
        found = _KNOWN[program] = RelationNames(visible, {**program.prefixes, **declared})
    return found
