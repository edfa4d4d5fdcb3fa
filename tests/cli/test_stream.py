"""`evermat stream`: a folder is followed, every file once and in order, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evermat
from evermat.runtime.streams import folder_stream
from evermat.runtime.streams.folder_stream import FolderStream, stream_name
from tests.runtime.test_stream_crash import PATHS
from tests.spark.test_saved_state import open_in_process
from tests.support import oracle
from tests.support.commands import Evermat
from tests.support.environment import LASTING
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, facts_at
from tests.support.updates import applied

CLOSURE = """\
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.decl wrong(x:symbol) forbidden
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
wrong(x) :- path(x, x).
"""
TRIPLES = """\
.decl triple(s:term, p:term, o:term)
.decl linked(s:term, o:term)
linked(s, o) :- triple(s, _, o).
"""
STREAM = ("stream", "--state", "state", "--source", "src")
ONCE = (*STREAM, "--once")
FILES = 8


def keep(text: str, **facts: Any) -> None:
    """A state of one version."""
    with evermat.Program.parse(text).materialise(facts, counters="both") as m:
        m.save("state")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a state a → b → c, and an empty source."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    keep(CLOSURE, edge=[("a", "b"), ("b", "c")])
    return tmp_path


def put(name: str, *changes: str) -> Path:
    """A file of changes in the source; `+c d` inserts the edge from c to d."""
    made = Path("src", f".{name}")
    made.write_text("".join(f"{one[0]}\tedge\t{one[1:].replace(' ', chr(9))}\n" for one in changes))
    return made.rename(f"src/{name}")


def edges(version: int | None = None) -> set[str]:
    return {f"{x} {y}" for x, y in facts_at(Path("state"), version)["edge"]}


def batches() -> list[str | None]:
    """The files at which versions say to be."""
    name = stream_name("src") + " "
    found = [version.batch for version in evermat.versions("state")]
    assert all(batch is None or batch.startswith(name) for batch in found)
    return [batch and batch.removeprefix(name) for batch in found]


# --- what is taken, and when --------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_are_taken_in_the_order_of_their_names(folder: Path, evermat_command: Evermat) -> None:
    put("9.tsv", "-c d")
    put("10.tsv", "+c d", "-a b")
    put("empty")
    Path("src/b.jsonl").write_text('{"op": "+", "relation": "edge", "values": ["a", "b"]}\n')
    pq.write_table(pa.table({"op": ["+"], "x": ["x"], "y": ["y"]}), "src/edge.parquet")
    for name in (".hidden.tsv", "_begun.tsv", "a.tsv.tmp", "a.tsv.part", "a.tsv.crdownload"):
        Path("src", name).write_text("this is no change\n")
    Path("src/sub").mkdir()
    Path("src/sub/a.tsv").write_text("neither is this\n")
    assert evermat_command(*ONCE) == (
        0,
        "",
        "version 2: 10.tsv: 3 facts inserted, 3 deleted\n"
        "version 3: 9.tsv: 0 facts inserted, 3 deleted\n"
        "version 4: b.jsonl: 3 facts inserted, 0 deleted\n"
        "version 5: edge.parquet: 2 facts inserted, 0 deleted\n"
        "version 6: empty: 0 facts inserted, 0 deleted\n",
    )
    assert batches() == [None, "10.tsv", "9.tsv", "b.jsonl", "edge.parquet", "empty"]
    assert edges(2) == {"b c", "c d"}
    assert edges() == {"a b", "b c", "x y"}
    assert facts_at(Path("state"))["path"] == {("a", "b"), ("b", "c"), ("a", "c"), ("x", "y")}


@pytest.mark.slow
def test_what_was_taken_is_not_taken_again(folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d")
    put("2.tsv", "-c d")
    assert evermat_command(*ONCE).code == 0
    assert evermat_command(*ONCE) == (0, "", "")
    put("3.tsv", "+c d")
    with evermat.open("state", write=True) as m:  # another has written meanwhile
        m.update({"edge": [("y", "z")]})
    assert evermat_command(*ONCE).err == "version 5: 3.tsv: 4 facts inserted, 0 deleted\n"
    assert batches() == [None, "1.tsv", "2.tsv", None, "3.tsv"]
    assert edges() == {"a b", "b c", "c d", "y z"}
    with evermat.open("state") as m:
        assert m.positions == {f"directory:{folder}/src": "3.tsv"}


def test_a_link_to_the_folder_is_the_folder(folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d")
    assert evermat_command(*ONCE).code == 0
    Path("link").symlink_to("src")
    assert evermat_command("stream", "--state", "state", "--source", "link", "--once") == (0, "", "")


@pytest.mark.slow
def test_what_came_too_late_while_nobody_looked(folder: Path, evermat_command: Evermat) -> None:
    put("5.tsv", "+c d")
    put("6.tsv", "+d e")
    assert evermat_command(*ONCE).code == 0
    time.sleep(0.02)  # the clock of files is coarse
    put("4.tsv", "+x y")
    late = "warning: `src/4.tsv` appeared or changed after its turn, and is not taken: files are taken in the order of their names"
    assert evermat_command(*ONCE) == (0, "", f"{late}\n")
    for number in range(30):
        put(f"3-{number:02}.tsv")
    code, _, err = evermat_command(*ONCE)
    assert (code, len(err.splitlines())) == (0, 21)
    assert err.endswith("warning: 11 more files of `src` appeared or changed likewise\n")
    put("7.tsv", "+e f")
    evermat_command(*ONCE)
    assert evermat_command(*ONCE) == (0, "", "")  # it was told when it was new
    assert edges() == {"a b", "b c", "c d", "d e", "e f"}


# --- pairs --------------------------------------------------------------------------------------------------


def triples(name: str, *objects: str) -> None:
    Path("src", name).write_text("".join(f"<http://a> <http://p> <http://{o}> .\n" for o in objects))


def objects(version: int | None = None) -> set[str]:
    return {o.removeprefix("<http://").rstrip(">") for _, o in facts_at(Path("state"), version)["linked"]}


@pytest.fixture
def rdf_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    keep(TRIPLES)


@pytest.mark.slow
def test_pairs(rdf_folder: None, evermat_command: Evermat) -> None:
    triples("x.add.nt", "a", "b")
    triples("x.del.nt", "a", "c")  # what is in both is inserted
    triples("w.add.nt", "c")
    triples("x.between.del.nt", "b")
    triples("y.add.nt", "d")
    triples("y.add.ttl", "e")
    triples("y.del.nt", "d", "e")
    assert evermat_command(*ONCE).err == (
        "version 2: w.add.nt: 2 facts inserted, 0 deleted\n"
        "version 3: x.add.nt x.del.nt: 4 facts inserted, 2 deleted\n"
        "version 4: x.between.del.nt: 0 facts inserted, 2 deleted\n"
        "version 5: y.add.nt: 2 facts inserted, 0 deleted\n"
        "version 6: y.add.ttl y.del.nt: 2 facts inserted, 2 deleted\n"
    )
    assert [objects(version) for version in range(2, 7)] == [{"c"}, {"a", "b"}, {"a"}, {"a", "d"}, {"a", "e"}]
    assert batches() == [None, "w.add.nt", "x.del.nt", "x.between.del.nt", "y.add.nt", "y.del.nt"]
    triples("z.add.nt", "f")
    assert evermat_command(*ONCE).code == 0
    triples("z.del.nt", "f")  # it was not announced: an update by itself
    assert evermat_command(*ONCE).err == "version 8: z.del.nt: 0 facts inserted, 2 deleted\n"


@pytest.mark.parametrize("other", ["x.del.nt.tmp", ".x.del.nt", "_x.del.ttl.gz.part"])
def test_a_half_waits_for_the_other(other: str, rdf_folder: None, evermat_command: Evermat) -> None:
    triples("w.add.nt", "c")
    triples("x.add.nt", "a", "b")
    triples("y.add.nt", "d")
    triples(other, "c")
    assert evermat_command(*ONCE) == (
        0,
        "",
        f"warning: `src/x.add.nt` waits for `{other}`, and so do all files after it\n"
        "version 2: w.add.nt: 2 facts inserted, 0 deleted\n",
    )
    Path("src", other).rename("src/x.del.nt")
    assert evermat_command(*ONCE).err == (
        "version 3: x.add.nt x.del.nt: 4 facts inserted, 2 deleted\nversion 4: y.add.nt: 2 facts inserted, 0 deleted\n"
    )
    assert objects() == {"a", "b", "d"}


@pytest.mark.slow
def test_malformed_statements_are_left_out_and_counted(rdf_folder: None, evermat_command: Evermat) -> None:
    Path("src/x.add.nt").write_text("<http://a> <http://p> .\n<http://a> <http://p> <http://b> .\n")
    assert evermat_command(*ONCE).code == 3
    assert evermat_command(*ONCE, "--skip-malformed").err == (
        "warning: src/x.add.nt: 1 malformed statement was left out\nversion 2: x.add.nt: 2 facts inserted, 0 deleted\n"
    )
    Path("src/y.add.ttl").write_text("<a> <p> <b> .\n")
    assert "E371" in evermat_command(*ONCE).err
    assert evermat_command(*ONCE, "--base", "http://x/").code == 0
    assert objects() == {"b", "x/b"}


# --- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bad_file_stops_the_stream_before_it(folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d")
    Path("src/2.tsv").write_text("+\tedge\tx\ty\n*\tedge\tx\ty\n")
    put("3.tsv", "+d e")
    error = (
        "error[E340]: `*` is neither `+` nor `-`\n"
        " --> src/2.tsv:2:1\n"
        "  |\n"
        "2 | * edge x y\n"
        "  | ^\n"
        "  = note: a change is `+` (insert) or `-` (delete), the name of a relation, and a value for each of its columns\n"
        "  = help: the state is at version 2\n"
    )
    assert evermat_command(*ONCE) == (3, "", f"version 2: 1.tsv: 4 facts inserted, 0 deleted\n{error}")
    assert evermat_command(*ONCE) == (3, "", error)
    assert evermat_command(*ONCE, "--coalesce") == (3, "", error)
    put("2.tsv", "+x y")
    assert evermat_command(*ONCE).code == 0
    assert batches() == [None, "1.tsv", "2.tsv", "3.tsv"]


def test_what_cannot_be_applied_names_its_file(folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d")
    put("2.tsv", "+c a")
    code, _, err = evermat_command(*ONCE)
    assert code == 3
    assert err.startswith('version 2: 1.tsv: 4 facts inserted, 0 deleted\nerror[E380]: `wrong("')
    assert "  = help: this happened with `src/2.tsv`; the state is at version 2\n" in err
    assert batches() == [None, "1.tsv"]
    Path("src/2.tsv").unlink()
    put("2.tsv", *(f"+n{i} n{i + 1}" for i in range(50)))
    code, _, err = evermat_command(*ONCE, "--limit-facts", 60)
    assert (code, err) == (
        4,
        "error[E400]: the limit of 60 facts is reached\n"
        " = note: nothing was written, because the result is incomplete: raise the limit\n"
        " = help: this happened with `src/2.tsv`; the state is at version 2\n".replace(" =", "  ="),
    )
    assert batches() == [None, "1.tsv"]


def test_no_folder(folder: Path, evermat_command: Evermat) -> None:
    Path("file").write_text("")
    for name, why in (("nowhere", "there is no such folder"), ("file", "it is a file")):
        assert evermat_command("stream", "--state", "state", "--source", name, "--once") == (
            3,
            "",
            f"error[E393]: changes cannot be read from `{name}`: {why}\n  = note: the source of a stream is a folder\n",
        )


def test_a_name_that_is_no_text(folder: Path, evermat_command: Evermat) -> None:
    try:
        Path(os.fsdecode(b"src/\xff.tsv")).write_text("+\tedge\tc\td\n")
    except OSError:
        pytest.skip("the file system has no such names")
    code, _, err = evermat_command(*ONCE)
    assert (code, err.splitlines()[0]) == (
        3,
        "error[E301]: cannot read `src/?.tsv`: its name is not UTF-8",
    )


def test_a_state_has_one_writer(folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d")
    with evermat.open("state", write=True):
        code, out, err = evermat_command(*ONCE)
    assert (code, out) == (5, "")
    assert err.startswith(f"error[E502]: the state `{folder}/state` is locked by another writer\n")
    assert batches() == [None]


def test_what_the_command_line_must_not_say(folder: Path, evermat_command: Evermat) -> None:
    for option, place in (("--changes-out", "src"), ("--stats", "src/stats.jsonl")):
        assert evermat_command(*ONCE, option, place) == (
            2,
            "",
            f"error[E200]: `{option}` must not write to the source `src`: that would be taken for changes\n",
        )
    assert evermat_command(*ONCE, "--algorithm", "magic").code == 2
    assert evermat_command(*ONCE, "--stats", "nowhere/stats.jsonl") == (
        6,
        "",
        "error[E600]: cannot write `nowhere/stats.jsonl`: No such file or directory\n  = note: no version was made\n",
    )


# --- what is told -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_changes_and_stats(folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d", "-a b")
    assert evermat_command(*ONCE, "--changes-out", "out", "--stats", "stats.jsonl").code == 0
    put("2.tsv", "+a b")
    put("3.tsv")
    assert evermat_command(*ONCE, "--changes-out", "out", "--stats", "stats.jsonl").code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["000002.tsv", "000003.tsv", "000004.tsv"]
    assert Path("out/000002.tsv").read_text() == (
        "-\tedge\ta\tb\n+\tedge\tc\td\n-\tpath\ta\tb\n-\tpath\ta\tc\n+\tpath\tb\td\n+\tpath\tc\td\n"
    )
    assert Path("out/000003.tsv").read_text() == "+\tedge\ta\tb\n+\tpath\ta\tb\n+\tpath\ta\tc\n+\tpath\ta\td\n"
    assert Path("out/000004.tsv").read_text() == ""
    lines = [json.loads(line) for line in Path("stats.jsonl").read_text().splitlines()]
    told = [(line["version"], line["files"], line["updates"], line["inserted"], line["deleted"]) for line in lines]
    assert told == [(2, ["1.tsv"], 1, 3, 3), (3, ["2.tsv"], 1, 4, 0), (4, ["3.tsv"], 1, 0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["tsv", "parquet"])
def test_a_file_of_changes_that_was_missed(form: str, folder: Path, evermat_command: Evermat) -> None:
    put("1.tsv", "+c d")
    out = ("--changes-out", "out", "--changes-format", form)
    assert evermat_command(*ONCE).code == 0
    put("2.tsv", "-b c", "+c e")
    assert evermat_command(*ONCE, *out).code == 0  # the folder is new: nobody had asked for version 2
    (file,) = Path("out").iterdir()
    assert file.name == f"000003.{form}"
    whole = file.read_bytes()
    with evermat.open("state", write=True) as m:
        m.update({"edge": [("y", "z")]})
    file.unlink()  # as if it had been killed before
    assert evermat_command(*ONCE, *out) == (0, "", "")
    assert [path.name for path in Path("out").iterdir()] == [file.name]
    assert file.read_bytes() == whole


def test_what_text_cannot_hold(folder: Path, evermat_command: Evermat) -> None:
    Path("src/1.jsonl").write_text('{"op": "+", "relation": "edge", "values": ["tab\\there", "b"]}\n')
    put("2.tsv", "+c d")
    code, _, err = evermat_command(*ONCE, "--changes-out", "out")
    assert code == 3
    assert err.startswith("error[E324]: ")
    assert "= help: the state is at version 2\n" in err
    assert not list(Path("out").glob("0*"))
    assert evermat_command(*ONCE, "--changes-out", "out", "--changes-format", "jsonl").code == 0
    assert sorted(path.name for path in Path("out").glob("0*")) == ["000002.jsonl", "000003.jsonl"]
    assert '"values": ["tab\\there", "b"]' in Path("out/000002.jsonl").read_text()


# --- the same result, however ---------------------------------------------------------------------------------


def random_files(rng: Random, number: int) -> set[tuple[int, int]]:
    """Files that insert and delete edges, some of them what the one before has inserted; the edges in the end."""
    facts = {"edge": set(CHAIN)}
    last: set[tuple[int, int]] = set()
    for i in range(number):
        insert = {(rng.randrange(7), rng.randrange(7)) for _ in range(3)}
        delete = {(rng.randrange(7), rng.randrange(7)) for _ in range(2)} | set(
            rng.sample(sorted(last), len(last) // 2)
        )
        lines = [f"-\tedge\t{x}\t{y}\n" for x, y in delete] + [f"+\tedge\t{x}\t{y}\n" for x, y in insert]
        Path("src", f"{i:03}.tsv").write_text("".join(lines))
        facts, last = applied(facts, {"edge": delete}, {"edge": insert}), insert
    return facts["edge"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options"),
    [(PATHS, "--no-marking"), (PATHS, "--marking"), (PROGRAM, "--marking"), (PROGRAM, "--coalesce")],
)
def test_the_result_is_that_of_recomputation(
    text: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    left = random_files(Random(3), FILES)
    keep(text, edge=CHAIN)
    assert evermat_command(*ONCE, options, "--stats", "stats.jsonl").code == 0
    with evermat.open("state") as m:
        assert_recomputed(m, text)
        assert set(m["edge"]) == left
    stats = [json.loads(line) for line in Path("stats.jsonl").read_text().splitlines()]
    assert [name for line in stats for name in line["files"]] == [f"{i:03}.tsv" for i in range(FILES)]
    assert sum(line["updates"] for line in stats) == FILES
    assert len(evermat.versions("state")) == len(stats) + 1
    if options == "--coalesce":
        assert max(line["updates"] for line in stats) > 1
        assert batches()[-1] == f"{FILES - 1:03}.tsv"
    else:
        assert any(line.get("marking", {}).get("explicit") for line in stats) == (options == "--marking")
        assert batches() == [None, *(f"{i:03}.tsv" for i in range(FILES))]
        facts = {"edge": set(CHAIN)}
        for version, path in enumerate(sorted(Path("src").iterdir()), 2):
            lines = [line.split("\t") for line in path.read_text().splitlines()]
            delete, insert = ({(int(x), int(y)) for s, _, x, y in lines if s == sign} for sign in "-+")
            facts = applied(facts, {"edge": delete}, {"edge": insert})
            if version % 4 == 0:
                assert facts_at(tmp_path / "state", version) == oracle.materialise(oracle.read(text), facts)


@pytest.mark.slow
def test_facts_on_a_cluster(folder: Path) -> None:
    """The folder is read here; the rest is done where the facts are."""
    put("1.tsv", "+c d")
    put("2.tsv", "-a b", "+d e")
    with open_in_process(folder / "state", write=True) as m:
        changes = list(m.stream(FolderStream("src", m, once=True)))
        assert [(change.inserted.total, change.deleted.total) for change in changes] == [(4, 0), (4, 4)]
        assert m.positions == {stream_name("src"): "2.tsv"}
        assert not list(m.stream(FolderStream("src", m, once=True)))
    assert edges() == {"b c", "c d", "d e"}


@LASTING
@pytest.mark.spark
def test_on_spark(
    spark: Any,
    folder: Path,
    evermat_command: Evermat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    put("1.tsv", "+c d", "-a b")
    code, _, err = evermat_command(*ONCE, "--engine", "spark", "--changes-out", "out")
    assert (code, err.splitlines()[-1]) == (0, "version 2: 1.tsv: 3 facts inserted, 3 deleted")
    assert facts_at(folder / "state")["path"] == {("b", "c"), ("b", "d"), ("c", "d")}
    assert Path("out/000002.tsv").read_text().count("\n") == 6


# --- the folder as a stream in Python ---------------------------------------------------------------------------


def named(updates: FolderStream) -> list[tuple[str, ...]]:
    return [update.files for update in updates]


@contextmanager
def listing(patch: pytest.MonkeyPatch, *listings: set[str]) -> Iterator[None]:
    """The folder looks like this, one time after the other."""
    left = list(listings)
    with patch.context() as patched:
        patched.setattr(folder_stream, "list_folder", lambda _: set(left.pop(0)))
        yield
    assert not left


def test_files_that_are_renamed_while_the_folder_is_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing may miss a name that comes meanwhile, though it has one that came later."""
    for name in "abcd":
        put(name)
    with evermat.open("state") as m, listing(monkeypatch, set(), {"b"}, {"a", "b", "c", "d"}):
        assert named(FolderStream("src", m, once=True)) == [("a",), ("b",)]  # of c and d there is time to be sure


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"x.add.nt"}, {"x.add.nt", "x.del.nt"}),
        ({"x.del.nt"}, {"x.add.nt", "x.del.nt"}),
        ({"x.add.nt", "x.del.nt.tmp"}, {"x.add.nt", "x.del.nt"}),
        ({"x.add.nt", "x.del.nt.tmp"}, {"x.add.nt"}),
        ({"x.add.nt"}, {"x.add.nt", "x.del.nt.tmp"}),
    ],
)
def test_pairs_that_are_renamed_meanwhile(
    first: set[str], second: set[str], rdf_folder: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    triples("x.add.nt", "a")
    triples("x.del.nt", "b")
    with evermat.open("state") as m, listing(monkeypatch, set(), first, second):
        whole = [("x.add.nt", "x.del.nt")] if second == {"x.add.nt", "x.del.nt"} else []
        assert named(FolderStream("src", m, once=True, warn=lambda _: None)) == whole


@pytest.mark.slow
def test_only_so_much_is_read_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        put(f"{number:02}.tsv", f"+n{number} m{number}")
    read: list[str] = []
    reading = folder_stream.read_update

    def counted(paths: Any, *rest: Any) -> Any:
        read.append(paths[0].name)
        return reading(paths, *rest)

    monkeypatch.setattr(folder_stream, "read_update", counted)
    monkeypatch.setattr(folder_stream, "AHEAD", 0)
    with evermat.open("state", write=True) as m:
        for number, _ in enumerate(m.stream(FolderStream("src", m, once=True)), 1):
            time.sleep(0.03)  # enough to read all of them
            assert len(read) <= number + 2
        assert number == 12
        assert len(read) == 12
        for name in read:
            Path("src", name).rename(f"src/x{name}")
        files = list(m.stream(FolderStream("src", m, once=True, together=True), coalesce=True))
        assert sum(change.stats["updates"] for change in files) == 12


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_folder_that_is_closed_ends_its_stream(folder: Path) -> None:
    def reader() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "evermat stream"]

    put("1.tsv", "+c d")
    with evermat.open("state", write=True) as m:
        source = FolderStream("src", m, poll=0.01)
        changes = m.stream(source)
        assert next(changes).inserted.total == 4
        assert reader()
        threading.Timer(0.1, source.close).start()
        assert next(changes, None) is None
        until(lambda: not reader())


