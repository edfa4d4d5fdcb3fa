"""Files of changes: what is read, what is written, that both agree, and the exact text of every error about them.

With EVERMAT_UPDATE_GOLDEN=1 the cases are written again, to be read before they are kept.
"""

from __future__ import annotations

import gzip
import io as streams
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evermat
from evermat.core import error_catalogue as errors
from evermat.core.errors import DataError, EvermatError, ResourceError
from evermat.core.source import Source
from evermat.io import RdfOptions, read_update, updates_of, write_changes
from evermat.io.blocks import Block
from evermat.io.changes import jsonl, text
from evermat.io.error_report import Findings, FullError
from evermat.language.compile import compile_program
from evermat.language.model import Program
from evermat.language.prefixes import relation_names
from tests.io.relations import facts, in_order, not_utf8, relation, rows_of, symbols, table

CASES = Path(__file__).parent / "change_cases"
PROGRAM = compile_program(
    Source(
        "p.dl",
        """
        .decl edge(x:symbol, y:symbol)
        .decl node(x:symbol)
        .decl all(x:symbol, y:number, z:unsigned, v:float)
        .decl size(n:number)
        .decl yes()
        .prefix ub: <http://u.example/>
        ub:Student(x) :- ub:takes(x, _), !ub:takes(x, x), size(count : { edge(_, _) }).
        """,
    )
)
STUDENT = "<http://u.example/Student>"
TAKES = "<http://u.example/takes>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def read(path: Path, program: Program = PROGRAM, **options) -> tuple[dict[str, list[tuple]], dict[str, list[tuple]]]:
    """The facts to insert and to delete."""
    found = read_update([path], program, **options)
    return tuple({name: rows_of(t) for name, t in part.items()} for part in (found.insert, found.delete))


def reading(content: bytes, name: str = "changes.txt") -> Callable[[], None]:
    """Reads a file with this content."""

    def run() -> None:
        Path(name).write_bytes(content)
        read_update([Path(name)], PROGRAM)

    return run


def reading_parquet(found: pa.Table, name: str = "changes.parquet") -> Callable[[], None]:
    def run() -> None:
        pq.write_table(found, name, row_group_size=2)
        read_update([Path(name)], PROGRAM)

    return run


def file(content: bytes, name: str) -> Path:
    Path(name).write_bytes(content)
    return Path(name)


@dataclass
class Facts:
    found: pa.Table

    def to_arrow(self) -> pa.Table:
        return self.found


@dataclass
class Changes:
    """What an update hands back, as far as it is written."""

    inserted: dict[str, Facts]
    deleted: dict[str, Facts]


def changes(insert: dict[str, tuple[str, list[tuple]]], delete: dict[str, tuple[str, list[tuple]]]) -> Changes:
    """Changes from types and rows by name."""
    made = [
        {name: Facts(table(relation(types, name), rows)) for name, (types, rows) in part.items()}
        for part in (insert, delete)
    ]
    return Changes(*made)


# --- errors ------------------------------------------------------------------------------------------------

