"""Ontologies are translated in many threads at once, each as if it were alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evermat
from evermat.core import EvermatError
from evermat.owl.translation import translate
from tests.owl.test_translation import CASES, cases
from tests.support.many_threads import same_in_threads


def test_unrelated_ontologies() -> None:
    def translated(path: Path) -> str:
        try:
            translation = translate([path])
        except EvermatError as error:
            return str(error)
        return translation.text(declare=True, facts=True)

    same_in_threads(translated, [folder / name for folder in (CASES, CASES / "bad") for name in cases(folder)])


def test_programs_with_rule_sets() -> None:
    def described(entailment: Any) -> object:
        text = ".prefix x: <http://x/>\ntriple(x:a, x:p, x:b)."
        return evermat.Program.parse(text, entailment=entailment, trivial=True).describe()

    same_in_threads(described, ["rdfs", "owl2rl"], 0.3)