def test_names_that_come_too_late(folder: Path) -> None:
    told: list[str] = []
    put("5.tsv", "+c d")
    with evermat.open("state", write=True) as m:
        source = FolderStream("src", m, poll=0.01, warn=told.append)
        changes = m.stream(source)
        next(changes)
        assert not told
        put("4.tsv", "+x y")
        until(lambda: told)
        put("6.tsv", "+d e")
        next(changes)
        Path("src/4.tsv").unlink()
        until(lambda: "4.tsv" not in source._known)  # it has looked
        put("4.tsv", "+x y")
        until(lambda: len(told) > 1)
        source.close()
    assert set(told) == {
        "`src/4.tsv` appeared after its turn, and is not taken: files are taken in the order of their names",
    }
    assert len(told) == 2  # once each time
    assert edges() == {"a b", "b c", "c d", "d e"}
    Path("src/5.tsv").unlink()
    Path("src/6.tsv").unlink()
    with evermat.open("state") as m, pytest.warns(RuntimeWarning, match="`src/4.tsv` appeared or changed"):
        FolderStream("src", m, since=0)


# --- as a process -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_runs_until_it_is_stopped(folder: Path) -> None:
    put("1.tsv", "+c d")
    command = [sys.executable, "-m", "evermat", *STREAM, "--poll", "0.02", "--changes-out", "out"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert (
            next(line for line in lines if "compiling" not in line) == "version 2: 1.tsv: 4 facts inserted, 0 deleted\n"
        )
        put("2.tsv", "+d e")
        assert next(lines) == "version 3: 2.tsv: 5 facts inserted, 0 deleted\n"
        put("0.tsv", "+x y")
        assert "`src/0.tsv` appeared after its turn" in next(lines)
        put("3.tsv", "+e f")
        assert next(lines) == "version 4: 3.tsv: 6 facts inserted, 0 deleted\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "", "terminated: the state is at version 4\n")
    assert sorted(path.name for path in Path("out").iterdir()) == ["000002.tsv", "000003.tsv", "000004.tsv"]
    assert edges() == {"a b", "b c", "c d", "d e", "e f"}


@pytest.mark.parametrize(
    ("sent", "code", "told"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_a_signal_just_after_a_version(
    sent: signal.Signals,
    code: int,
    told: str,
    folder: Path,
    evermat_command: Evermat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is said, and written, is about the version that was committed."""
    from evermat.runtime.states.persistence import StateBinding

    put("1.tsv", "+c d")
    put("2.tsv", "+d e")
    commit = StateBinding.commit

    def commit_and_die(*arguments: Any) -> None:
        commit(*arguments)
        if arguments[0].version == 3:
            signal.raise_signal(sent)

    monkeypatch.setattr(StateBinding, "commit", commit_and_die)
    assert evermat_command(*ONCE, "--changes-out", "out") == (
        code,
        "",
        f"version 2: 1.tsv: 4 facts inserted, 0 deleted\n{told}: the state is at version 3\n",
    )
    assert Path("out/000003.tsv").read_text().startswith("+\tedge\td\te\n")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert evermat_command(*ONCE) == (0, "", "")