SPELLED = pa.list_(pa.string())
RUNS: dict[str, Callable[[], None]] = {
    "signs": reading(b"+\tnode\ta\n*\tnode\tb\n\nadd\tnode\tc\n\tnode\td\n"),
    "relations": reading(b"+\n-\t\n+\tegde\ta\tb\n+\tedge[x]\ta\n+\tsomething\t\n"),
    "counts": reading("+\tedge\tä\n-\tedge\n+\tedge\ta\tb\tc\n+\tyes\ta\n+\tyes\ta\tb\n".encode()),
    "values": reading(b"+\tall\ta\t1\t2\t3\r\n-\tall\ta\tx\t-2\tnan\r\n+\tsize\t99999999999999999999\r\n+\tsize\t\r\n"),
    "not_utf8": reading(b"+\tnode\ta\xff\n+\tno\xff\tb\n"),
    "and_more": reading(b"nope\n" * 12),
    "json_shape": reading(
        b'["+", "node", "a"]\n'
        b'{"op": "+", "relation": "node"}\n'
        b'{"op": "+", "relation": "node", "value": ["a"]}\n'
        b'{"op": "+", "relation": "node", "values": ["a"], "time": 1}\n'
        b'{"op": "+", "op": "-", "relation": "node", "values": ["a"]}\n'
        b'{"op": "+", "relation": "node", "values": "a"}\n'
        b"\n",
        "changes.jsonl",
    ),
    "json_signs": reading(
        b'{"op": "insert", "relation": "node", "values": ["a"]}\n'
        b'{"op": 1, "relation": "node", "values": ["a"]}\n'
        b'{"op": "-", "relation": "nodes", "values": ["a"]}\n'
        b'{"op": "-", "relation": null, "values": ["a"]}\n',
        "changes.jsonl",
    ),
    "json_values": reading(
        b'{"op": "+", "relation": "edge", "values": ["a"]}\n'
        b'{"values": ["a", "b", "c"], "op": "+", "relation": "edge"}\n'
        b'{"op": "+", "relation": "edge", "values": {"x": "a", "z": "b"}}\n'
        b'{"op": "+", "relation": "all", "values": ["a", "1", -1, NaN]}\n'
        b'{"op": "+", "relation": "size", "values": [1.5]}\n',
        "changes.jsonl",
    ),
    "parquet_no_op": reading_parquet(pa.table({"Op": ["+"], "x": ["a"], "y": ["b"]}), "edge.parquet"),
    "parquet_signs": reading_parquet(pa.table({"op": ["+", "-", "*"], "x": ["a", "b", "c"]}), "node.parquet"),
    "parquet_op_type": reading_parquet(pa.table({"op": [1], "relation": ["node"], "x": ["a"]})),
    "parquet_op_null": reading_parquet(pa.table({"op": ["+", None, "+"], "relation": ["node"] * 3, "x": ["a"] * 3})),
    "parquet_op_not_utf8": reading_parquet(pa.table({"op": not_utf8(), "relation": ["node"] * 3, "x": ["a"] * 3})),
    "parquet_not_utf8": reading_parquet(pa.table({"op": ["+"] * 3, "x": not_utf8()}), "node.parquet"),
    "parquet_spelled_not_utf8": reading_parquet(
        pa.table(
            {"op": ["+"] * 3, "relation": ["node"] * 3, "values": pa.ListArray.from_arrays([0, 1, 2, 3], not_utf8())}
        )
    ),
    "parquet_file_name": reading_parquet(pa.table({"op": ["+"], "x": ["a"], "y": ["b"]}), "egde.1.parquet"),
    "parquet_relations": reading_parquet(pa.table({"op": ["+", "-"], "relation": ["node", "nodes"], "x": ["a", "b"]})),
    "parquet_columns": reading_parquet(pa.table({"op": ["+", "-"], "relation": ["node", "edge"], "x": ["a", "b"]})),
    "parquet_values": reading_parquet(
        pa.table({"op": ["+"] * 4, "relation": ["node", "size", "size", "node"], "x": ["a", "1", "2", None]})
    ),
    "parquet_spelled": reading_parquet(
        pa.table(
            {
                "op": ["+"] * 5,
                "relation": ["size", "edge", "size", "yes", "edge"],
                "values": pa.array([["1"], ["a"], ["x"], ["y"], None], SPELLED),
            }
        )
    ),
    "rdf_name": reading(b"", "x.nt.gz"),
    "rdf_nowhere": reading(
        f"_:a <http://u.example/takes> _:c .\n_:a {TYPE} <http://u.example/Studens> .\n_:a {TYPE} {STUDENT} .\n"
        f"_:a <http://u.example/task> _:c .\n_:b <http://u.example/task> {STUDENT} .\n".encode(),
        "x.add.nt",
    ),
    "rdf_nothing": reading(b"_:a <b> _:c .\n", "x.del.nt"),
    "rdf_unlabelled": reading(b"[] <http://u.example/takes> _:c .\n", "x.del.ttl"),
    "rdf_pair": lambda: read_update(
        updates_of([file(b"_:a _:b _:c .\n", "x.add.nt"), file(b"_:a", "x.del.nt")])[0], PROGRAM
    ),
    "missing": lambda: read_update([Path("no/changes.txt")], PROGRAM),
    "not_gzip": reading(b"+\tyes\n", "changes.gz"),
    "write_tab": lambda: write_changes(changes({"edge": ("ss", [("a", "b\tc")])}, {}), Path("out.txt")),
    "write_newline": lambda: write_changes(changes({}, {"edge": ("ss", [("a\nb", "c")])}), Path("-")),
    "write_rdf": lambda: write_changes(changes({}, {}), Path("out.nt")),
    "write_full": lambda: write_changes(changes({"yes": ("", [()])}, {}), Path("/dev/full")),
}


