"""The value function against the lexical-to-value mappings of XML Schema 1.1, for texts that are nearly literals of each datatype."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.language.literal_values import canonical_term, different_values, literal_value
from evermat.language.terms import literal_term
from tests.support.literal_oracle import KINDS, datatype_of, oracle_value, texts


@st.composite
def literals(draw: st.DrawFn, first: str) -> list[tuple[str, str]]:
    """Texts with their datatypes: one of this datatype, some of any."""
    kinds = [first, *draw(st.lists(st.sampled_from(KINDS) | st.just(first), min_size=1, max_size=3))]
    found = [(draw(texts(kind)), kind) for kind in kinds]
    return [*found, (found[0][0], draw(st.sampled_from(KINDS)))]


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_xml_schema(kind: str) -> None:
    @settings(max_examples=20, deadline=None)
    @given(literals(kind))
    def check(found: list[tuple[str, str]]) -> None:
        terms = [literal_term(text, datatype=datatype_of(kind)) for text, kind in found]
        values = [oracle_value(text, kind) for text, kind in found]
        for term, value in zip(terms, values, strict=True):
            assert literal_value(term) is not None
            assert literal_value(canonical_term(term)) == canonical_term(term)
            assert not different_values(term, term)
            if value is None:
                assert canonical_term(term) == term
        for (one, value), (other, another) in combinations(zip(terms, values, strict=True), 2):
            same = one == other or (value is not None and value == another)
            assert (canonical_term(one) == canonical_term(other)) == same, (one, other, value, another)
            assert different_values(one, other) == different_values(other, one) == (not same), (one, other)

    check()
