"""Notes on what rules cannot say: one for each axiom and reason, and groups of those that are alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SHOWN = 200  # characters of an example
_TERM = re.compile(r"<[^<>\s]*>|_:\S+")


@dataclass(frozen=True, slots=True)
class Note:
    """What an axiom says beyond rules, or why it is none.

    Attributes:
        axiom: The axiom, in functional syntax.
        why: The reason, with the part of the axiom that it is about.
        translated: Whether the rest of the axiom became rules.
        kind: The kind of the axiom, such as `SubClassOf`.
        reason: The reason without names: the same for all axioms that it applies to.
    """

    axiom: str
    why: str
    translated: bool
    kind: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"`{self.axiom}`: {self.why}{'' if self.translated else '; nothing of it is translated'}"


@dataclass(frozen=True, slots=True)
class NoteGroup:
    """Notes on axioms of one kind, for one reason; there is at least one.

    Attributes:
        kind: The kind of the axioms.
        reason: The reason, without names.
        translated: Whether the rest of the axioms became rules.
        notes: The notes, in the order of their axioms.
    """

    kind: str
    reason: str
    translated: bool
    notes: tuple[Note, ...]

    @property
    def example(self) -> str:
        """One of the axioms, perhaps without its end."""
        shortest = min(self.notes, key=lambda note: len(note.axiom)).axiom
        return shortest if len(shortest) <= _SHOWN else f"{shortest[:_SHOWN]}…"

    def __len__(self) -> int:
        return len(self.notes)

    def __str__(self) -> str:
        if len(self.notes) == 1:
            return str(self.notes[0])
        rest = "" if self.translated else "; nothing of them is translated"
        return f"{len(self.notes):,} × {self.kind}: {self.reason}{rest}; for example `{self.example}`"


def group_notes(notes: Iterable[Note]) -> tuple[NoteGroup, ...]:
    """The notes by kind and reason, large groups first."""
    groups: dict[tuple[str, str, bool], list[Note]] = {}
    for note in notes:
        groups.setdefault((note.kind, note.reason or note.why, note.translated), []).append(note)
    found = [NoteGroup(*key, tuple(members)) for key, members in groups.items()]
    return tuple(sorted(found, key=len, reverse=True))


def without_terms(why: str) -> str:
    """A reason without the terms that it names."""
    return _TERM.sub("…", why)
