"""Which texts of an Arrow array are RDF terms in the form in which the engine holds them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import check_stop
from evermat.language import HELD_TERM, NOT_HELD

Mask = npt.NDArray[np.bool_]

FEW_TERMS = 1 << 12
"""Fewer texts than these are not worth loading the kernel."""

_PIECE = 1 << 20  # texts between two looks at limits


def held_terms(terms: pa.Array, known: Mask | None = None) -> Mask:
    """Which texts of an array of strings without nulls are terms as the engine holds them; those in `known` are not looked at.

    A kernel accepts nearly all of them, and the regular expression decides about the rest.
    """
    if not (pa.types.is_string(terms.type) or pa.types.is_large_string(terms.type)):
        terms = terms.cast(pa.large_string())
    held = np.zeros(len(terms), np.bool_) if known is None else known.copy()
    if len(terms) >= FEW_TERMS and mark_terms(terms, held) == 0:
        return held
    rest = np.flatnonzero(~held)
    for first in range(0, len(rest), _PIECE):
        some = rest[first : first + _PIECE]
        held[some] = _by_expression(terms.take(pa.array(some)) if len(some) < len(terms) else terms)
        check_stop()
    return held


def mark_terms(terms: pa.Array, held: Mask) -> int:
    """Marks those terms of an array of strings, large or not, that the kernel accepts; returns how many texts are left.

    What is marked already is not looked at. Other threads may mark terms meanwhile.
    """
    from evermat.kernels.term_scan import find_terms  # noqa: PLC0415  (few texts do not need compiled code)

    _, offsets, data = terms.buffers()
    ends = np.frombuffer(offsets, "i8" if pa.types.is_large_string(terms.type) else "i4")
    ends, texts = ends[terms.offset : terms.offset + len(terms) + 1], np.frombuffer(data or b"", np.uint8)
    texts.flags.writeable = ends.flags.writeable = False  # as the kernel is compiled for
    left = 0
    for first in range(0, len(terms), _PIECE):
        left += find_terms(texts, ends, first, min(first + _PIECE, len(terms)), held)
        check_stop()
    return left


def _by_expression(terms: pa.Array) -> Mask:
    held = pc.match_substring_regex(terms, f"^(?:{HELD_TERM})$")
    for ending in NOT_HELD:
        held = pc.and_not(held, pc.ends_with(terms, ending))
    mask: Mask = held.to_numpy(zero_copy_only=False)
    return mask
