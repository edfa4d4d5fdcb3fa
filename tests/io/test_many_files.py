"""Several files for one relation, bytes from elsewhere, and files read in parts."""

from __future__ import annotations

import gzip
import io as streams
import itertools
import pickle
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core.error_catalogue import BAD_GZIP
from evermat.core.errors import DataError
from evermat.io import nullary, read_relation
from evermat.io.byte_ranges import can_split, merge_findings, read_range, relocate
from evermat.io.error_report import Findings
from evermat.io.locate import file_ref, input_files
from evermat.io.read import read_file, read_stream
from evermat.io.schema import table_of
from evermat.language.model import Io
from tests.io.relations import relation, rows_of
from tests.support.environment import LONG

TRIPLE = b'<http://a> <http://b> "c" .\n'
XML = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://">'
    b'<rdf:Description rdf:about="http://a"><x:b>c</x:b></rdf:Description></rdf:RDF>'
)


def put(folder: Path, **files: bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def names(path: str, folder: Path) -> list[str]:
    return [place.path.relative_to(folder).as_posix() for place in input_files(Io(relation("n"), path=path), folder)]


# --- which files ---------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ["part-2.csv", "part-10.csv", "part-1.txt", ".part-3.csv", "_part-4.csv", "parts/9", "parts/10.csv"]:
        put(tmp_path, **{name.replace("/", "__"): b"1\n"})
    for name in ["2024-01/e.csv", "2024-02/e.csv", "2024-02/f.csv", "2025-01/e.csv", "[x]/e.csv", "x/e.csv", "[z].csv"]:
        put(tmp_path, **{name.replace("/", "__"): b"1\n"})
    put(tmp_path, z__c=b"", all__a=b"1\n", all__b__c=b"2\n", all___SUCCESS=b"", **{"all__.a.crc": b"", "z.csv": b""})
    return tmp_path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("part-2.csv", ["part-2.csv"]),
        ("no-such-file", ["no-such-file"]),
        ("part-*.csv", ["part-10.csv", "part-2.csv"]),
        ("part-?.*", ["part-1.txt", "part-2.csv"]),
        ("part-[12]*", ["part-1.txt", "part-10.csv", "part-2.csv"]),
        ("*.csv", ["[z].csv", "part-10.csv", "part-2.csv", "z.csv"]),
        ("_*.csv", ["_part-4.csv"]),
        (".*.csv", [".part-3.csv"]),
        ("2024-*/e.csv", ["2024-01/e.csv", "2024-02/e.csv"]),
        ("202?-0[12]/[ef].csv", ["2024-01/e.csv", "2024-02/e.csv", "2024-02/f.csv", "2025-01/e.csv"]),
        ("2024-*", ["2024-01/e.csv", "2024-02/e.csv", "2024-02/f.csv"]),
        ("parts/", ["parts/10.csv", "parts/9"]),
        ("[x]/*.csv", ["[x]/e.csv"]),  # such a folder is there
        ("[xy]/*.csv", ["x/e.csv"]),
        ("[z].csv", ["[z].csv"]),
    ],
)
def test_which_files_are_meant(path, found, tree):
    assert names(path, tree) == found
    if not path.startswith("no"):
        assert names(f"{tree}/{path}", tree) == found


def test_signs_of_patterns_in_the_folder_mean_themselves(tree):
    assert names("*.csv", tree / "[x]") == ["e.csv"]


def test_a_folder_within_a_folder_is_not_passed_over(tree):
    with pytest.raises(
        DataError, match=r"`.*` is a folder, not a file\n  = note: only the files of one folder are read"
    ):
        names("all", tree)


@pytest.mark.parametrize("path", ["q*", "q*/e.csv", "2024-*/q", "part-2.csv/*"])
def test_a_pattern_that_matches_nothing_is_an_error(path, tree):
    with pytest.raises(DataError, match="no name matches this pattern"):
        names(path, tree)


def test_a_folder_of_all_formats_is_one_relation(tmp_path):
    put(tmp_path, **{"a.csv": b"x\ty\tz\nb\tc\td\n", "b.txt.gz": gzip.compress(b"x\ty\tz\ne\tf\tg\n")})
    put(tmp_path, **{"c.jsonl": b'["h","i","j"]\n', "d.nt": TRIPLE, "_e.csv": b"?", "_g__h.csv": b"?"})
    pq.write_table(pa.table({"x": ["k"], "y": ["l"], "z": ["m"]}), tmp_path / "e.parquet")
    found = read_relation(Io(relation("sss"), path=str(tmp_path), headers=True), Path())
    rows = [("b", "c", "d"), ("e", "f", "g"), ("h", "i", "j"), ("<http://a>", "<http://b>", '"c"'), ("k", "l", "m")]
    assert rows_of(found) == rows


