"""The fast way to read text and the exact one agree on every text, and on every cut into blocks."""

from __future__ import annotations

import io as streams

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core import error_catalogue as errors
from evermat.core.errors import DataError
from evermat.io.blocks import PIECE, Block, _end_of_first, _end_of_records, blocks
from evermat.io.error_report import Findings, FullError
from evermat.io.formats import jsonl_reader
from evermat.io.formats.csv_fast import read_block, read_fast, read_slowly
from evermat.language.model import Io
from tests.io.relations import read_text, relation, rows_of

PIECES = [
    *[
        "1",
        "-2",
        "+3",
        "007",
        "0x1F",
        "0X2",
        "-0",
        "9223372036854775808",
        "18446744073709551616",
        " 4",
        "5 ",
        "x",
        "e",
        "_",
    ],
    *["1.5", ".5", "1.", "1e5", "1E-3", "1e400", "inf", "-inf", "+inf", "Inf", "infinity", "nan", "NaN", "-nan", "."],
    *[
        "NULL",
        "#N/A",
        "null",
        "true",
        "",
        "a",
        "ä",
        "漢",
        '"',
        '""',
        '"b"',
        '"1"',
        "'",
        "\\",
        "\x00",
        "\ufeff",
        "\u2028",
    ],
]
NUMBERS = [*"0123456789+-.eExXinfa "]
ENDS = ["\n", "\n", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]


def texts(delimiter: str) -> st.SearchStrategy[bytes]:
    field = st.sampled_from(PIECES) | st.sampled_from(["1", "2", "a"]) | st.text(NUMBERS, max_size=5)
    line = st.tuples(field, st.lists(st.tuples(st.just(delimiter), field), max_size=2), st.sampled_from(ENDS))
    text = st.lists(line, max_size=5).map(
        lambda ls: "".join(a + "".join(d + b for d, b in more) + end for a, more, end in ls)
    )
    whole = st.tuples(text, st.sampled_from(["", "1", f"1{delimiter}2"])).map("".join).map(str.encode)
    return whole | st.tuples(whole, st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80"]), whole).map(b"".join)


SHAPES = st.sampled_from(["s", "n", "u", "f", "ss", "nn", "ff", "uu", "sn", "fs", "nus"])
DELIMITERS = st.sampled_from("\t,; x\0")


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data(), SHAPES, DELIMITERS, st.booleans())
def test_fast_and_exact_agree(data, types, delimiter, rfc4180):
    content = data.draw(texts(delimiter))
    io = Io(relation(types), delimiter=delimiter, rfc4180=rfc4180)
    if not content:
        return
    fast = read_fast(content, io)
    if fast is None:
        return
    findings = Findings("r")
    slow = read_slowly(Block(1, content), io, findings)
    assert not findings.problems
    assert str(rows_of(fast)) == str(rows_of(slow))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text("ab c'\\ä", max_size=3)), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
)
def test_ordinary_texts_take_the_fast_path(rows, end):
    content = "".join(f"{n}\t{s}{end}" for n, s in rows).encode()
    assert rows_of(read_fast(content, Io(relation("ns")))) == rows
    quoted = "".join(f'"{n}"\t"{s}"{end}' for n, s in rows).encode()
    assert rows_of(read_fast(quoted, Io(relation("ns"), rfc4180=True))) == rows


def outcome(content: bytes, io: Io, size: int) -> str:
    try:
        return str(rows_of(read_text(streams.BytesIO(content), io, Findings("r"), size)))
    except DataError as error:
        return str(error)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data(), SHAPES, st.booleans(), st.booleans(), st.integers(1, 9))
def test_the_cut_into_blocks_does_not_matter(data, types, headers, rfc4180, size):
    content = data.draw(texts("\t"))
    if rfc4180 and b'"' in content:
        content = content.replace(b'"', b"")
    io = Io(relation(types), headers=headers, rfc4180=rfc4180)
    assert outcome(content, io, size) == outcome(content, io, 1 << 20)


@given(st.lists(st.sampled_from([b'"', b"\n", b"a", b'""']), max_size=20).map(b"".join))
def test_records_end_at_newlines_outside_of_quotes(content):
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n") and content.count(b'"', 0, i) % 2 == 0]
    assert _end_of_records(content, quoted=True) == max(ends, default=0)
    assert _end_of_first(content, quoted=True) == min(ends, default=len(content))


@pytest.mark.parametrize("rest", [b"x" * (2 * PIECE), b"x\n" * PIECE], ids=["one line", "many lines"])
def test_a_quote_that_is_not_closed_is_found_however_much_follows(rest):
    content = b'1,2\n3,"' + rest
    with pytest.raises(DataError, match=r"^error\[E322\].*\n --> r:2:3\n"):
        read_text(streams.BytesIO(content), Io(relation("ss"), delimiter=",", rfc4180=True), Findings("r"))


