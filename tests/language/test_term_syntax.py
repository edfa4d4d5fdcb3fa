"""Which texts are RDF terms: what pyoxigraph reads in N-Triples decides, and each term has one form."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyoxigraph
import pytest
import rdflib
from hypothesis import example, given
from hypothesis import strategies as st

import evermat
from evermat import ArgumentError
from evermat.columns import Dictionary
from evermat.io.term_columns import checked_column
from evermat.language import MalformedTermError, TermFault, checked_term, checked_terms, is_held, literal_term, term_of

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def oracle(text: str) -> str | None:
    """The one form of a term by pyoxigraph alone; None if the text is none, or one of RDF 1.2.

    A graph follows the text, so that nothing but a whole term gives just this quad.
    """
    if text != text.strip(" \t\r\n") or "\n" in text or "\r" in text:
        return None
    try:
        found = [*pyoxigraph.parse(f"<a:a> <a:a> {text} <a:g> .".encode(), format=pyoxigraph.RdfFormat.N_QUADS)]
    except (SyntaxError, UnicodeEncodeError):
        return None
    if (
        len(found) != 1
        or found[0].graph_name != pyoxigraph.NamedNode("a:g")
        or isinstance(found[0].object, pyoxigraph.Triple)
    ):
        return None
    term = found[0].object
    if isinstance(term, pyoxigraph.Literal):
        if term.direction is not None:
            return None
        return literal_term(term.value, language=term.language or "", datatype=term.datatype.value)
    return str(term)


IRIS = st.builds(
    "".join,
    st.lists(
        st.sampled_from(
            [
                "http:",
                "//",
                "a",
                "é",
                "/",
                "?",
                "#",
                "%41",
                "%z",
                ":",
                "urn:x:",
                " ",
                "{",
                "\\u00e9",
                "\\u0020",
                "[",
                "\ue000",
                "1",
            ]
        ),
        min_size=1,
        max_size=5,
    ),
)
TEXTS = st.text(st.sampled_from('ab"\\\n\té\x00\x7f\ufffe\U00010000.#<>@^ '), max_size=4)
LANGUAGES = st.sampled_from(
    ["en", "EN", "de-AT", "e", "en-", "x-a", "en--ltr", "abcdefghi", "i-klingon", "zh-Hant-TW", "1"]
)
TERMS = st.one_of(
    IRIS.map("<{}>".format),
    st.text(st.sampled_from("ab1_-.:é·#"), max_size=4).map("_:{}".format),
    TEXTS.map(literal_term),
    st.builds("{}@{}".format, TEXTS.map(literal_term), LANGUAGES),
    st.builds(
        "{}^^<{}>".format,
        TEXTS.map(literal_term),
        st.one_of(IRIS, st.sampled_from([XSD + "string", RDF + "langString"])),
    ),
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A term with a few characters inserted, deleted or replaced."""
    text = draw(TERMS)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(
                st.sampled_from(["", "<", ">", '"', "\\", "_:", "@", "^^", " ", ".", "\n", "#", "<<", "\\u0041", "\t"])
            )
            + text[at + draw(st.integers(0, 1)) :]
        )
    return text


@given(mutated())
@example("_:a.#b")
@example('"a" . #')
@example('"a" @en')
@example('"x"^^ <a:b>')
@example("<<( <a:a> <a:b> <a:c> )>>")
@example("_:a.")
@example('"a"^^<http://www.w3.org/2001/XMLSchema#string>')
@example("")
def test_pyoxigraph_agrees(text: str) -> None:
    expected = oracle(text)
    (found,) = checked_terms([text])
    assert (None if isinstance(found, TermFault) else found) == expected
    assert not is_held(text) or expected == text
    if expected is not None:
        assert checked_term(expected) == expected


@given(st.lists(mutated(), max_size=8), st.booleans())
def test_columns_and_symbols_agree(texts: list[str], encoded: bool) -> None:
    expected = [oracle(text) for text in texts]
    wrong = [row for row, term in enumerate(expected) if term is None]
    column = pa.chunked_array([pa.array(texts[:3], pa.string()), pa.array(texts[3:], pa.string())])
    terms, first = checked_column(column.dictionary_encode() if encoded else column)
    if wrong:
        assert first is not None
        assert (first.row, first.fault.text) == (wrong[0], texts[wrong[0]])
    else:
        assert first is None
        assert terms.to_pylist() == expected
    dictionary = Dictionary(['"a"@EN', "a", "<a:a>"])
    for _ in range(2):  # what is known of a symbol stays the same
        ids, faults = dictionary.as_terms(dictionary.encode(texts))
        assert {dictionary.symbol(i) for i in faults} == {texts[row] for row in wrong}
        assert dictionary.decode(ids) == [
            text if term is None else term for text, term in zip(texts, expected, strict=True)
        ]