@pytest.mark.parametrize("name", RUNS)
def test_message(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EvermatError) as caught:
        RUNS[name]()
    code = caught.value.problems[0].kind.code
    assert isinstance(caught.value, DataError if code < 400 else ResourceError)
    assert caught.value.exit_code == code // 100
    case = CASES / f"{name}.txt"
    if os.environ.get("EVERMAT_UPDATE_GOLDEN"):
        case.parent.mkdir(exist_ok=True)
        case.write_text(f"{caught.value}\n")
    assert f"{caught.value}\n" == case.read_text()
    assert not list(tmp_path.glob(".evermat*"))


def test_every_kind_has_a_case():
    shown = "".join(case.read_text() for case in CASES.iterdir())
    told = {int(code) for code in re.findall(r"^error\[E(\d+)\]", shown, re.MULTILINE)}
    assert told >= {kind.code for kind in errors.KINDS if 340 <= kind.code < 347}
    assert {case.stem for case in CASES.iterdir()} == set(RUNS)


# --- reading -----------------------------------------------------------------------------------------------


def test_text(tmp_path):
    path = tmp_path / "c.txt"
    path.write_text(f'+\tedge\ta\tb\n-\tnode\t\n+\tall\t"é\t-1\t2\t0.5\n+\tyes\n-\t{STUDENT}\t<x:x>\n+\tnode\ta\n')
    insert, delete = read(path)
    assert insert == {"edge": [("a", "b")], "node": [("a",)], "all": [('"é', -1, 2, 0.5)], "yes": [()]}
    assert delete == {"node": [("",)], STUDENT: [("<x:x>",)]}


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_ends_of_lines_marks_and_compression(tmp_path, ending):
    content = b"\xef\xbb\xbf" + b"+\tyes\n-\tedge\ta\tb\n+\tyes\t()".replace(b"\n", ending or b"\n") + ending
    (tmp_path / "c.txt").write_bytes(content)
    (tmp_path / "c.gz").write_bytes(gzip.compress(content))
    assert read(tmp_path / "c.txt") == read(tmp_path / "c.gz") == ({"yes": [()]}, {"edge": [("a", "b")]})


@pytest.mark.parametrize("name", ["c.txt", "c.jsonl", "c.gz", "c.jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf"])
def test_an_empty_file_changes_nothing(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if not name.endswith("gz") or not content else gzip.compress(content))
    found = read_update([tmp_path / name], PROGRAM)
    assert (found.insert, found.delete) == ({}, {})
    assert not found


def test_json_lines(tmp_path):
    (tmp_path / "c.jsonl").write_text(
        '{"op":"+","relation":"edge","values":["a\\tb","b"]}\n'
        '{"relation": "edge", "values": {"y": "d", "x": "c"}, "op": "-"}\n'
        '{"op":"+","relation":"yes","values":[]}\n'
        '{"op":"+","relation":"all","values":["", -1, 18446744073709551615, "-inf"]}\n'
    )
    insert, delete = read(tmp_path / "c.jsonl")
    assert insert == {"edge": [("a\tb", "b")], "all": [("", -1, 2**64 - 1, float("-inf"))], "yes": [()]}
    assert delete == {"edge": [("c", "d")]}


