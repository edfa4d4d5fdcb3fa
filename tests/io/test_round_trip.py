"""What is written is read back, in order, in every format."""

from __future__ import annotations

import gzip
import io as streams
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evermat.io import arrow_schema, nullary, read_relation
from evermat.io.error_report import Findings
from evermat.language.model import Io
from tests.io.relations import TYPES, facts, in_order, read_text, relation, rows_of, table, write


def round_trip(types: str, rows: list[tuple], **options) -> None:
    rel = relation(types)
    with tempfile.TemporaryDirectory() as folder:
        io = Io(rel, **options)
        write(table(rel, rows), io, Path(folder))
        found = read_relation(io, Path(folder))
    assert rows_of(found) == in_order(rows)
    assert found.schema == arrow_schema(rel)


@given(st.data(), TYPES, st.booleans(), st.sampled_from(["r.csv", "r.txt.gz"]), st.sampled_from("\t,; |é\0"))
def test_plain_text(data, types, headers, path, delimiter):
    rows = data.draw(facts(types, plain=True, delimiter=delimiter))
    round_trip(types, rows, path=path, headers=headers, delimiter=delimiter)


@pytest.mark.slow
@given(st.data(), TYPES, st.booleans(), st.sampled_from(["r.csv", "r.GZ"]), st.sampled_from("\t,; |é\0"))
def test_quoted_text(data, types, headers, path, delimiter):
    round_trip(types, data.draw(facts(types)), path=path, headers=headers, delimiter=delimiter, rfc4180=True)


@given(st.data(), TYPES, st.sampled_from(["r.jsonl", "r.jsonl.gz", "r.parquet"]))
def test_jsonl_and_parquet(data, types, path):
    round_trip(types, data.draw(facts(types)), path=path)


@given(st.data(), st.text("snuf", min_size=2, max_size=3))
def test_order_with_wide_keys(data, types):
    rows = data.draw(facts(types)) + [
        tuple({"s": "é", "n": n, "u": abs(n), "f": float(n)}[c] for c in types) for n in (2**62, -(2**62))
    ]
    round_trip(types, rows, path="r.parquet")


@pytest.mark.parametrize("path", ["r.csv", "r.gz", "r.parquet", "r.jsonl", "r.jsonl.gz"])
@pytest.mark.parametrize("rows", [[], [()]])
@pytest.mark.parametrize("headers", [False, True])
def test_nullary(tmp_path, path, rows, headers):
    rel = relation("")
    io = Io(rel, path=path, headers=headers)
    write(table(rel, rows), io, tmp_path)
    assert rows_of(read_relation(io, tmp_path)) == rows


@pytest.mark.parametrize("path", ["r.csv", "r.gz", "r.parquet", "r.jsonl"])
def test_empty(tmp_path, path):
    io = Io(relation("snuft"), path=path)
    write(table(io.relation, []), io, tmp_path)
    assert rows_of(read_relation(io, tmp_path)) == []


def text(content: bytes, types: str, size: int = 1 << 20, **options) -> list[tuple]:
    io = Io(relation(types), **options)
    return rows_of(read_text(streams.BytesIO(content), io, Findings("r.facts"), size))


@pytest.mark.parametrize(
    ("content", "types", "rows"),
    [
        (b"", "nn", []),
        (b"\xef\xbb\xbf", "nn", []),
        (b"\n", "nn", []),
        (b"\r\n", "sn", []),
        (b"1\t2", "nn", [(1, 2)]),
        (b"\xef\xbb\xbf1\t2\r\n3\t4\r\n", "nn", [(1, 2), (3, 4)]),
        (b"1\t2\n\n", "nn", [(1, 2)]),
        (b"1\t2\r\n\r\n", "nn", [(1, 2)]),
        (b"a\tb\n\n", "ss", [("a", "b")]),
        (b"\n", "s", [("",)]),
        (b"a\n\nb\n\n", "s", [("a",), ("",), ("b",), ("",)]),
        (b"a\rb\t1\r\n", "sn", [("a\rb", 1)]),
        (b"a\r", "s", [("a",)]),
        (b'"a\t b \n', "ss", [('"a', " b ")]),
        (b"NULL\t\n#N/A\tnan\n", "ss", [("NULL", ""), ("#N/A", "nan")]),
        (b"+1\t+2\n-0\t0\n007\t-0\n", "nu", [(1, 2), (0, 0), (7, 0)]),
        (
            b"-0\n+.5\n1.\n1E3\n-inf\n+inf\n1e-999\n",
            "f",
            [(0.0,), (0.5,), (1.0,), (1000.0,), (-float("inf"),), (float("inf"),), (0.0,)],
        ),
        (b"-9223372036854775808\t18446744073709551615\n", "nu", [(-(2**63), 2**64 - 1)]),
        (b"0" * 90 + b"1\n", "n", [(1,)]),
        (b"()\n", "", [()]),
        (b"\n", "", [()]),
        (b"()", "", [()]),
        (b"", "", []),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_texts(content, types, rows, size):
    found = text(content, types, size)
    assert found == rows
    assert all(str(a) == str(b) for a, b in zip(found, rows, strict=True))  # 0.0 is not −0.0


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_quoted_texts(size):
    content = b'x,"y\n""z"\r\n"a\r\n,""b",1\r\n"","2"\r\n\r\n'
    assert text(content, "sn", size, delimiter=",", headers=True, rfc4180=True) == [('a\r\n,"b', 1), ("", 2)]
    assert text(b'"a"\r', "s", size, rfc4180=True) == [("a",)]


def test_headers_only():
    assert text(b"x\ty", "ss", headers=True) == []
    assert text(b"", "ss", headers=True) == []
    assert text(b"x\xff\ty\na\tb", "ss", headers=True) == [("a", "b")]


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"1\ta\n")))
    assert rows_of(read_relation(Io(relation("ns"), medium="stdin"), Path())) == [(1, "a")]


