"""The kernel that finds plain terms: it accepts no text that is not held as it is, and nearly all that are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evermat.kernels import terms as module
from evermat.kernels.terms import held_terms
from evermat.language import checked_terms, is_held

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

# Every byte sequence at which the kernel decides something, so that texts share beginnings and ends.
PIECES = st.one_of(
    st.sampled_from(
        [
            *(
                "<",
                ">",
                '"',
                "\\",
                "@",
                "^^",
                "_:",
                ":",
                "/",
                "//",
                "#",
                "?",
                "%",
                "%41",
                "%4",
                "-",
                ".",
                "_",
                " ",
                "~",
                "{",
            ),
            *(
                "<http://example.org/people/",
                "<http://example.org",
                "<http://example.org:80/",
                "<urn:isbn:",
                "http",
                "a1",
                "b",
            ),
            *(
                '"^^<',
                f'"^^<{XSD}integer>',
                f'"^^<{XSD}string>',
                f'"^^<{RDF}langString>',
                '"@en',
                '"@de-at',
                '"@EN',
                "-",
            ),
            *(
                "\\n",
                '\\"',
                "\\\\",
                "\\u0041",
                "\n",
                "\t",
                "\x00",
                "\x7f",
                "\x80",
                "\x9f",
                "\u00a0",
                "é",
                "ÿ",
                "\u07ff",
            ),
            *(
                "\u0800",
                "\ud7ff",
                "\ue000",
                "\uf8ff",
                "\uf900",
                "\ufdd0",
                "\uffef",
                "\uffff",
                "\U00010000",
                "12345678",
                "abcdefghij",
            ),
        ]
    ),
    st.text(max_size=3),
    st.characters(max_codepoint=127),
)
TEXTS = st.lists(PIECES, max_size=7).map("".join)
SHAPES = st.one_of(
    TEXTS,
    TEXTS.map("<http://example.org/{}>".format),
    TEXTS.map("<a:{}>".format),
    TEXTS.map('"{}"'.format),
    TEXTS.map('"{}"@en'.format),
    st.builds('"{}"^^<{}{}>'.format, TEXTS, st.sampled_from([XSD, RDF, "a:"]), TEXTS),
    TEXTS.map("_:{}".format),
).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))


LARGE = pa.large_string()


def accepted(texts: list[str], type_: pa.DataType = LARGE) -> list[bool]:
    array = pa.array(texts, type_)
    found = np.zeros(len(texts), np.bool_)
    left = module.mark_terms(array, found)
    assert left == len(texts) - int(found.sum())
    return [bool(one) for one in found]


@settings(max_examples=500)
@given(st.lists(SHAPES, max_size=12))
@example(["<http://example.org/a>", "<http://example.org_b/>", "<http://example.orgb/>", "<http://example.org/>"])
@example([f'"1"^^<{XSD}integer>', f'"\\"^^<{XSD}integer>', f'"a"b"^^<{XSD}integer>', f'x"1"^^<{XSD}integer>'])
@example(["<http://a/#b>", "<http://a/#b#c>", "<http://a/########>", "<http://a/#aaaaaaaaa#>"])
@example(['"a', '"', "<", ">", "<>", '""', "", "_:", "<a:>", "<a:/b>", '"""', '"a"@'])
def test_only_terms_that_are_held_are_accepted(texts: list[str]) -> None:
    for text, good in zip(texts, accepted(texts), strict=True):
        if good:
            assert is_held(text)
            assert checked_terms([text]) == [text]


@given(st.lists(SHAPES, max_size=12), st.data())
def test_columns_are_decided_by_the_expression(texts: list[str], data: st.DataObject) -> None:
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), np.bool_)
    expected = [bool(mark) or is_held(text) for text, mark in zip(texts, known, strict=True)]
    with pytest.MonkeyPatch.context() as patched:
        for few in (0, 1 << 12):
            patched.setattr(module, "FEW_TERMS", few)
            for type_ in (pa.string(), pa.large_string(), pa.string_view()):
                array = pa.array(["<a:b>", *texts, "a"], type_).slice(1, len(texts))
                assert held_terms(array, known).tolist() == expected
            assert held_terms(pa.array(texts, pa.string())).tolist() == [is_held(text) for text in texts]


HELD = [
    "<http://example.org/people/1>",
    "<http://example.org/people/2#a-b_c.d?e=f>",
    "<http://example.org/%C3%A9/é/日本語?q=(a,b)&c=$;!'*+@~>",
    "<http://example.org>",
    "<https://localhost:8080/a>",
    "<urn:isbn:0451450523>",
    "<a:b>",
    "<mailto:a@example.org>",
    "_:b0",
    "_:B_1-x",
    '""',
    '"a"',
    '"Straße 1, 日本語 😀"',
    '"a longer text with \\"quotes\\", \\\\ and \\n newlines"',
    '"a"@en',
    '"a longer text"@de-at',
    '"a"@gsw',
    f'"1"^^<{XSD}integer>',
    f'"2"^^<{XSD}integer>',
    f'"2024-01-01T00:00:00Z"^^<{XSD}dateTime>',
    '"a\\tb"^^<http://example.org/types#é>',
    '"x"^^<a:b>',
]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()], ids=str)
def test_plain_terms_are_accepted(type_: pa.DataType) -> None:
    assert all(is_held(text) for text in HELD)
    for texts in (HELD, HELD[::-1], [one for text in HELD for one in (text, HELD[0], HELD[17])]):
        assert [text for text, good in zip(texts, accepted(texts, type_), strict=True) if not good] == []


def test_what_is_marked_is_not_looked_at() -> None:
    array = pa.array(["x", "<a:b>", "y"], pa.string())
    found = np.array([True, False, False])
    assert module.mark_terms(array, found) == 1
    assert found.tolist() == [True, True, False]
