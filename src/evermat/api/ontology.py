"""Translation of ontologies to rules."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.owl import Translation


def translate(
    ontology: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    base: str | None = None,
    ignore_imports: bool = False,
) -> Translation:
    """Translates ontologies to rules: `text()` of the result is a program, `notes` list axioms that rules cannot express.

    Args:
        ontology: one file or several: OWL or RDFS in RDF, functional syntax or OWL/XML.
        base: the base of relative IRIs.
        ignore_imports: whether to continue if an imported ontology is missing.

    Raises:
        DataError: an ontology cannot be read, or imports one that is missing.
    """
    from evermat.owl import translate as translate_files

    files = [ontology] if isinstance(ontology, str | PathLike) else ontology
    return translate_files(list(map(Path, files)), base=base, imports="ignore" if ignore_imports else "require")