def test_texts_that_no_row_has_are_not_wrong() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["http://a", "<a:a>"]))
    terms, wrong = checked_column(column)
    assert (terms.to_pylist(), wrong) == (["<a:a>", "<a:a>"], None)


def test_many_texts() -> None:
    texts = [f"<http://example.org/{i % 7000}>" for i in range(10_000)]
    column = pa.chunked_array([pa.array(texts)])
    assert checked_column(column) == (column, None)
    assert checked_column(pa.chunked_array([pa.array([*texts, "x", "y"])]))[1].row == 10_000
    terms, wrong = checked_column(pa.chunked_array([pa.array([*texts, '"x"@EN'])]))
    assert (terms[-1].as_py(), wrong) == ('"x"@en', None)


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "encoded"])
def test_columns_of_each_type_of_texts(type_: pa.DataType, encoded: bool) -> None:
    spelled = ['"a"@EN', '"é"@en', f'"x"^^<{XSD}string>', '"\\u0041"', "<a:b>"]
    array = pa.array(spelled, type_)
    if encoded:
        array = pa.DictionaryArray.from_arrays(pa.array([4, 3, 2, 1, 0]), pa.array(spelled[::-1], type_))
    terms, wrong = checked_column(pa.chunked_array([array]))
    assert (terms.to_pylist(), wrong) == (['"a"@en', '"é"@en', '"x"', '"A"', "<a:b>"], None)


@pytest.mark.parametrize(
    ("text", "why", "in_a_file", "in_python"),
    [
        ("http://a/b", "an IRI stands between `<` and `>`", "write `<http://a/b>`", "use `evermat.iri('http://a/b')`"),
        ("a b", "a text stands between quotes", 'write `"a b"`', "use `evermat.literal('a b')`"),
        ("http://" + 60 * "a", "an IRI stands between `<` and `>`", "write `<…>`", "use `evermat.iri(…)`"),
        ("", "it is empty", 'write `""`', "use `evermat.literal('')`"),
        (" <a:a>", "there are blanks around it", "", ""),
        ("<a>", "it is a relative IRI, and terms have only absolute ones", "", ""),
        ("<a:a", "an IRI is closed by the only `>`, and has no quotes in it", "", ""),
        ("_:a b", "a label of a blank node has letters, digits, `_`, and inside also `-` and `.`", "", ""),
        ('"a', "the quote is not closed", "", ""),
        ('"a\nb"', "newlines in a literal are written `\\n` and `\\r`", "", ""),
        ('"a"en', "only a language, `@en`, or a datatype, `^^<…>`, follows the closing quote", "", ""),
        ('"a"^^<b>', "its datatype is a relative IRI, and terms have only absolute ones", "", ""),
        ('"a"@en--ltr', "texts with a direction (RDF 1.2) are not supported", "", ""),
        ("<<( <a:a> <a:b> <a:c> )>>", "triples as terms (RDF 1.2) are not supported", "", ""),
        ('"\ud800"', "half of a surrogate pair is not a character", "", ""),
    ],
)
def test_what_is_wrong(text: str, why: str, in_a_file: str, in_python: str) -> None:
    with pytest.raises(MalformedTermError) as error:
        checked_term(text)
    fault = error.value.fault
    assert (fault.why, fault.in_a_file, fault.in_python) == (why, in_a_file, in_python)