def test_default_names(tmp_path):
    (tmp_path / "r.facts").write_bytes(b"1\n")
    assert rows_of(read_relation(Io(relation("n")), tmp_path)) == [(1,)]
    write(table(relation("n"), [(10,), (9,), (-1,)]), Io(relation("n")), tmp_path)
    assert (tmp_path / "r.csv").read_bytes() == b"-1\n9\n10\n"


def test_the_ending_says_nothing_about_text(tmp_path):
    (tmp_path / "r.csv").write_bytes(b"a,b\t1\n")
    assert rows_of(read_relation(Io(relation("sn"), path="r.csv"), tmp_path)) == [("a,b", 1)]


def test_an_empty_gzip_file_is_empty(tmp_path):
    (tmp_path / "r.gz").write_bytes(b"")
    assert rows_of(read_relation(Io(relation("n"), path="r.gz"), tmp_path)) == []
    (tmp_path / "r.gz").write_bytes(gzip.compress(b"1\n") + gzip.compress(b"2\n"))
    assert rows_of(read_relation(Io(relation("n"), path="r.gz"), tmp_path)) == [(1,), (2,)]


def test_json_lines(tmp_path):
    lines = ['["a", 1]', ' { "y" : 2 , "x" : "b" } ', '{"x": "\\ud83d\\ude00\\n", "y": Infinity}', '["c", "-inf"]', ""]
    (tmp_path / "r.jsonl").write_text("\ufeff" + "\r\n".join(lines))
    found = rows_of(read_relation(Io(relation("sf"), path="r.jsonl"), tmp_path))
    assert found == [("a", 1.0), ("b", 2.0), ("😀\n", float("inf")), ("c", -float("inf"))]


@pytest.mark.parametrize(
    ("letter", "type_", "given_", "expected"),
    [
        ("n", pa.int8(), [1, -1], [1, -1]),
        ("n", pa.uint64(), [1, 2**63 - 1], [1, 2**63 - 1]),
        ("n", pa.decimal128(20, 0), [1], [1]),
        ("u", pa.uint64(), [2**64 - 1], [2**64 - 1]),
        ("u", pa.decimal128(20, 0), [2**64 - 1], [2**64 - 1]),
        ("u", pa.int64(), [5], [5]),
        ("f", pa.float32(), [0.5, -0.0], [0.5, 0.0]),
        ("f", pa.int64(), [2**53 + 1], [float(2**53)]),
        ("s", pa.large_string(), ["a"], ["a"]),
        ("s", pa.dictionary(pa.int32(), pa.string()), ["a", "a"], ["a", "a"]),
        ("t", pa.string(), ["<a:a>"], ["<a:a>"]),
    ],
)
def test_parquet_types(tmp_path, letter, type_, given_, expected):
    pq.write_table(pa.table({"x": pa.array(given_, type_)}), tmp_path / "r.parquet")
    found = [value for (value,) in rows_of(read_relation(Io(relation(letter), path="r.parquet"), tmp_path))]
    assert str(found) == str(expected)


def test_parquet_folder_and_column_order(tmp_path):
    folder = tmp_path / "r.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"y": [1], "x": ["a"]}), folder / "part-0.parquet")
    pq.write_table(pa.table({"c1": ["b"], "c2": [2]}), folder / "part-1.parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    (folder / ".part-0.parquet.crc").write_bytes(b"x")
    assert rows_of(read_relation(Io(relation("sn"), path="r.parquet"), tmp_path)) == [("a", 1), ("b", 2)]


def test_parquet_schema_of_outputs(tmp_path):
    write(table(relation("snuft"), [("a", 1, 2, 0.5, "<b>")]), Io(relation("snuft"), path="r.parquet"), tmp_path)
    types = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "r.parquet")}
    assert types == {"x": "string", "y": "int64", "z": "decimal128(20, 0)", "v": "double", "w": "string"}


@given(st.lists(st.floats(allow_nan=False), max_size=8))
@example([1e16, 1e22, 0.1, -5.0])
def test_floats_are_written_shortest(numbers):
    rel = relation("f")
    with tempfile.TemporaryDirectory() as folder:
        write(table(rel, [(n + 0.0,) for n in numbers]), Io(rel), Path(folder))
        lines = Path(folder, "r.csv").read_text().splitlines()
    assert lines == [repr(n + 0.0).removesuffix(".0") for n in sorted(numbers)]


def test_nullary_table():
    assert nullary(present=True).num_rows == 1
    assert nullary(present=False).num_rows == 0