def test_parquet_by_file_name(tmp_path):
    found = pa.table({"y": ["b", "d"], "op": ["+", "-"], "x": ["a", "c"]})
    pq.write_table(found, tmp_path / "edge.2024-05-01.parquet")
    assert read(tmp_path / "edge.2024-05-01.parquet") == ({"edge": [("a", "b")]}, {"edge": [("c", "d")]})


def test_parquet_with_relations_of_one_shape(tmp_path):
    found = pa.table({"op": ["+", "-", "+"], "relation": ["node", STUDENT, "node"], "c": ["a", "_:b", "d"]})
    pq.write_table(found, tmp_path / "c.parquet")
    assert read(tmp_path / "c.parquet") == ({"node": [("a",), ("d",)]}, {STUDENT: [("_:b",)]})
    dictionaries = found.set_column(1, "relation", found.column(1).dictionary_encode())
    pq.write_table(dictionaries, tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet") == read(tmp_path / "c.parquet")


def test_parquet_folders_are_read_in_order(tmp_path):
    (tmp_path / "node.parquet").mkdir()
    for number, sign in enumerate(["+", "-", "+"]):
        pq.write_table(pa.table({"op": [sign], "x": ["a"]}), tmp_path / "node.parquet" / f"part-{number}.parquet")
    assert read(tmp_path / "node.parquet") == ({"node": [("a",)]}, {})


def test_a_fact_without_columns_in_parquet(tmp_path):
    pq.write_table(pa.table({"op": ["+", "-"]}), tmp_path / "yes.parquet")
    assert read(tmp_path / "yes.parquet") == ({}, {"yes": [()]})


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"+\tnode\ta\n")))
    assert read(Path("-")) == ({"node": [("a",)]}, {})
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"+\tnode\n")))
    with pytest.raises(DataError, match=r"--> <stdin>:1:7\n"):
        read(Path("-"))


def test_lines_are_counted_across_blocks(tmp_path):
    (tmp_path / "c.txt").write_bytes(b"+\tnode\t123456789\n" * 1_000_000 + b"-\tsize\tx\n")
    with pytest.raises(DataError, match=r"c.txt:1000001:8\n"):
        read_update([tmp_path / "c.txt"], PROGRAM)


def test_a_line_with_a_mistake_may_be_long(tmp_path):
    (tmp_path / "c.txt").write_bytes(b"+\tnode\ta\n+\tsize\t" + b"x" * 200_000 + b"\n")
    with pytest.raises(DataError, match=r"^error\[E306\].*\n --> \S*c.txt:2:8\n"):
        read_update([tmp_path / "c.txt"], PROGRAM)


def test_they_are_fit_for_an_update(tmp_path):
    program = evermat.Program.parse(".decl a(x:symbol, n:unsigned) .decl b(x:symbol) b(x) :- a(x, _). .decl c()")
    m = program.materialise({"a": [("x", 1), ("y", 2)], "c": [()]})
    (tmp_path / "c.txt").write_text("-\ta\tx\t1\n+\ta\tz\t18446744073709551615\n-\tc\n+\ta\ty\t2\n")
    found = read_update([tmp_path / "c.txt"], program.compiled)
    change = m.update(found.insert, found.delete)
    assert (set(m["a"]), set(m["b"]), len(m["c"])) == ({("y", 2), ("z", 2**64 - 1)}, {("y",), ("z",)}, 0)
    write_changes(change, tmp_path / "out.txt")
    expected = "-\ta\tx\t1\n+\ta\tz\t18446744073709551615\n-\tb\tx\n+\tb\tz\n-\tc\n"
    assert (tmp_path / "out.txt").read_text() == expected


# --- the last line about a fact counts -----------------------------------------------------------------------

LINES = st.lists(
    st.tuples(
        st.sampled_from("+-"),
        st.sampled_from(
            [
                ("edge", "a", "b"),
                ("edge", "b", "a"),
                ("node", "a"),
                ("node", ""),
                ("yes",),
                ("yes", "()"),
                ("size", "1"),
                ("size", "01"),
            ]
        ),
    ),
    max_size=12,
)


