"""URIs for states, outputs and temporary files: those that are not supported are refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.core import ArgumentError, local_path, scheme_of, without_secrets
from evermat.store import Store, open_reader
from tests.support.commands import Evermat

PROGRAM = '.decl e(x:symbol, y:symbol)\n.output e\ne("a", "b").\n'
RULE = "  = note: give a path, or a URI such as `file:///folder`\n"
STATES = "a state is in a folder of this machine, given as a path or a URI such as `file:///folder`, or at `s3://BUCKET/FOLDER`"
FOREIGN = ["s3a://b/s", "abfss://c@a.dfs.core.windows.net/s", "gs://b/s", "hdfs://n:1/s", "dbfs:/s", "http://h/s"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(PROGRAM)
    Path("c.tsv").write_text("+\te\ta\tc\n")
    Path("o.ttl").write_text("")
    return tmp_path


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


COMMANDS = [
    ("run", "p.dl", "--engine", "memory", "--state"),
    ("update", "c.tsv", "--state"),
    ("query", "e(x, y)", "--state"),
    ("log", "--state"),
    ("vacuum", "--keep", "2", "--state"),
    ("migrate", "--state"),
    ("export", "t.nt", "--state"),
    ("stream", "--source", ".", "--once", "--state"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("uri", FOREIGN)
def test_states_of_commands(command: tuple[str, ...], uri: str, folder: Path, evermat_command: Evermat) -> None:
    before = everything(folder)
    done = evermat_command(*command, uri)
    why = f"the scheme `{scheme_of(uri)}` is not supported"
    shown = without_secrets(uri)
    assert done == (2, "", f"error[E296]: a state cannot be at `{shown}`: {why}\n  = note: {STATES}\n")
    assert everything(folder) == before


OPTIONS = [
    (("run", "p.dl", "--engine", "memory", "--export"), "an RDF file"),
    (("run", "p.dl", "--engine", "memory", "--stats"), "statistics"),
    (("update", "--state", "s", "c.tsv", "--changes-out"), "a change file"),
    (("update", "--state", "s", "c.tsv", "--stats"), "statistics"),
    (("stream", "--state", "s", "--source", ".", "--changes-out"), "the directory of change files"),
    (("stream", "--state", "s", "--source", ".", "--stats"), "statistics"),
    (("export", "--state", "s"), "an RDF file"),
    (("translate", "o.ttl", "-o"), "a translation"),
]


@pytest.mark.parametrize(("command", "what"), OPTIONS, ids=lambda one: one[0] + one[-1] if len(one) < 9 else "")
def test_other_options(command: tuple[str, ...], what: str, folder: Path, evermat_command: Evermat) -> None:
    before = everything(folder)
    for uri, why in (
        ("s3://b/s", "the scheme `s3` is not supported"),
        ("file://host/s", "it names another machine"),
    ):
        done = evermat_command(*command, uri)
        assert done == (2, "", f"error[E296]: {what} cannot be at `{uri}`: {why}\n{RULE}")
    assert everything(folder) == before


@pytest.mark.parametrize("command", [("run", "p.dl"), ("update", "--state", "s", "c.tsv")])
@pytest.mark.parametrize("uri", FOREIGN)
def test_scratch_directories(command: tuple[str, ...], uri: str, folder: Path, evermat_command: Evermat) -> None:
    before = everything(folder)
    what, rule = "the scratch directory", STATES.replace("a state", "the scratch directory")
    done = evermat_command(*command, "--engine", "spark", "--scratch", uri)
    why = f"the scheme `{scheme_of(uri)}` is not supported"
    shown = without_secrets(uri)
    assert done == (2, "", f"error[E296]: {what} cannot be at `{shown}`: {why}\n  = note: {rule}\n")
    assert everything(folder) == before


def test_an_output_that_is_a_uri(folder: Path, evermat_command: Evermat) -> None:
    Path("p.dl").write_text('.decl e(x:symbol)\n.output e(filename="s3://b/e.csv")\n')
    before = everything(folder)
    assert evermat_command("run", "p.dl", "--engine", "memory") == (
        2,
        "",
        "error[E296]: an output cannot be at `s3://b/e.csv`: it is a file in the output directory\n"
        " --> p.dl:2:9\n"
        "  |\n"
        '2 | .output e(filename="s3://b/e.csv")\n'
        "  |         ^\n"
        "  = note: give the path of a file\n",
    )
    assert everything(folder) == before


def test_uris_of_files(folder: Path, evermat_command: Evermat) -> None:
    at = f"file://{folder}"
    done = evermat_command(
        "run", "p.dl", "--engine", "memory", "--state", f"{at}/my%20state", "-D", f"file:{folder}/out", "--stats",
        f"file://localhost{folder}/stats.json",
    )  # fmt: skip
    assert (done.code, done.out) == (0, "")
    assert {path.name for path in folder.iterdir()} == {"c.tsv", "o.ttl", "p.dl", "my state", "out", "stats.json"}
    assert evermat_command("update", "--state", f"file:{folder}/my%20state", "c.tsv").code == 0
    assert list(evermat.query(f"{at}/my%20state", "e(x, y)")) == [("a", "b"), ("a", "c")]


CALLS: list[tuple[Callable[[str], Any], str]] = [
    (evermat.open, "a state"),
    (evermat.versions, "a state"),
    (evermat.changes, "a state"),
    (evermat.migrate, "a state"),
    (lambda uri: evermat.query(uri, "e(x, y)"), "a state"),
    (lambda uri: evermat.vacuum(uri, 2), "a state"),
    (lambda uri: _small().save(uri), "a state"),
    (lambda uri: _small().write_outputs(uri), "the output directory"),
    (lambda uri: _small().write_outputs(".", export=f"{uri}.nt"), "an RDF file"),
    (lambda uri: _small().export(f"{uri}.nt"), "an RDF file"),
    (lambda uri: _small().update(insert={"e": [("x", "y")]}).write(uri), "a change file"),
    (lambda uri: evermat.translate("o.ttl").write(uri), "a translation"),
]


def _small() -> evermat.Materialisation:
    return evermat.Program.parse(PROGRAM).materialise()


@pytest.mark.parametrize("call", [Store.create, Store.open, Store.open_to_write, open_reader])
def test_the_store_itself(call: Callable[[str], Any], folder: Path) -> None:
    before = everything(folder)
    with pytest.raises(ArgumentError, match="E296"):
        call("gs://b/s")
    assert everything(folder) == before


@pytest.mark.parametrize(("call", "what"), CALLS)
def test_calls(call: Callable[[str], Any], what: str, folder: Path) -> None:
    before = everything(folder)
    with pytest.raises(ArgumentError, match="E296") as error:
        call("s3a://key:secret@b/s")
    assert f"{what} cannot be at `s3a://…@b/s" in str(error.value)
    assert everything(folder) == before


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("s3:b", "s3:b"),
        ("./s3:/b", "s3:/b"),
        ("c:/b", "c:/b"),
        ("/a/s3://b", "/a/s3:/b"),
        ("file:b", "file:b"),
        ("file:///a%25b%20c", "/a%b c"),
        ("FILE:/a/b", "/a/b"),
        ("file:////a", "/a"),
    ],
)
def test_paths(text: str, path: str) -> None:
    assert local_path("it", "path", text) == Path(path)


@pytest.mark.parametrize("text", ["file://h/a", "file://a", "file:///a%00b", "://a", "x://"])
def test_uris_that_are_no_paths(text: str) -> None:
    with pytest.raises(ArgumentError, match="it cannot be at"):
        local_path("it", "path", text)


def test_secrets_are_not_shown() -> None:
    assert without_secrets("s3://key:se/cret@b/s") == "s3://…@b/s"
    assert without_secrets("s3://key:secret@b/s?X-Amz-Signature=1") == "s3://…@b/s"
    assert without_secrets("abfss://c@a.net/s") == "abfss://…@a.net/s"
