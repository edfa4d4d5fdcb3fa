"""The public classes and functions, which `evermat` exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.api.materialisation import Materialisation
    from evermat.api.program import Program, ProgramOptions, translate
    from evermat.api.state import changes, migrate, open, query, vacuum, versions  # noqa: A004
    from evermat.api.terms import blank_node, iri, literal
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
