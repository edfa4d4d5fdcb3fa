"""Ontologies to programs: `translate` makes rules of their axioms, `entailment` has RDFS and OWL 2 RL as rules over triples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.owl.rulesets.regimes import entailment, schema_rules, trivial_rules
    from evermat.owl.translation import Note, NoteGroup, Translation, group_notes, translate
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