@given(LINES, st.integers(1, 40))
def test_the_last_line_about_a_fact_counts(tmp_path_factory, lines, size):
    last = {
        (name, *(int(v) if name == "size" else v for v in values if v != "()")): sign for sign, (name, *values) in lines
    }
    folder = tmp_path_factory.mktemp("changes")
    (folder / "c.txt").write_text("".join("\t".join([sign, *change]) + "\n" for sign, change in lines))
    insert, delete = read(folder / "c.txt", size=size)
    found = {(name, *row): "+" for name, rows in insert.items() for row in rows}
    gone = {(name, *row): "-" for name, rows in delete.items() for row in rows}
    assert not found.keys() & gone.keys()
    assert found | gone == last


# --- the fast way and the exact one agree --------------------------------------------------------------------

PIECES = [*"+-", *"\t\t\t\t", "edge", "node", "yes", "all", "size", "()", "a", "é", "1", "-2", "0.5", "nan", "\r", '"']
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), max_size=6)
GOOD = ["+\tedge\ta\tb", "-\tnode\t", "+\tyes", "-\tyes\t()", "+\tall\tx\t1\t2\t3", "-\tsize\t7", "+\tnode\t1"]


@given(st.lists(st.sampled_from(GOOD), max_size=6), TEXTS, st.sampled_from(["\n", "\r\n"]))
def test_text_is_read_alike(good, odd, end):
    block = Block(1, "".join(line + end for line in [*good, *odd]).encode())
    if not block.data:
        return
    quick = text.read_quickly(block.data, relation_names(PROGRAM))
    compare(quick, lambda findings: text.read_slowly(block, PROGRAM.relations, findings))
    if not odd:
        assert quick is not None


@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=6), st.lists(st.sampled_from(PIECES), max_size=6))
def test_json_is_read_alike(good, odd):
    lines = []
    for line in good:
        sign, name, *values = line.split("\t")
        spelled = [v if name in ("all", "size") and v != "x" else f'"{v}"' for v in values if v != "()"]
        lines.append(f'{{"op": "{sign}", "relation": "{name}", "values": [{", ".join(spelled)}]}}')
    lines += [f'{{"op": "+", "relation": "node", "values": [{piece}]}}' for piece in odd]
    block = Block(1, "\n".join(lines).encode())
    quick = jsonl.read_quickly(block, relation_names(PROGRAM))
    compare(quick, lambda findings: jsonl.read_slowly(block, PROGRAM.relations, findings))
    if not odd:
        assert quick is not None


def compare(quick, slowly) -> None:
    findings = Findings("c")
    try:
        exact = list(slowly(findings))
    except FullError:
        exact = None
    if quick is not None:
        assert not findings.problems
        assert exact is not None
        shown = [{p.relation.name: (rows_of(p.table), p.signs.tolist()) for p in parts} for parts in (quick, exact)]
        assert shown[0] == shown[1]


# --- RDF ---------------------------------------------------------------------------------------------------


def test_rdf_inserts_or_deletes(tmp_path):
    (tmp_path / "x.add.nt").write_text(f"_:a {TAKES} _:c .\n_:a {TYPE} {STUDENT} .\n_:b {TAKES} _:c .\n")
    assert read(tmp_path / "x.add.nt") == ({TAKES: [("_:a", "_:c"), ("_:b", "_:c")], STUDENT: [("_:a",)]}, {})
    (tmp_path / "y.DEL.ttl.gz").write_bytes(gzip.compress(b"@prefix u: <http://u.example/> . _:a a u:Student ."))
    assert read(tmp_path / "y.DEL.ttl.gz") == ({}, {STUDENT: [("_:a",)]})
    (tmp_path / "z.add.nq").write_text(f"_:a {TAKES} _:c <http://g> .\n")
    assert read(tmp_path / "z.add.nq") == ({TAKES: [("_:a", "_:c")]}, {})