@pytest.mark.parametrize("rfc4180", [False, True])
@pytest.mark.parametrize("around", [b"", b"1\t2\n"])
def test_a_line_with_a_mistake_may_be_long(around, rfc4180):
    content = around + b"x" * (2 * PIECE) + b"\t2\n" + around
    with pytest.raises(DataError) as caught:
        read_text(streams.BytesIO(content), Io(relation("nn"), rfc4180=rfc4180), Findings("r"))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.source.first_line) == (errors.NOT_A_NUMBER, 2 if around else 1)


@given(st.lists(st.binary(max_size=6)), st.integers(1, 9), st.booleans())
def test_blocks_are_the_text(parts, size, quoted):
    content = b"\n".join(parts)
    found = list(blocks(streams.BytesIO(content), quoted=quoted, keep_empty=True, size=size))
    assert b"".join(block.data for block in found) == content.removeprefix(b"\xef\xbb\xbf")
    line = 1
    for block in found:
        assert block.first_line == line
        line += block.data.count(b"\n")


def test_one_odd_block_does_not_make_the_others_slow(monkeypatch):
    slow: list[int] = []

    def spy(block, io, findings):
        slow.append(block.first_line)
        return read_slowly(block, io, findings)

    monkeypatch.setattr("evermat.io.formats.csv_fast.read_slowly", spy)
    content = b"1\n" * 20 + b"+2\n" + b"3\n" * 20
    found = read_text(streams.BytesIO(content), Io(relation("n")), Findings("r"), 10)
    assert rows_of(found) == [(1,)] * 20 + [(2,)] + [(3,)] * 20
    assert slow == [21]


def test_full_findings_stop_the_reading():
    findings = Findings("r")
    try:
        read_block(Block(1, b"x\n" * 20), Io(relation("n")), findings)
    except FullError:
        assert len(findings.problems) == 11


VALUES = st.sampled_from(
    [
        "1",
        "-1",
        "1.5",
        "-0.0",
        "1e400",
        '"a"',
        '"inf"',
        '"\\ud800"',
        "null",
        "true",
        "NaN",
        "Infinity",
        "[]",
        "{}",
        "18446744073709551615",
    ]
)
JSON_LINES = st.one_of(
    st.lists(VALUES, max_size=3).map(lambda vs: f"[{','.join(vs)}]"),
    st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), VALUES), max_size=3).map(
        lambda ps: "{" + ", ".join(f'"{k}": {v}' for k, v in ps) + "}"
    ),
    st.tuples(VALUES, VALUES).map(lambda vs: f'{{"y": {vs[0]}, "x": {vs[1]}}}'),
    st.tuples(VALUES, VALUES).map(lambda vs: f"[{vs[0]}, {vs[1]}]"),
    st.sampled_from(
        ["", " ", '["a"],["b"]', '["a"', '"b"]', " [1,2]", "[1,2] ", "[1,2]\r", '[["x",1],["y",2]]', "]", "\u2028"]
    ),
)


@settings(max_examples=150)
@given(st.lists(JSON_LINES, min_size=1, max_size=3), st.sampled_from(["s", "ss", "nn", "uf", "ff", "sn", ""]))
def test_json_fast_and_exact_agree(lines, types):
    block = Block(1, "\n".join(lines).encode())
    if not block.data:
        return
    fast = jsonl_reader.read_fast(block, relation(types))
    findings = Findings("r")
    slow = jsonl_reader.read_slowly(block, relation(types), findings)
    if fast is not None:
        assert not findings.problems
        assert str(rows_of(fast)) == str(rows_of(slow))


def test_ordinary_json_takes_the_fast_path():
    block = Block(1, b'["a", 1, 2, -0.0, "<b:b>"]\n{"y": 1, "x": "c", "z": 0, "w": "<d:d>", "v": 2}\n')
    found = jsonl_reader.read_fast(block, relation("snuft"))
    assert str(rows_of(found)) == "[('a', 1, 2, 0.0, '<b:b>'), ('c', 1, 0, 2.0, '<d:d>')]"


def test_of_an_odd_block_only_a_piece_is_read_slowly(monkeypatch):
    slow: list[Block] = []

    def spy(block, io, findings):
        slow.append(block)
        return read_slowly(block, io, findings)

    monkeypatch.setattr("evermat.io.formats.csv_fast.read_slowly", spy)
    content = "\ufeffa\t1\n".encode() * 40_000 + b"b\t+2\n" + "\ufeffc\t3\n".encode() * 40_000
    found = read_text(streams.BytesIO(content), Io(relation("sn")), Findings("r"))
    assert found.num_rows == 80_001
    assert rows_of(found.slice(0, 2)) == [("a", 1), ("\ufeffa", 1)]
    assert rows_of(found.slice(39_999, 3)) == [("\ufeffa", 1), ("b", 2), ("\ufeffc", 3)]
    assert sum(len(block.data) for block in slow) < len(content) // 2
