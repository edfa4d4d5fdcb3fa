"""The shapes of table 1: programs and their facts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import evermat
from bench.equality.data import FEW_NAMES, MANY_NAMES, Facts, cliques, cyc, universities
from bench.equality.programs import CLIQUES, CYCLOPAEDIA, university_ontology


@dataclass(frozen=True)
class Shape:
    """A program and its facts, in a small size and in a full one."""

    name: str
    program: Callable[[str], evermat.Program]
    """By what is done about equality."""
    facts: Callable[[bool], Facts]
    """Those of the small size, or of the full one."""
    version: int = 1
    """To be counted up when the facts of the full size become others."""


def parsed(text: str, equality: str) -> evermat.Program:
    """The program in a text."""
    return evermat.Program.parse(text, equality=equality)


def translated(equality: str) -> evermat.Program:
    """The rules of the universities."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        ontology = Path(folder) / "ontology.ttl"
        ontology.write_text(university_ontology(), encoding="utf-8")
        return evermat.Program.parse(ontology=[ontology], equality=equality)


def universities_of(small: bool, *, names: tuple[float, int] | None, many: int) -> Facts:
    """A part of one university, or several."""
    return universities(1, 4, names=names) if small else universities(many, names=names)


UOBM, PLAIN, CYC = "uobm", "plain", "cyc"
MANY, FEW = 30, 4  # universities
NAMES = (10, 30, 100, 300)  # of each thing of `cyc`


def cyc_of(small: bool, names: int) -> Facts:
    """As many explicit facts whatever the names are."""
    return cyc(100, names, 360) if small else cyc(500, names, 400)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(UOBM, translated, partial(universities_of, names=MANY_NAMES, many=MANY)),
        Shape("uobm-few", translated, partial(universities_of, names=FEW_NAMES, many=FEW)),
        Shape("cliques", partial(parsed, CLIQUES), lambda small: cliques(150, 60) if small else cliques(500, 300)),
        Shape(PLAIN, translated, partial(universities_of, names=None, many=FEW)),
        *(Shape(f"{CYC}-{names}", partial(parsed, CYCLOPAEDIA), partial(cyc_of, names=names)) for names in NAMES),
    )
}
