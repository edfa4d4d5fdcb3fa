"""Outputs appear all at once or not at all."""

from __future__ import annotations

import gzip
import resource
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from evermat.core.errors import DataError, ResourceError
from evermat.io import Outputs
from evermat.io.atomic_outputs import printsize
from evermat.language.model import Io
from tests.io.relations import relation, table, write

ONE = table(relation("n"), [(1,)])


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def write_both(folder: Path, second: pa.Table, io: Io, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Writes `a.csv`, a size and another output."""
    with Outputs() as out:
        out.write(ONE, Io(relation("n"), path="a.csv"), folder)
        out.print_size("r", 1)
        out.write(second, io, folder)
        meanwhile()
        out.commit()


def test_nothing_is_seen_before_commit(tmp_path, capsysbinary):
    with Outputs() as out:
        out.write(ONE, Io(relation("n")), tmp_path)
        out.write(ONE, Io(relation("n"), medium="stdout"), tmp_path)
        assert [name for name in everything(tmp_path) if not name.startswith(".")] == []
        assert capsysbinary.readouterr().out == b""
        out.commit()
        assert everything(tmp_path) == {"r.csv": b"1\n"}
    assert everything(tmp_path) == {"r.csv": b"1\n"}


def test_without_commit_nothing_is_left(tmp_path):
    with Outputs() as out:
        out.write(ONE, Io(relation("n")), tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["b.csv", "b.csv.gz", "sub/b.csv"])
def test_an_error_in_the_second_output_leaves_nothing(tmp_path, path, capsysbinary):
    (tmp_path / "a.csv").write_bytes(b"old\n")
    bad = table(relation("s"), [("a",), ("b\n",)])
    with pytest.raises(DataError):
        write_both(tmp_path, bad, Io(relation("s", "q"), path=path))
    assert everything(tmp_path) == {"a.csv": b"old\n"}
    assert not (tmp_path / "sub").exists()
    assert capsysbinary.readouterr().out == b""


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("evermat.io.formats.jsonl_writer.write_jsonl", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_both(tmp_path, ONE, Io(relation("n"), path="b.jsonl"))
    assert everything(tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["r.csv", "r.gz", "r.parquet", "r.jsonl"])
def test_a_disk_that_fills_up(tmp_path, path):
    many = table(relation("n"), [(n * 7919 * 104729 % 1000003,) for n in range(150_000)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(ResourceError, match=f"cannot write `{tmp_path / path}`: File too large"):
            write(many, Io(relation("n"), path=path), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert everything(tmp_path) == {}


def test_a_failing_commit_says_what_was_done(tmp_path):
    def meanwhile() -> None:
        (tmp_path / "b.csv").mkdir()

    with pytest.raises(ResourceError, match="1 of 2 output files were already replaced"):
        write_both(tmp_path, ONE, Io(relation("n"), path="b.csv"), meanwhile)
    assert everything(tmp_path) == {"a.csv": b"1\n"}


def test_links_modes_and_devices_are_kept(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "target").chmod(0o640)
    (tmp_path / "link.csv").symlink_to("target")
    write(ONE, Io(relation("n"), path="link.csv"), tmp_path)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"1\n"
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o640
    write(ONE, Io(relation("n"), path="/dev/null"), tmp_path)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "other").write_bytes(b"")
    write(ONE, Io(relation("n")), tmp_path)
    assert (tmp_path / "r.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_the_same_output_twice(tmp_path):
    with Outputs() as out:
        out.write(ONE, Io(relation("n")), tmp_path)
        out.write(ONE, Io(relation("n")), tmp_path)
        out.commit()
    assert everything(tmp_path) == {"r.csv": b"1\n"}


def test_standard_output(capsysbinary):
    rel = relation("ns", "edge")
    with Outputs() as out:
        out.write(table(rel, [(10, "a"), (9, "ß")]), Io(rel, medium="stdout"), Path())
        out.print_size("edge", 2)
        out.write(table(relation("", "yes"), [()]), Io(relation("", "yes"), medium="stdout"), Path())
        out.commit()
    rule, line = "===============\n", "---------------\n"
    expected = f"{line}edge\nx\ty\n{rule}9\tß\n10\ta\n{rule}edge\t2\n{line}yes\n\n{rule}()\n{rule}"
    assert capsysbinary.readouterr().out.decode() == expected
    assert printsize("edge", 2) == "edge\t2"


def test_quotes_only_where_needed(tmp_path):
    rel = relation("sn")
    rows = [("a", 1), ('say "b"', 2), ("c,d", 3), ("e\r\nf", 4), ("", 5)]
    write(table(rel, rows), Io(rel, delimiter=",", rfc4180=True, headers=True), tmp_path)
    assert (tmp_path / "r.csv").read_bytes() == b'x,y\n,5\na,1\n"c,d",3\n"e\r\nf",4\n"say ""b""",2\n'


def test_symbols_are_sorted_by_their_bytes(tmp_path):
    rel = relation("sn")
    rows = [("b", 1), ("\U0001f600", 1), ("\uffee", 1), ("B", 10), ("B", 9), ("é", 1), ("", 0)]
    write(table(rel, rows), Io(rel), tmp_path)
    assert (tmp_path / "r.csv").read_text() == "\t0\nB\t9\nB\t10\nb\t1\né\t1\n\uffee\t1\n\U0001f600\t1\n"


def test_equal_facts_give_equal_bytes(tmp_path):
    rel = relation("sn")
    rows = [("a", 2), ("b", 1), ("c", 0)]
    for path in ["r.csv.gz", "r.parquet", "r.jsonl"]:
        write(table(rel, rows), Io(rel, path=path), tmp_path / "1")
        write(pa.concat_tables([table(rel, rows[2:]), table(rel, rows[:2])]), Io(rel, path=path), tmp_path / "2")
    assert everything(tmp_path / "1") == everything(tmp_path / "2")
    assert gzip.decompress((tmp_path / "1" / "r.csv.gz").read_bytes()) == b"a\t2\nb\t1\nc\t0\n"


def test_json_lines(tmp_path):
    rel = relation("snuft")
    write(table(rel, [('a"\n', -1, 2**64 - 1, float("-inf"), "<b>")]), Io(rel, path="r.jsonl"), tmp_path)
    expected = '{"x": "a\\"\\n", "y": -1, "z": 18446744073709551615, "v": "-inf", "w": "<b>"}\n'
    assert (tmp_path / "r.jsonl").read_text() == expected


def test_folders_are_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(ONE, Io(relation("n"), path="deep/er/r.csv"), Path("out"))
    assert everything(tmp_path) == {"out/deep/er/r.csv": b"1\n"}