def test_files_of_a_pair_are_one_update():
    names = [
        "a.add.nt",
        "a.del.nt",
        "b.del.ttl",
        "b.add.nt.gz",
        "c.add.nt",
        "d.del.nt",
        "d.txt",
        "d.add.nt",
        "e.add.nt",
    ]
    names += ["e.add.nt", "e.del.nt", "e.add.nt", "f/g.add.nt", "g.del.nt", "h.nt", "h.del.nt"]
    found = [[str(path) for path in update] for update in updates_of(map(Path, names))]
    assert found == [
        *[["a.add.nt", "a.del.nt"], ["b.del.ttl", "b.add.nt.gz"], ["c.add.nt"], ["d.del.nt"], ["d.txt"], ["d.add.nt"]],
        *[["e.add.nt"], ["e.add.nt", "e.del.nt"], ["e.add.nt"], ["f/g.add.nt"], ["g.del.nt"], ["h.nt"], ["h.del.nt"]],
    ]


@pytest.mark.parametrize("names", [("x.add.nt", "x.del.nt"), ("x.del.nt", "x.add.nt")])
def test_what_is_inserted_and_deleted_is_inserted(tmp_path, names):
    (tmp_path / "x.add.nt").write_text(f"_:a {TAKES} _:c .\n_:b {TAKES} _:c .\n")
    (tmp_path / "x.del.nt").write_text(f"_:b {TAKES} _:c .\n_:c {TAKES} _:c .\n_:c {TYPE} {STUDENT} .\n")
    (update,) = updates_of([tmp_path / name for name in names])
    found = read_update(update, PROGRAM)
    assert {name: sorted(rows_of(t)) for name, t in found.insert.items()} == {TAKES: [("_:a", "_:c"), ("_:b", "_:c")]}
    assert {name: rows_of(t) for name, t in found.delete.items()} == {TAKES: [("_:c", "_:c")], STUDENT: [("_:c",)]}


def test_any_other_file_is_an_update(tmp_path):
    (tmp_path / "c.txt").write_text("+\tnode\ta\n")
    assert rows_of(read_update([tmp_path / "c.txt"], PROGRAM).insert["node"]) == [("a",)]


def test_a_blank_node_without_a_label_is_new_and_the_same_each_time(tmp_path):
    path = tmp_path / "x.add.ttl"
    path.write_text(f"_:b1 {TAKES} [ {TAKES} _:b1 ] .\n")
    first, _ = read(path)
    rows = first[TAKES]
    (new,) = {term for row in rows for term in row} - {"_:b1"}
    assert re.fullmatch("_:u[0-9a-f]{12}_b1", new)
    assert sorted(rows) == sorted([("_:b1", new), (new, "_:b1")])
    assert read(path)[0] == first
    path.write_text(f"_:b1 {TAKES} [ {TAKES} _:b2 ] .\n")
    assert new not in {term for row in read(path)[0][TAKES] for term in row}


def test_malformed_changes_can_be_left_out(tmp_path):
    (tmp_path / "x.add.nt").write_text(f"_:a {TAKES} _:c .\n_:a\n_:b _:c _:d .\n")
    (tmp_path / "x.del.ttl").write_text(f"_:a {TAKES} _:b . <a> <b> <c> . _:c {TAKES} _:b .")
    skipped: dict[str, int] = {}
    paths = [tmp_path / "x.add.nt", tmp_path / "x.del.ttl"]
    found = read_update(paths, PROGRAM, RdfOptions(skip=True), skipped)
    assert rows_of(found.insert[TAKES]) == [("_:a", "_:c")]
    assert rows_of(found.delete[TAKES]) == [("_:a", "_:b"), ("_:c", "_:b")]
    assert skipped == {str(paths[0]): 2, str(paths[1]): 1}
    with pytest.raises(DataError, match="no relation for the property `<http://b/b>`"):
        read_update(paths[1:], PROGRAM, RdfOptions(base="http://b/"))


# --- writing -----------------------------------------------------------------------------------------------


