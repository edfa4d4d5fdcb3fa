"""How RDF is read: known to all readers, so that none of them loads RDF for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RdfOptions:
    """How RDF is read."""

    base: str | None = None  # what relative IRIs are relative to, if the file does not say it
    skip: bool = False  # whether malformed statements are left out and counted
    blank: str = ""  # what the labels of blank nodes begin with


AS_IT_IS = RdfOptions()
