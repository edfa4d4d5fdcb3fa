"""Columns of terms: which of them are plain RDF terms, and all of them in the form in which the engine holds them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.kernels import held_terms
from evermat.language import (
    PLAIN_BLANK,
    PLAIN_IRI,
    PLAIN_LANGUAGE,
    PLAIN_STRING,
    TYPES_OF_TAGGED,
    XSD_STRING,
    TermFault,
    checked_terms,
)

NODE = rf"^(?:{PLAIN_IRI}|{PLAIN_BLANK})$"
PROPERTY = rf"^{PLAIN_IRI}$"
OBJECT = rf"^(?:{PLAIN_IRI}|{PLAIN_BLANK}|{PLAIN_STRING}(?:{PLAIN_LANGUAGE}|\^\^{PLAIN_IRI})?)$"
GRAPH = rf"^(?:{PLAIN_IRI}|{PLAIN_BLANK})?$"
_DROPPED = f"^^<{XSD_STRING}>"

Faults: TypeAlias = dict[int, TermFault]


def is_plain(terms: Any, form: str) -> Any:
    """Which terms of an Arrow array of strings are plain: `form` is one of the above."""
    plain = pc.match_substring_regex(terms, form)
    if form != OBJECT:
        return plain
    for name in TYPES_OF_TAGGED:
        plain = pc.and_not(plain, pc.ends_with(terms, f'"^^{name}'))
    return plain


def as_held(objects: Any) -> Any:
    """Plain objects as the engine spells them; the same array if there is nothing to change."""
    dropped = pc.ends_with(objects, f'"{_DROPPED}')
    if pc.any(dropped, min_count=0).as_py():
        objects = pc.if_else(dropped, pc.utf8_slice_codeunits(objects, 0, -len(_DROPPED)), objects)
    return _with_small_languages(objects)


def _with_small_languages(objects: Any) -> Any:
    tagged = pc.invert(pc.or_(pc.ends_with(objects, '"'), pc.ends_with(objects, ">")))
    rows = np.flatnonzero(tagged)
    if not len(rows):
        return objects
    some = objects.take(pa.array(rows))
    large = pc.match_substring_regex(some, '^".*"@[a-z-]*[A-Z]')
    if not pc.any(large).as_py():
        return objects
    split = (text.rpartition("@") for text in some.filter(large).to_pylist())
    changed = [f"{text}@{language.lower()}" for text, _, language in split]
    mask = np.zeros(len(objects), np.bool_)
    mask[rows[large.to_numpy(zero_copy_only=False)]] = True
    return pc.replace_with_mask(objects, pa.array(mask), pa.array(changed, objects.type))


class WrongTerm(NamedTuple):
    """The first text of a column that is not a term: its row, counted from 0, and what is wrong with it."""

    row: int
    fault: TermFault


def checked_column(column: Any) -> tuple[Any, WrongTerm | None]:
    """A column of texts as terms in the form in which the engine holds them, or the first text that is no term.

    The column, chunked or not, perhaps dictionary-encoded, holds no NULLs and only valid UTF-8; it is returned as it is if all
    its texts are in that form already.
    """
    if pa.types.is_dictionary(column.type):
        return _checked_codes(column)
    if column.type == pa.string_view():  # which Arrow's functions do not take
        column = column.cast(pa.large_string())
    parts, row = [], 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        new, faults = _held_chunk(chunk)
        if faults:
            first = min(faults)
            return column, WrongTerm(row + first, faults[first])
        parts.append(new)
        row += len(chunk)
    if not isinstance(column, pa.ChunkedArray):
        return parts[0], None
    if all(new is old for new, old in zip(parts, column.chunks, strict=True)):
        return column, None
    return pa.chunked_array(parts, column.type), None


def _held_chunk(terms: Any) -> tuple[Any, Faults]:
    """Texts as the engine holds them, the same array if they are so already; and what is wrong with which rows."""
    held = held_terms(terms)
    if held.all():
        return terms, {}
    rows = np.flatnonzero(~held)
    codes = pc.dictionary_encode(terms.take(pa.array(rows)))  # each text is brought to its form once
    forms, wrong = _in_one_form(codes.dictionary)
    new = pc.replace_with_mask(terms, pa.array(~held), forms.take(codes.indices))
    faults = wrong and {
        int(row): wrong[code] for row, code in zip(rows, codes.indices.to_numpy(), strict=True) if code in wrong
    }
    return new, faults


def _checked_codes(column: Any) -> tuple[Any, WrongTerm | None]:
    """A dictionary-encoded column, as `checked_column` returns it: texts that are not used do not count."""
    parts, changed, row = [], False, 0
    before: tuple[Any, tuple[Any, Faults]] = (None, (None, {}))
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        terms = chunk.dictionary
        if terms.type == pa.string_view():
            terms = terms.cast(pa.large_string())
        if before[0] is None or not terms.equals(before[0]):
            before = terms, _held_chunk(terms)
        new, faults = before[1]
        if faults and (wrong := _first(chunk, faults)) is not None:
            return column, WrongTerm(row + wrong[0], wrong[1])
        changed |= new is not terms
        parts.append(new.take(chunk.indices) if new is not terms else chunk)
        row += len(chunk)
    if not changed:
        return column, None
    plain = [part.cast(pa.string()) for part in parts]
    return (pa.chunked_array(plain, pa.string()) if isinstance(column, pa.ChunkedArray) else plain[0]), None


def _in_one_form(terms: Any) -> tuple[Any, Faults]:
    """Different texts as the engine holds them, the same array if they are so already; and what is wrong with which of them."""
    plain = is_plain(terms, OBJECT)
    held = as_held(terms)
    if pc.all(plain, min_count=0).as_py():
        return held, {}
    odd = pc.invert(plain)
    numbers = np.flatnonzero(odd)
    found = checked_terms(terms.filter(odd).to_pylist())
    faults = {int(i): one for i, one in zip(numbers, found, strict=True) if isinstance(one, TermFault)}
    new = pa.array([one.text if isinstance(one, TermFault) else one for one in found], terms.type)
    return pc.replace_with_mask(held, odd, new), faults


def _first(chunk: Any, faults: Faults) -> tuple[int, TermFault] | None:
    """Where the first of these texts occurs, if one does: an encoded column may have texts that no row has."""
    codes = chunk.indices.to_numpy()
    rows = np.flatnonzero(np.isin(codes, np.array(list(faults), codes.dtype)))
    return (int(rows[0]), faults[int(codes[rows[0]])]) if len(rows) else None