LITERALS = [
    ('a"b\n', '"a\\"b\\n"'),
    (True, f'"true"^^<{XSD}boolean>'),
    (np.bool_(False), f'"false"^^<{XSD}boolean>'),
    (5, f'"5"^^<{XSD}integer>'),
    (10**30, f'"{10**30}"^^<{XSD}integer>'),
    (np.uint8(5), f'"5"^^<{XSD}integer>'),
    (1.5, f'"1.5"^^<{XSD}double>'),
    (1e300, f'"1e+300"^^<{XSD}double>'),
    (-0.0, f'"-0.0"^^<{XSD}double>'),
    (np.float64(0.1), f'"0.1"^^<{XSD}double>'),
    (float("inf"), f'"INF"^^<{XSD}double>'),
    (float("-inf"), f'"-INF"^^<{XSD}double>'),
    (float("nan"), f'"NaN"^^<{XSD}double>'),
    (Decimal("1.50"), f'"1.50"^^<{XSD}decimal>'),
    (Decimal("1E+3"), f'"1000"^^<{XSD}decimal>'),
    (Decimal("1E-8"), f'"0.00000001"^^<{XSD}decimal>'),
    (datetime(2024, 2, 29, 1, 2, 3, 500), f'"2024-02-29T01:02:03.000500"^^<{XSD}dateTime>'),
    (datetime(2024, 1, 1, tzinfo=UTC), f'"2024-01-01T00:00:00+00:00"^^<{XSD}dateTime>'),
    (pd.Timestamp("2024-01-01 10:00"), f'"2024-01-01T10:00:00"^^<{XSD}dateTime>'),
    (date(5, 1, 2), f'"0005-01-02"^^<{XSD}date>'),
    (time(1, 2, tzinfo=timezone(timedelta(hours=-14))), f'"01:02:00-14:00"^^<{XSD}time>'),
    (timedelta(days=1, seconds=3661, microseconds=10), f'"P1DT1H1M1.00001S"^^<{XSD}dayTimeDuration>'),
    (-timedelta(hours=30), f'"-P1DT6H"^^<{XSD}dayTimeDuration>'),
    (timedelta(), f'"PT0S"^^<{XSD}dayTimeDuration>'),
    (b"\x01\xff", f'"01FF"^^<{XSD}hexBinary>'),
]


@pytest.mark.parametrize(("value", "term"), LITERALS, ids=str)
def test_literals(value: object, term: str) -> None:
    from evermat.language import is_well_formed

    made = evermat.literal(value)
    assert (str(made), type(str(made)), made, hash(made)) == (term, str, term, hash(term))
    assert eval(repr(made)) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert checked_term(term) == term
    assert isinstance(value, str) or is_well_formed(term)


def test_literals_with_language_or_datatype() -> None:
    assert evermat.literal("a", language="de-AT") == '"a"@de-at'
    assert evermat.literal("a", datatype=XSD + "string") == '"a"'
    assert evermat.literal("x", datatype=XSD + "integer") == f'"x"^^<{XSD}integer>'
    assert evermat.literal(5, datatype=rdflib.XSD.byte) == f'"5"^^<{XSD}byte>'
    assert evermat.literal(5, datatype=evermat.iri("a:b")) == '"5"^^<a:b>'
    assert evermat.literal(5, datatype=pyoxigraph.NamedNode("a:b")) == '"5"^^<a:b>'
    assert repr(evermat.literal("a", language="EN")) == "evermat.literal('a', language='en')"