def test_the_fact_of_a_nullary_relation_may_be_in_any_file(tmp_path):
    put(tmp_path, a=b"", b=b"()\n", c=b"")
    assert rows_of(read_relation(Io(relation(""), path=str(tmp_path)), Path())) == [()]


def test_files_without_facts_are_no_error(tmp_path):
    put(tmp_path, a=b"", b=b"")
    assert rows_of(read_relation(Io(relation("n"), path=str(tmp_path)), Path())) == []


def test_a_parquet_folder_is_its_files(tmp_path):
    put(tmp_path, **{"r.parquet___SUCCESS": b"", "r.parquet__.x.crc": b""})
    for name in ("2", "1"):
        pq.write_table(pa.table({"x": [int(name)]}), tmp_path / "r.parquet" / f"{name}.parquet")
    places = input_files(Io(relation("n"), path="r.parquet"), tmp_path)
    assert [place.path.name for place in places] == ["1.parquet", "2.parquet"]
    assert rows_of(read_relation(Io(relation("n"), path="r.parquet"), tmp_path)) == [(1,), (2,)]


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match=r"error\[E301\]: cannot read `.*`: Permission denied"):
        input_files(Io(relation("n"), path="."), tmp_path)


def test_wrong_columns_are_said_once_for_all_files(tmp_path):
    put(tmp_path, **{"a.nt": TRIPLE, "b.nt": TRIPLE, "c.ttl": b"", "d.owl": b""})
    with pytest.raises(DataError) as caught:
        input_files(Io(relation("n"), path=str(tmp_path)), Path())
    assert [problem.kind.code for problem in caught.value.problems] == [328]


# --- bytes from elsewhere ------------------------------------------------------------------------------------


class OneWay(streams.RawIOBase):
    """A stream that cannot go back, as those over networks."""

    def __init__(self, content: bytes) -> None:
        self._inner = streams.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        return self._inner.readinto(buffer)


@pytest.mark.parametrize("kind", [streams.BytesIO, OneWay])
@pytest.mark.parametrize(
    "name",
    [
        *["r.csv", "r.csv.gz", "r.jsonl", "r.jsonl.gz", "r.nt", "r.nt.gz", "r.parquet"],
        *["r.nq", "r.nq.gz", "r.ttl", "r.ttl.gz", "r.trig", "r.rdf", "r.rdf.gz", "r.owl", "r.owl.gz", "r.xml"],
    ],
)
def test_any_format_is_read_from_a_stream(name, kind, tmp_path):
    path = tmp_path / name
    content = {"c": b"a\tb\tc\n", "j": b'["a","b","c"]\n', "r": XML, "x": XML}.get(name[2], TRIPLE)
    if name.endswith(".gz"):
        content = gzip.compress(content)
    path.write_bytes(content)
    if name == "r.parquet":
        pq.write_table(pa.table({"x": ["a"], "y": ["b"], "z": ["c"]}), path)
    io, place = Io(relation("sss")), file_ref(path)
    found = read_stream(kind(path.read_bytes()), place, io, Findings("elsewhere"))
    assert found.num_rows == 1
    assert found.equals(read_file(place, io))


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.nt", "r.nq", "r.parquet", "r.ttl", "r.trig", "r.rdf", "r.owl"])
def test_errors_of_a_stream_name_it(name):
    with pytest.raises(DataError, match="elsewhere"):
        read_stream(streams.BytesIO(b"one"), file_ref(Path(name)), Io(relation("sss")), Findings("elsewhere"))


# --- files in parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rfc4180", "splits"),
    [
        ("r.facts", False, True),
        ("r.csv", True, False),
        ("r.csv.gz", False, False),
        ("r.jsonl", True, True),
        ("r.jsonl.gz", False, False),
        ("r.nt", False, True),
        ("r.nt.gz", False, False),
        ("r.nq", False, True),
        ("r.parquet", False, False),
        ("r.ttl", False, False),
    ],
)
def test_what_can_be_split(name, rfc4180, splits):
    assert can_split(file_ref(Path(name)), Io(relation("s"), rfc4180=rfc4180)) == splits


ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b""])
FIELDS = {
    "r.facts": [b"1", b"a", b"1\t2", b"a\tb", b"", b"x", b"()", b"\xff", b"\xef\xbb\xbf", "ä\t3".encode(), b"1\t2\t3"],
    "r.jsonl": [b"[1, 2]", b'["a"]', b"[]", b"{}", b"", b"[", b'{"x": 1, "y": 2}', b"\xff", b"[1]"],
    "r.nt": [
        *[
            TRIPLE.strip(),
            b"_:a <http://b> _:c.",
            b"# c",
            b"",
            b"  ",
            b"x",
            b"\xff",
            b'<http://a> <http://b> "\\u0041" .',
        ],
        *['<http://ä> <http://b> "ß"@DE.'.encode(), b"<http://a> <http://b> <c> ."],
    ],
}
FIELDS["r.nq"] = [
    *FIELDS["r.nt"],
    b"_:a <http://b> _:c <http://g> .",
    b'_:a <http://b> "c d" _:g .',
    b'_:a <http://b> "c"\t_:g .',
]


