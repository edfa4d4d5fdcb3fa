"""Columns of terms: which of them are plain RDF terms, and all of them in the form in which the engine holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.language import (
    PLAIN_BLANK,
    PLAIN_IRI,
    PLAIN_LANGUAGE,
    PLAIN_STRING,
    TYPES_OF_TAGGED,
    XSD_STRING,
)

NODE = rf"^(?:{PLAIN_IRI}|{PLAIN_BLANK})$"
PROPERTY = rf"^{PLAIN_IRI}$"
OBJECT = rf"^(?:{PLAIN_IRI}|{PLAIN_BLANK}|{PLAIN_STRING}(?:{PLAIN_LANGUAGE}|\^\^{PLAIN_IRI})?)$"
GRAPH = rf"^(?:{PLAIN_IRI}|{PLAIN_BLANK})?$"
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