def test_terms() -> None:
    made = evermat.iri("http://é/%41")
    assert (str(made), repr(made)) == ("<http://é/%41>", "evermat.iri('http://é/%41')")
    assert evermat.iri(made) == evermat.iri(rdflib.URIRef("http://é/%41")) == evermat.Term("<http://é/%41>") == made
    assert evermat.Term(made) is made
    assert repr(evermat.blank_node("b.1")) == "evermat.blank_node('b.1')"
    assert evermat.Term('"a"@EN') == '"a"@en'
    assert len({made, str(made)}) == 1
    with pytest.raises(AttributeError):
        made.other = 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: evermat.iri("a b"), "`iri` is 'a b': invalid IRI code point ' '"),
        (lambda: evermat.iri("a"), "`iri` is 'a': it is a relative IRI, and terms have only absolute ones"),
        (lambda: evermat.iri("<a:a>"), "`iri` is '<a:a>': an IRI is given without `<` and `>`"),
        (lambda: evermat.iri("a:\\u0041"), "`iri` is 'a:\\\\u0041': an IRI has no backslash"),
        (lambda: evermat.blank_node("_:a"), "`label` is '_:a': a label is given without `_:`"),
        (
            lambda: evermat.blank_node("a b"),
            "`label` is 'a b': a label of a blank node has letters, digits, `_`, and inside also `-` and `.`",
        ),
        (lambda: evermat.literal("\ud800"), "`value` is '\"\\ud800\"': half of a surrogate pair is not a character"),
        (
            lambda: evermat.literal("a", language="e n"),
            "`language` is 'e n': a language tag has letters, digits and `-`, as 'en' or 'de-AT'",
        ),
        (
            lambda: evermat.literal("a", language="abcdefghi"),
            "`language` is 'abcdefghi': a subtag may be eight characters in length at maximum",
        ),
        (
            lambda: evermat.literal("a", language="en", datatype="a:b"),
            "a literal has a language or a datatype: use `language` or `datatype`, not both",
        ),
        (lambda: evermat.literal(1, language="en"), "only texts have a language, and `value` is of type int"),
        (lambda: evermat.literal("1", datatype="xsd:int"), f"`datatype` is 'xsd:int': write the whole IRI, '{XSD}int'"),
        (
            lambda: evermat.literal(1.5, datatype=XSD + "int"),
            f"1.5 is not a value of the datatype '{XSD}int', as `1.5` does not spell one",
        ),
        (lambda: evermat.literal(Decimal("NaN")), "`value` is Decimal('NaN'): xsd:decimal has only finite numbers"),
        (
            lambda: evermat.literal(Decimal("1E+99999")),
            "`value` is Decimal('1E+99999'): a decimal has at most 10,000 digits",
        ),
        (lambda: evermat.literal(pd.NaT), "`value` is NaT: it is not a time"),
    ],
)
def test_what_is_no_term(make, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        make()
    assert error.value.problems[0].message == message


def test_zones_that_xml_schema_does_not_have() -> None:
    for zone in (timezone(timedelta(hours=15)), timezone(timedelta(seconds=30))):
        with pytest.raises(ArgumentError, match="at most 14 hours"):
            evermat.literal(datetime(2024, 1, 1, tzinfo=zone))


@pytest.mark.parametrize(
    "value", [None, {1: 2}, [1], np.datetime64("2024-01-01"), rdflib.Literal("a"), evermat.iri("a:a")], ids=repr
)
def test_values_without_a_datatype(value: object) -> None:
    with pytest.raises(TypeError, match="`value` is of type"):
        evermat.literal(value)


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (rdflib.URIRef("http://a/b"), "<http://a/b>"),
        (rdflib.BNode("b1"), "_:b1"),
        (rdflib.Literal('"x"'), '"\\"x\\""'),
        (rdflib.Literal("a", lang="EN"), '"a"@en'),
        (rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False), f'"01"^^<{XSD}integer>'),
        (rdflib.Literal("a", datatype=rdflib.XSD.string), '"a"'),
        (pyoxigraph.NamedNode("http://a/b"), "<http://a/b>"),
        (pyoxigraph.BlankNode("b1"), "_:b1"),
        (pyoxigraph.Literal("a\n", language="en"), '"a\\n"@en'),
        (pyoxigraph.Literal("a", datatype=pyoxigraph.NamedNode("a:b")), '"a"^^<a:b>'),
        (np.str_("<a:b>"), "<a:b>"),
    ],
)
def test_terms_of_libraries(value: object, term: str) -> None:
    assert term_of(value) == term
    assert type(term_of(value)) is str


@pytest.mark.parametrize(
    "value",
    [
        rdflib.Variable("x"),
        rdflib.BNode("a b"),
        rdflib.URIRef("b"),
        rdflib.URIRef("a:\\u0041"),
        rdflib.Literal("a", datatype=rdflib.URIRef("b")),
        rdflib.Literal("a", datatype=rdflib.URIRef("a:b>x")),
        pyoxigraph.Variable("x"),
        pyoxigraph.DefaultGraph(),
        pyoxigraph.Triple(pyoxigraph.NamedNode("a:a"), pyoxigraph.NamedNode("a:a"), pyoxigraph.NamedNode("a:a")),
        pyoxigraph.Literal("a", language="en", direction=pyoxigraph.BaseDirection("ltr")),
        5,
        None,
    ],
    ids=repr,
)
def test_values_that_are_no_terms(value: object) -> None:
    with pytest.raises(MalformedTermError):
        term_of(value)
