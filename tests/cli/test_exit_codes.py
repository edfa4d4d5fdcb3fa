"""How commands end: exit codes and what they say, word for word."""

from __future__ import annotations

import json
import os
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from evermat import __version__
from tests.support.commands import Evermat

CLOSURE = """\
.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
.printsize path
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a program and its facts, so that messages have short names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "closure.dl").write_text(CLOSURE)
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n3\t4\n")
    return tmp_path


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")} - {"closure.dl", "edge.facts"}


# --- 0 -----------------------------------------------------------------------------------------------------


def test_done(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "closure.dl") == (0, "path\t6\n", "")
    assert (folder / "path.csv").read_text() == "1\t2\n1\t3\n1\t4\n2\t3\n2\t4\n3\t4\n"
    assert files(folder) == {"path.csv"}


def test_folders(folder: Path, evermat_command: Evermat) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "edge.facts").write_text("7\t8\n")
    assert evermat_command("run", "closure.dl", "-F", "in", "-D", "made/out").code == 0
    assert (folder / "made" / "out" / "path.csv").read_text() == "7\t8\n"


def standard_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))


def test_a_program_on_standard_input(folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    standard_input(monkeypatch, CLOSURE)
    assert evermat_command("run", "-") == (0, "path\t6\n", "")
    standard_input(monkeypatch, ".decl a(x:number)\na(y).\n")
    assert evermat_command("check", "-").err.startswith("error[E221]: `y` in a fact is not a value\n --> <stdin>:2:3\n")
    standard_input(monkeypatch, ".decl a(x:number)\n.input a(IO=stdin)\n")
    done = evermat_command("run", "-")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error[E200]: facts and program cannot both come from standard input: put the program into a file\n"
    )


def test_results_go_to_stdout_and_warnings_to_stderr(folder: Path, evermat_command: Evermat) -> None:
    (folder / "p.dl").write_text(
        ".decl a(x:number)\na(1). a(0).\n.decl b(x:number)\nb(6 / x) :- a(x).\nb(x) :- a(x), a(y), x = 1.\n.output b(IO=stdout)\n"
    )
    code, out, err = evermat_command("run", "p.dl")
    assert code == 0
    assert out == "---------------\nb\nx\n===============\n1\n6\n===============\n"
    assert err == (
        "warning[W281]: variable `y` occurs only once\n"
        " --> p.dl:5:17\n"
        "  |\n"
        "5 | b(x) :- a(x), a(y), x = 1.\n"
        "  |                 ^\n"
        "  = note: write `_` if this is intended\n"
        "\n"
        "warning: p.dl:4:1: 1 binding was dropped because `6 / x` had no value\n"
    )


def test_a_rule_is_warned_about_once(folder: Path, evermat_command: Evermat) -> None:
    text = ".decl a(x:number)\na(0). a(1).\n.decl b(x:number)\nb(x) :- a(x), (1 / x = 1; 2 / x = 1; 3 / x = 1).\n"
    (folder / "p.dl").write_text(text)
    expected = "warning: p.dl:4:1: 3 bindings were dropped because `1 / x` or `2 / x` or `3 / x` had no value\n"
    assert evermat_command("run", "p.dl") == (0, "", expected)


def test_the_warning_names_what_may_have_no_value(folder: Path, evermat_command: Evermat) -> None:
    text = '.decl r(x:symbol, y:number)\nr("0xg", 0). r("5", 1).\n.decl n(x:number)\n'
    text += "n(to_number(x)) :- r(x, _).\nn(strlen(x)) :- r(x, y), z = 7 / y, z > 0.\nn(t) :- t = sum 10 / y : { r(_, y) }.\n"
    (folder / "p.dl").write_text(text)
    assert evermat_command("run", "p.dl").err == (
        "warning: p.dl:4:1: 1 binding was dropped because `to_number(x)` had no value\n"
        "warning: p.dl:5:1: 1 binding was dropped because `7 / y` had no value\n"
        "warning: p.dl:6:1: 1 binding was dropped because `10 / y` had no value\n"
    )


def test_tests_that_fail_are_not_without_value(folder: Path, evermat_command: Evermat) -> None:
    (folder / "p.dl").write_text(".decl a(x:number)\na(1). a(2). a(3).\n.decl b(x:number)\nb(x) :- a(x), x % 2 = 0.\n")
    assert evermat_command("run", "p.dl") == (0, "", "")


def test_version(evermat_command: Evermat) -> None:
    assert evermat_command("--version") == (0, f"evermat {__version__}\n", "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((), ["Usage:", "--version", "run", "check", "A Datalog engine that keeps its answers true."]),
        (("run",), ["PROGRAM.dl", "-F, --facts DIR", "-D, --output DIR", "--engine", "--algorithm", "--schemes", "--memory",
                    "--stats", "--limit-rounds", "--limit-facts", "--limit-seconds", "Materialise a program"]),
        (("check",), ["PROGRAM.dl", "Show types, strata, recursive and nonrecursive rules"]),
    ],
)  # fmt: skip
def test_help(command: tuple[str, ...], words: list[str], evermat_command: Evermat) -> None:
    code, out, err = evermat_command(*command, "--help")
    assert (code, err) == (0, "")
    assert [word for word in words if word not in out] == []


# --- 2 -----------------------------------------------------------------------------------------------------


def test_a_wrong_program(folder: Path, evermat_command: Evermat) -> None:
    (folder / "wrong.dl").write_text('.decl a(x:number)\nb(x) :- a(x).\na("s").\n')
    expected = (
        "error[E230]: relation `b` is not declared\n"
        " --> wrong.dl:2:1\n"
        "  |\n"
        "2 | b(x) :- a(x).\n"
        "  | ^\n"
    )  # fmt: skip
    for command in ("run", "check"):
        code, out, err = evermat_command(command, "wrong.dl")
        assert (code, out) == (2, "")
        assert err.startswith(expected)
        assert err.count("error[") == 2


def test_no_program(folder: Path, evermat_command: Evermat) -> None:
    expected = "error[E208]: cannot read `none.dl`: no such file or directory\n"
    assert evermat_command("run", "none.dl") == (2, "", expected)
    assert evermat_command("check", "none.dl") == (2, "", expected)


@pytest.mark.parametrize("size", ["x", "-1g", "0", "nan", "1e400", "g", "b", "1q"])
def test_a_bad_size_of_memory(size: str, folder: Path, evermat_command: Evermat) -> None:
    expected = f"error[E200]: `{size}` is not a size of memory: write a number with k, m, g or t behind it\n"
    assert evermat_command("run", "closure.dl", f"--memory={size}") == (2, "", expected)
    assert not files(folder)


def test_too_little_memory_to_begin(folder: Path, evermat_command: Evermat) -> None:
    expected = "error[E200]: 1,024 bytes of memory are too few: this process needs 160m before it begins\n"
    assert evermat_command("run", "closure.dl", "--memory", "1k") == (2, "", expected)
    assert not files(folder)


@pytest.mark.parametrize("size", ["4g", "512M", "1.5GB", "1t", "8000000k", "20000000000"])
def test_good_sizes_of_memory(
    size: str, folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.core.watch.resident_bytes", lambda: 0)  # of this process, which runs all tests
    assert evermat_command("run", "closure.dl", "--memory", size).code == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run", "closure.dl", "--nope"], "--nope"),
        (["nope"], "nope"),
        (["run", "closure.dl", "--limit-rounds", "0"], "--limit-rounds"),
        (["run", "closure.dl", "--limit-facts", "many"], "--limit-facts"),
        (["run", "closure.dl", "--engine", "magic"], "--engine"),
        (["run", "closure.dl", "more.dl"], "more.dl"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], word: str, folder: Path, evermat_command: Evermat) -> None:
    code, out, err = evermat_command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage:")
    assert word in err
    assert not files(folder)


# --- 3 -----------------------------------------------------------------------------------------------------


def test_a_missing_file(folder: Path, evermat_command: Evermat) -> None:
    (folder / "edge.facts").rename(folder / "egde.facts")
    code, out, err = evermat_command("run", "closure.dl")
    assert (code, out) == (3, "")
    assert err == (
        "error[E300]: there is no file `edge.facts`\n"
        "  = note: relation `edge` is read from it\n"
        "  = help: did you mean `egde.facts`?\n"
    )


def test_everything_wrong_with_the_data_is_told(folder: Path, evermat_command: Evermat) -> None:
    (folder / "edge.facts").write_text("1\t2\n1\tx\n3\n")
    (folder / "two.dl").write_text(CLOSURE + ".decl more(x:number)\n.input more\n")
    code, out, err = evermat_command("run", "two.dl")
    assert (code, out) == (3, "")
    assert [line for line in err.splitlines() if line.startswith(("error", " -->"))] == [
        "error[E306]: `x` in column 2 (`y`) is not of the type `number`",
        " --> edge.facts:2:3",
        "error[E304]: this line has 1 column, but `edge` has 2 columns",
        " --> edge.facts:3:2",
        "error[E300]: there is no file `more.facts`",
    ]
    assert files(folder) == {"two.dl"}


def test_a_symbol_that_cannot_be_written(folder: Path, evermat_command: Evermat) -> None:
    (folder / "tab.dl").write_text('.decl a(x:symbol)\na("x\\ty").\n.decl b(x:symbol)\nb("fine").\n.output b, a\n')
    code, out, err = evermat_command("run", "tab.dl", "-D", "out")
    assert (code, out) == (3, "")
    assert err.startswith(
        'error[E324]: `"x\\ty"` in column 1 (`x`) of `a` cannot be written as plain text, because it contains a tab\n'
    )
    assert files(folder) == {"tab.dl"}  # neither the other output nor the folder


# --- 4 -----------------------------------------------------------------------------------------------------

COUNTING = ".decl n(x:number)\nn(0).\nn(x + 1) :- n(x), x < 1000000000.\n.output n\n.output n(IO=stdout)\n"


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--limit-rounds", "1000", "1,000 rounds"),
        ("--limit-facts", "500", "500 facts"),
        ("--limit-seconds", "0.2", "0.2 seconds"),
    ],
)
def test_limits(option: str, value: str, told: str, folder: Path, evermat_command: Evermat) -> None:
    (folder / "count.dl").write_text(COUNTING)
    code, out, err = evermat_command("run", "count.dl", "-D", "out", option, value, "--stats", "stats.json")
    assert (code, out) == (4, "")
    assert err == (
        f"error[E400]: the limit of {told} is reached\n"
        "  = note: nothing was written, because the result is incomplete: raise the limit\n"
    )
    assert files(folder) == {"count.dl"}


def test_a_limit_that_is_just_enough(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "closure.dl", "--limit-facts", 9).code == 0
    assert evermat_command("run", "closure.dl", "--limit-facts", 8).code == 4


# --- 6 -----------------------------------------------------------------------------------------------------


def test_the_output_folder_is_a_file(folder: Path, evermat_command: Evermat) -> None:
    (folder / "out").write_text("mine")
    code, out, err = evermat_command("run", "closure.dl", "-D", "out")
    assert (code, out) == (6, "")
    assert err == (
        "error[E600]: cannot write `out/path.csv`: its folder is a file\n  = note: no output file was changed\n"
    )
    assert (folder / "out").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_the_output_folder_is_not_writable(folder: Path, evermat_command: Evermat) -> None:
    (folder / "out").mkdir(mode=0o500)
    code, out, err = evermat_command("run", "closure.dl", "-D", "out")
    assert (code, out) == (6, "")
    assert err.startswith("error[E600]: cannot write `out/path.csv`: Permission denied\n")


def test_an_output_is_a_folder(folder: Path, evermat_command: Evermat) -> None:
    (folder / "path.csv").mkdir()
    code, _, err = evermat_command("run", "closure.dl")
    assert code == 6
    assert err.startswith("error[E600]: cannot write `path.csv`: it is a folder\n")


def test_memory_runs_out(folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("evermat.runtime.materialise._in_memory", fail)
    expected = "error[E610]: there is not enough memory: the system has no more\n  = note: nothing was written\n"
    assert evermat_command("run", "closure.dl") == (6, "", expected)


# --- statistics --------------------------------------------------------------------------------------------


def test_stats(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "closure.dl", "--stats", "stats.json").code == 0
    stats = json.loads((folder / "stats.json").read_text())
    contract = ["engine", "algorithm", "strata", "seconds", "cpu_seconds", "rounds", "facts", "explicit", "derived"]
    contract += ["derivations", "undefined", "peak_rss_mb"]
    assert [key for key in contract if key not in stats] == []
    assert list(stats["seconds"]) == list(stats["cpu_seconds"]) == ["start", "read", "encode", "reason", "write"]
    assert stats["engine"] == "memory"
    assert stats["facts"] == {"edge": 3, "path": 6}
    assert (stats["explicit"], stats["derived"], stats["derivations"], stats["undefined"]) == (3, 6, 9, 0)
    assert [set(stratum) for stratum in stats["strata"]] == [
        {"relations", "algorithm", "place", "counters", "reason"}
    ] * 2
    assert stats["peak_rss_mb"] > 10
    assert files(folder) == {"stats.json", "path.csv"}


@pytest.mark.parametrize("path", ["none/stats.json", "closure.dl/stats.json", "."])
def test_stats_that_cannot_be_written(path: str, folder: Path, evermat_command: Evermat) -> None:
    code, _, err = evermat_command("run", "closure.dl", "--stats", path)
    assert code == 6
    assert err.startswith(f"error[E600]: cannot write `{path}`: ")
    assert err.endswith("  = note: all other outputs are complete\n")
    assert files(folder) == {"path.csv"}


def test_stats_to_a_device(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "closure.dl", "--stats", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_the_default_of_memory_is_a_share_of_what_there_is(
    folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.core.available_bytes", lambda: 250_000_000)
    monkeypatch.setattr("evermat.core.watch.resident_bytes", lambda: 200_000_001)
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", 0)
    code, _, err = evermat_command("run", "closure.dl")
    assert code == 4
    assert "the limit of 200,000,000 bytes of memory is reached" in err