@st.composite
def texts(draw, name):
    lines = draw(st.lists(st.tuples(st.sampled_from(FIELDS[name]), ENDS), max_size=8))
    repeated = draw(st.sampled_from([1, 1, 4]))
    mark = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return mark + b"".join(line + end for line, end in lines * repeated)


def read_whole(path, io):
    try:
        return read_file(file_ref(path), io), []
    except DataError as error:
        return None, list(error.problems)


def read_parts(path, io, cuts, size):
    tables, problems, before = [], [], 0
    for start, end in itertools.pairwise(cuts):
        findings = Findings(str(path))
        table, lines = read_range(path, start, end, io, findings, size)
        tables.append(table)
        sent = pickle.loads(pickle.dumps(findings.all()))
        problems.append([relocate(problem, before) for problem in sent])
        before += lines
    content = path.read_bytes()
    assert before == content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    return table_of(io.relation, tables), merge_findings(path, problems)


@pytest.mark.slow
@settings(max_examples=400 if LONG else 150)
@given(st.data(), st.sampled_from(["r.facts", "r.facts", "r.jsonl", "r.nt", "r.nq"]), st.booleans(), st.integers(1, 40))
def test_the_parts_are_the_whole(data, name, headers, size):
    types = {"r.nt": "tst", "r.nq": "tstt"}.get(name) or data.draw(
        st.sampled_from(["s", "n", "ss", "nn", "sn", "", "t"])
    )
    content = data.draw(texts(name))
    inner = data.draw(st.lists(st.integers(0, len(content) + 2), max_size=6))
    cuts = [0, *sorted(inner), len(content) + 3]
    io = Io(relation(types), headers=headers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        table, problems = read_whole(path, io)
        parts, found = read_parts(path, io, cuts, size)
    assert [problem.render() for problem in found] == [problem.render() for problem in problems]
    if table is not None:
        assert parts.schema == table.schema
        assert rows_of(parts) == rows_of(table)


def test_every_cut_of_a_small_file(tmp_path):
    path = tmp_path / "r.facts"
    path.write_bytes(b"\xef\xbb\xbfx\ty\r\n1\t\xc3\xa4\r\n\n2\n3\tb\n\r\n")
    io = Io(relation("ns"), headers=True)
    _, problems = read_whole(path, io)
    assert len(problems) == 2
    for first in range(path.stat().st_size + 1):
        for second in range(first, path.stat().st_size + 1):
            _, found = read_parts(path, io, [0, first, second, path.stat().st_size], 1 << 20)
            assert [problem.render() for problem in found] == [problem.render() for problem in problems]


def test_ten_errors_of_all_parts_are_shown(tmp_path):
    path = tmp_path / "r.facts"
    path.write_bytes(b"1\nx\n" * 30)
    io = Io(relation("n"))
    _, problems = read_whole(path, io)
    _, found = read_parts(path, io, [0, 30, 61, 120], 7)
    assert [problem.render() for problem in found] == [problem.render() for problem in problems]
    assert [problem.kind.code for problem in found] == [306] * 10 + [329]


def test_a_problem_without_a_line_stays_where_it_is():
    findings = Findings("r")
    findings.whole(BAD_GZIP, path="r", why="it breaks off")
    (problem,) = findings.problems
    assert relocate(problem, 7) is problem


def test_the_parts_of_a_nullary_relation():
    assert rows_of(table_of(relation(""), [nullary(present=False), nullary(present=True)])) == [()]


def test_errors_are_counted_up_to_a_thousand(tmp_path):
    path = tmp_path / "r.facts"
    for lines, told in (
        (11, "and 1 more error:"),
        (999, "and 989 more errors:"),
        (5000, "and at least 990 more errors:"),
    ):
        path.write_bytes(b"x\n" * lines)
        _, problems = read_whole(path, Io(relation("n")))
        _, found = read_parts(path, Io(relation("n")), [0, 700, 2 * lines], 64)
        assert [problem.render() for problem in found] == [problem.render() for problem in problems]
        assert problems[-1].message.startswith(told)
