"""Columns of terms: which of them are plain RDF terms, and all of them in the form in which the engine holds them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.language import (
    HELD_TERM,
    NOT_HELD,
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
_SAMPLE = 1 << 12  # texts that are looked at to see whether they repeat
_SPREAD = 1 << 13  # the same for a column of which all texts may be looked up in one place
_TIMES = 2  # how often a text occurs for that to pay
_MOST_BYTES = 1 << 31  # of texts, as far as codes go
_DROPPED = f"^^<{XSD_STRING}>"


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
    return pc.replace_with_mask(objects, pa.array(mask), pa.array(changed, pa.string()))


class WrongTerm(NamedTuple):
    """The first text of a column that is not a term: its row, counted from 0, and what is wrong with it."""

    row: int
    fault: TermFault


def checked_column(column: Any) -> tuple[Any, WrongTerm | None]:
    """A column of texts as terms in the form in which the engine holds them, or the first text that is no term.

    The column, chunked or not, perhaps dictionary-encoded, holds no NULLs and only valid UTF-8; it is returned as it is if all
    its texts are in that form already. Texts that repeat are looked at once.
    """
    if (
        not pa.types.is_dictionary(column.type)
        and not _repeats(column)
        and pc.all(_are_held(column), min_count=0).as_py()
    ):
        return column, None
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    parts, changed, row = [], False, 0
    before: tuple[Any, tuple[Any, Faults]] = (None, (None, {}))
    for chunk in encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]:
        terms = chunk.dictionary
        if before[0] is None or not terms.equals(before[0]):
            before = terms, _in_one_form(terms)
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


def coded(column: Any) -> Any:
    """A column of texts without NULLs in one chunk, dictionary-encoded, if most texts occur several times; else the same column.

    Then whatever looks at texts, to check or to encode them, looks at each of them once.
    """
    if pa.types.is_dictionary(column.type) or column.nbytes >= _MOST_BYTES or not _recurs(column):
        return column
    chunks = pc.dictionary_encode(column).chunks  # all with the same dictionary
    codes = pa.concat_arrays([chunk.indices for chunk in chunks])
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, chunks[-1].dictionary)])


def _recurs(column: Any) -> bool:
    """Whether texts occur so often that it pays to find the different ones: by how many of some rows have the same text."""
    count = len(column)
    if count <= _SPREAD:
        return bool(count) and _TIMES * len(pc.unique(column)) <= count
    rows = np.unique(np.random.default_rng(1).integers(0, count, _SPREAD))
    twice = len(rows) - len(pc.unique(column.take(pa.array(rows))))
    # of k rows out of n, with texts that occur m times each, about k² (m - 1) / 2n have the text of another one
    return 2 * count * twice >= (_TIMES - 1) * len(rows) ** 2


def checked_at_once(column: Any) -> tuple[Any, WrongTerm | None]:
    """A whole column of terms as `checked_column` returns it, dictionary-encoded if that pays: equal terms then have one code."""
    codes = coded(column)
    if codes is column:
        return checked_column(column)
    if pc.all(_are_held(codes.chunk(0).dictionary)).as_py():
        return codes, None
    terms, wrong = checked_column(codes)
    if terms is codes:
        return terms, wrong
    return coded(terms), wrong  # two texts may be the same term


def _repeats(column: Any) -> bool:
    """Whether most texts occur several times, by the first ones: then finding the different ones takes less than looking at all."""
    return 4 * len(pc.unique(column.slice(0, _SAMPLE))) < min(len(column), _SAMPLE)


def _are_held(terms: Any) -> Any:
    """Which texts are plain terms in the form in which the engine holds them."""
    held = pc.match_substring_regex(terms, f"^(?:{HELD_TERM})$")
    for ending in NOT_HELD:
        held = pc.and_not(held, pc.ends_with(terms, ending))
    return held


Faults: TypeAlias = dict[int, TermFault]


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
