"""How kernels are compiled, and those that several floors use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.kernels import jit
    from evermat.kernels.interpreter_lock import FEW, MANY
    from evermat.kernels.jit import (
        JIT_DISABLED,
        compiled,
        keeps_kernels,
        load_word,
        prefetch,
        publish,
        watching_compilation,
    )
    from evermat.kernels.terms import FEW_TERMS, held_terms, mark_terms
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
