"""Options that would not be honoured: every row of the table, on every command that has the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from evermat.cli.app import app
from evermat.cli.option_needs import NEEDS, CheckedCommand
from tests.support.commands import Evermat

SPARK = "`--engine spark`"
RDF = "RDF data: `--rdf`, an `.input` from an RDF file, or RDF change files"
COMMANDS = {
    "run": ["run", "p.dl"],
    "update": ["update", "--state", "s", "c.tsv"],
    "stream": ["stream", "--state", "s", "--source", "d", "--once"],
    "check": ["check", "p.dl"],
}
#: command, options, and what they need
REFUSED = [
    *[
        (command, options, SPARK)
        for command in ("run", "update", "stream")
        for options in (
            ["--master", "spark://nowhere:1"],
            ["--conf", "a=b"],
            ["--scratch", "/nonexistent"],
            ["--buckets", "4"],
            ["--broadcast", "9"],
        )
    ],
    *[
        ("check", options, "`--master`")
        for options in (["--conf", "a=b"], ["--scratch", "/nonexistent"], ["--buckets", "4"], ["--broadcast", "9"])
    ],
    ("run", ["--place", "cluster"], SPARK),
    ("run", ["--place", "auto"], SPARK),
    ("run", ["--export-facts", "all"], "`--export`"),
    ("run", ["--trivial"], "`--ontology`, `--entailment` or `--equality`"),
    ("run", ["--allow-inconsistency"], "`--ontology` or `--entailment`"),
    ("run", ["--ignore-imports"], "`--ontology`"),
    ("run", ["--skip-malformed"], f"`--ontology` or {RDF}"),
    ("run", ["--verbose"], "`--ontology`"),
    ("run", ["--base", "http://x/"], f"`--ontology` or {RDF}"),
    ("check", ["--skip-malformed"], f"`--ontology` or {RDF}"),
    ("check", ["--verbose"], "`--ontology`"),
    ("run", ["--trivial", "--rdf", "d.nt"], "`--ontology`, `--entailment` or `--equality`"),
    ("update", ["--skip-malformed"], f"`--ontology` or {RDF}"),
    ("update", ["--base", "http://x/"], f"`--ontology` or {RDF}"),
    ("stream", ["--changes-format", "jsonl"], "`--changes-out`"),
]
ACCEPTED = [
    ["run", "p.dl", "--representatives"],
    ["run", "p.dl", "--rdf", "d.nt", "--skip-malformed", "--base", "http://x/"],
    ["run", "p.dl", "--ontology", "o.nt", "--skip-malformed", "--verbose"],
    ["check", "p.dl", "--ontology", "o.nt", "--skip-malformed", "--verbose"],
    ["run", "rdf.dl", "--skip-malformed", "--base", "http://x/"],
    ["run", "folder.dl", "--skip-malformed", "--base", "http://x/"],
    ["run", "p.dl", "--ontology", "o.nt", "--base", "http://x/", "--trivial", "--ignore-imports", "--allow-inconsistency"],
    ["run", "p.dl", "--entailment", "rdfs", "--trivial", "--allow-inconsistency"],
    ["run", "p.dl", "--equality", "off", "--trivial"],
    ["run", "p.dl", "--ontology", "o.nt", "--export", "all.nt", "--export-facts", "inferred"],
    ["update", "--state", "s", "x.add.nt", "c.tsv", "--base", "http://x/", "--skip-malformed"],
    ["stream", "--state", "s", "--source", "d", "--once", "--base", "http://x/", "--skip-malformed"],
    ["stream", "--state", "s", "--source", "d", "--once", "--changes-out", "out", "--changes-format", "jsonl"],
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat) -> Path:
    """A working folder with programs, a state, changes and an ontology."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERMAT_ENGINE", raising=False)
    triples = ".decl triple(s:term, p:term, o:term)\n"
    Path("p.dl").write_text(".decl a(x:number)\na(1).\n")
    Path("rdf.dl").write_text(triples + '.input triple(filename="d.nt")\n')
    Path("folder.dl").write_text(triples + '.input triple(filename="*.nt")\n')
    Path("d.nt").write_text("<http://x/a> <http://x/p> <http://x/b> .\n")
    Path("o.nt").write_text("<http://x/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://x/B> .\n")
    Path("x.add.nt").write_text("<http://x/a> <http://x/p> <http://x/c> .\n")
    Path("c.tsv").write_text("+\ta\t2\n")
    Path("d").mkdir()
    assert evermat_command("run", "p.dl", "--rdf", "d.nt", "--state", "s", "--engine", "memory").code == 0
    return tmp_path


@pytest.mark.parametrize(("command", "options", "needs"), REFUSED)
def test_an_option_that_would_not_be_honoured(
    command: str, options: list[str], needs: str, folder: Path, evermat_command: Evermat
) -> None:
    before = sorted(folder.rglob("*"))
    engine = ["--engine", "memory"] if command == "run" else []
    told = f"error[E200]: `{options[0]}` needs {needs}\n"
    assert evermat_command(*COMMANDS[command], *engine, *options) == (2, "", told)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("arguments", ACCEPTED, ids=" ".join)
def test_an_option_that_is_honoured(arguments: list[str], folder: Path, evermat_command: Evermat) -> None:
    engine = ["--engine", "memory"] if arguments[0] == "run" else []
    done = evermat_command(*arguments, *engine)
    assert (done.code, "error" in done.err) == (0, False), done.err


def test_a_default_in_the_environment_is_named(
    folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_ENGINE", "memory")
    told = "error[E200]: `--place` needs `--engine spark`, but EVERMAT_ENGINE is `memory`\n"
    assert evermat_command("run", "p.dl", "--place", "driver") == (2, "", told)
    told = "error[E200]: `--place` needs `--engine spark`\n"
    assert evermat_command("run", "p.dl", "--engine", "memory", "--place", "driver") == (2, "", told)


def test_every_row_of_the_table_is_tried() -> None:
    """A new row, or an option of the table on another command, needs a test."""
    commands: Any = getattr(get_command(app), "commands")  # noqa: B009 - click has types, Typer hides them
    rows = {
        (name, parameter.opts[-1])
        for name, command in commands.items()
        if isinstance(command, CheckedCommand)
        for parameter in command.params
        if parameter.name in NEEDS
    }
    unknown = {
        ("stream", "--base"),
        ("stream", "--skip-malformed"),
        ("check", "--master"),
    }  # RDF may come later; a master needs nothing
    assert rows - unknown == {(command, options[0]) for command, options, _ in REFUSED}
    refusing = {name for name, command in commands.items() for one in command.params if one.name in NEEDS}
    assert {name for name in refusing if not isinstance(commands[name], CheckedCommand)} == {
        "export",
        "translate",
    } & refusing


@pytest.mark.parametrize(
    ("option", "name", "meant"),
    [("--place", "clustr", "cluster"), ("--algorithm", "seminaiv", "seminaive"), ("--schemes", "plan", "plain"),
     ("--engine", "memroy", "memory"), ("--entailment", "owlrl", "owl2rl"), ("--equality", "of", "off"), ("--export-facts", "inferrd", "inferred")],
)  # fmt: skip
def test_the_choice_that_was_meant(option: str, name: str, meant: str, folder: Path, evermat_command: Evermat) -> None:
    done = evermat_command("run", "p.dl", option, name)
    assert (done.code, done.err.rstrip().endswith(f". Did you mean `{meant}`?")) == (2, True), done.err
    assert "mean" not in evermat_command("run", "p.dl", option, "xyz").err