def test_order(tmp_path):
    found = changes(
        {"b": ("sn", [("b", 1), ("a", 10), ("a", 9)]), "Ä": ("s", [("x",)]), "none": ("s", [])},
        {"b": ("sn", [("c", 0)]), "a": ("", [()])},
    )
    write_changes(found, tmp_path / "c.txt")
    assert (tmp_path / "c.txt").read_text() == "-\ta\n-\tb\tc\t0\n+\tb\ta\t9\n+\tb\ta\t10\n+\tb\tb\t1\n+\tÄ\tx\n"
    write_changes(found, tmp_path / "c.jsonl")
    assert (tmp_path / "c.jsonl").read_text().splitlines()[:3] == [
        '{"op": "-", "relation": "a", "values": []}',
        '{"op": "-", "relation": "b", "values": ["c", 0]}',
        '{"op": "+", "relation": "b", "values": ["a", 9]}',
    ]
    write_changes(found, tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet").to_pylist()[:3] == [
        {"op": "-", "relation": "a", "values": []},
        {"op": "-", "relation": "b", "values": ["c", "0"]},
        {"op": "+", "relation": "b", "values": ["a", "9"]},
    ]


def test_equal_changes_give_equal_bytes(tmp_path):
    rows = [("a", 2), ("b", 1), ("c", 0)]
    for name in ["c.txt.gz", "c.parquet", "c.jsonl.gz"]:
        write_changes(changes({"r": ("sn", rows)}, {}), tmp_path / f"1{name}")
        write_changes(changes({"r": ("sn", rows[::-1])}, {}), tmp_path / f"2{name}")
        assert (tmp_path / f"1{name}").read_bytes() == (tmp_path / f"2{name}").read_bytes()


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
def test_standard_output(target, capsysbinary):
    write_changes(changes({"r": ("s", [("é",)])}, {}), Path(target))
    assert capsysbinary.readouterr().out == "+\tr\té\n".encode()


def test_no_change_is_an_empty_file(tmp_path):
    for name in ["c.txt", "c.jsonl", "c.parquet"]:
        write_changes(changes({"r": ("s", [])}, {}), tmp_path / name)
        assert not read_update([tmp_path / name], PROGRAM)
    assert (tmp_path / "c.txt").read_bytes() == b""


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "c.txt").write_text("old")
    good = {"a": ("s", [("x",)] * 3), "b": ("s", [("bad\n",)])}
    with pytest.raises(DataError, match="it contains a newline"):
        write_changes(changes(good, {}), tmp_path / "c.txt")
    assert (tmp_path / "c.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["c.txt"]


LETTERS = {"edge": "ss", "node": "s", "all": "snuf", "size": "n", "yes": "", STUDENT: "t"}


def some_changes(**options) -> st.SearchStrategy[dict[str, tuple[list[tuple], list[tuple]]]]:
    """Facts to insert and to delete, none of them both."""

    def split(rows: list[tuple]) -> tuple[list[tuple], list[tuple]]:
        distinct = list(dict.fromkeys(rows))
        return distinct[::2], distinct[1::2]

    return st.fixed_dictionaries({name: facts(types, **options).map(split) for name, types in LETTERS.items()})


def round_trip(folder: Path, name: str, found: dict[str, tuple[list[tuple], list[tuple]]]) -> None:
    insert, delete = ({n: (LETTERS[n], pair[i]) for n, pair in found.items()} for i in (0, 1))
    write_changes(changes(insert, delete), folder / name)
    for part, expected in zip(read(folder / name), (insert, delete), strict=True):
        assert {n: in_order(rows) for n, rows in part.items()} == {
            n: in_order(r) for n, (_, r) in expected.items() if r
        }


@pytest.mark.slow
@given(some_changes(plain=True), st.sampled_from(["c.txt", "c.gz", "c.any"]))
def test_text_reads_back(tmp_path_factory, found, name):
    round_trip(tmp_path_factory.mktemp("changes"), name, found)


@pytest.mark.slow
@given(some_changes(), st.sampled_from(["c.jsonl", "c.jsonl.gz", "c.parquet"]))
def test_json_and_parquet_read_back(tmp_path_factory, found, name):
    round_trip(tmp_path_factory.mktemp("changes"), name, found)


@given(st.lists(symbols(plain=True), min_size=1, max_size=5))
def test_every_plain_symbol_reads_back_alone(tmp_path_factory, texts):
    round_trip(tmp_path_factory.mktemp("changes"), "c", {"node": ([(t,) for t in dict.fromkeys(texts)], [])})
