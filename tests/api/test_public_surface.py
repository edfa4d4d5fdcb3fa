"""The names that users import: complete, typed, documented, and the same in types, help texts and docstrings."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import doctest
import inspect
import os
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from typer.main import get_command

import evermat
from evermat.cli.app import app
from evermat.core import choices
from evermat.core.choices import CHOICES, Choices
from tools.generate_api_page import DESCRIBED, api_page, public_fields, public_members

ROOT = Path(__file__).parents[2]
#: the choices by the names of their types
TYPES = {
    name: next(one for one in CHOICES.values() if one.type is type_)
    for name, type_ in vars(choices).items()
    if get_origin(type_) is Literal
}
COMMANDS = sorted(getattr(get_command(app), "commands"))  # noqa: B009 - click has types, Typer hides them


# --- names -----------------------------------------------------------------------------------------------------


def test_every_public_name_exists_and_is_listed() -> None:
    assert len(evermat.__all__) == len(set(evermat.__all__))
    assert [name for name in evermat.__all__ if not hasattr(evermat, name)] == []
    assert set(evermat.__all__) <= set(dir(evermat))


def test_a_star_import_imports_every_public_name() -> None:
    namespace: dict[str, Any] = {}
    exec("from evermat import *", namespace)
    assert set(evermat.__all__) <= set(namespace)


def test_the_old_name_of_a_folder_stream_still_works_and_warns() -> None:
    sys.modules.pop("evermat.directory", None)
    with pytest.warns(DeprecationWarning, match=r"evermat\.FolderStream"):
        from evermat.directory import Directory
    assert Directory is evermat.FolderStream


# --- choices -----------------------------------------------------------------------------------------------------


def test_every_literal_has_a_row_in_the_table_and_every_row_a_literal() -> None:
    assert sorted(map(id, TYPES.values())) == sorted(map(id, CHOICES.values()))


@pytest.mark.parametrize("name", CHOICES)
def test_the_table_has_exactly_the_names_of_the_literal(name: str) -> None:
    assert CHOICES[name].names == get_args(CHOICES[name].type)
    assert all(CHOICES[name].meanings.values())


def test_the_table_has_every_algorithm() -> None:
    from evermat.reasoning.maintain import ALGORITHMS

    assert set(CHOICES["update_algorithm"].names) == {"auto", *ALGORITHMS}


def _literals(annotation: Any) -> Iterator[Any]:
    """The `Literal`s in an annotation."""
    if get_origin(annotation) is Literal:
        yield annotation
    for argument in get_args(annotation):
        yield from _literals(argument)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_every_name_that_an_option_takes(command: str) -> None:
    """The type of an option is a `Literal` of the table; the help has its names and their meanings."""
    (info,) = [one for one in app.registered_commands if one.callback is not None and one.callback.__name__ == command]
    assert info.callback is not None
    shown = _plain(_help(command))
    for name, annotation in typing.get_type_hints(info.callback, include_extras=True).items():
        for literal in _literals(annotation):
            (found,) = [one for one in CHOICES.values() if one.type is literal]
            assert _plain(found.described) in shown, name


@pytest.mark.parametrize("command", ["run", "update", "stream"])
def test_help_lists_every_algorithm(command: str) -> None:
    shown = _plain(_help(command))
    names = CHOICES["materialise_algorithm" if command == "run" else "update_algorithm"].names
    assert [name for name in names if f"`{name}`" not in shown] == []
    assert command == "run" or {"dred-c-mod", "bf-c-mod"} <= set(names)


def _help(command: str) -> str:
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    return result.output


def _plain(text: str) -> str:
    """A text without its line breaks, which may follow a hyphen."""
    return re.sub(r"\s+", "", text)


def _callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in evermat.__all__:
        thing = getattr(evermat, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for member, value in public_members(thing):
                if inspect.isfunction(value):
                    yield f"{name}.{member}", value


def _choices_of(function: Callable[..., Any]) -> Iterator[tuple[str, Choices]]:
    for name, parameter in inspect.signature(function).parameters.items():
        for word in re.findall(r"\w+", str(parameter.annotation)):
            if word in TYPES:
                yield name, TYPES[word]


@pytest.mark.parametrize(("name", "function"), [pytest.param(*pair, id=pair[0]) for pair in _callables()])
def test_docstrings_list_every_name_that_a_parameter_takes(name: str, function: Callable[..., Any]) -> None:
    text = inspect.getdoc(function) or ""
    for parameter, found in _choices_of(function):
        other = re.search(rf"^ +{parameter}: as for `(\w+)`", text, re.MULTILINE)
        if other is not None:
            owner = getattr(evermat, name.partition(".")[0])
            assert dict(_choices_of(getattr(owner, other[1])))[parameter] is found
        else:
            assert [one for one in found.names if f"`{one}`" not in text] == [], parameter


def test_the_docstring_of_program_options_lists_every_name() -> None:
    text = evermat.ProgramOptions.__doc__ or ""
    for key in ("entailment", "equality", "inconsistency"):
        assert CHOICES[key].described in text
    assert all(f"{key}: " in text for key in evermat.ProgramOptions.__annotations__)


# --- types -------------------------------------------------------------------------------------------------------

_USER_PROGRAM = """
from __future__ import annotations
import evermat
from evermat import (
    {names},
)

how: UpdateAlgorithm = "dred-c-mod"
first: MaterialiseAlgorithm = "seminaive"
where: Placement = "pivot"
stored: SchemePolicy = "plain"
counted: KeptCounters = "both"
rules: Entailment = "owl2rl"
equal: EqualityMode = "rewrite"

def work(folder: str) -> list[Version]:
    program = Program.parse(".decl a(x:number)", entailment=rules, equality=equal, inconsistency="allow")
    options: ProgramOptions = {{"ontology": ["o.ttl"], "trivial": True}}
    program = Program.read("p.dl", **options)
    m: Materialisation = program.materialise(
        {{"a": [(1,)]}}, algorithm=first, place=where, schemes=stored, counters=counted, engine="memory"
    )
    relation: Relation = m["a"]
    change: Change = m.update(insert={{"a": [(2,)]}}, algorithm=how)
    updates: list[AnyUpdate] = [StreamedUpdate(insert={{"a": [(3,)]}}), {{"delete": {{"a": [(3,)]}}}}]
    inserted: Changes = change.inserted
    facts: ChangedFacts = inserted["a"]
    shown: Which = "inferred"
    timer: PhaseTimer = PhaseTimer()
    program.materialise(timer=timer, memory="4g")
    print(facts.to_arrow())
    for change in m.update_files("changes.tsv"):
        print(change)
    for change in m.stream(updates, algorithm="bf-c-mod"):
        print(change.inserted["a"], change.stats, len(relation))
    for change in m.stream(FolderStream(folder, m, once=True)):
        change.write("changes.tsv")
    answer: Answer = m.query("a(x)")
    m.export("all.nt", shown)
    m.save(folder)
    m = evermat.open(folder, version=1)
    evermat.query(folder, "a(x)")
    evermat.changes(folder)
    evermat.vacuum(folder, 1)
    translation: Translation = evermat.translate("o.ttl")
    print(answer.columns, translation.text())
    return evermat.versions(folder)

try:
    work("state")
except ArgumentError as error:
    print(error.args)
except EvermatError as error:
    problem: Problem = error.problems[0]
    print(problem.message)
"""
_MISTAKES = {
    'm.update(algorithm="dredc")': "UpdateAlgorithm",
    'm.stream([], algorithm="seminaive")': "UpdateAlgorithm",
    'p.materialise(algorithm="dred")': "MaterialiseAlgorithm",
    'p.materialise(place="executor")': "Placement",
    'p.materialise(schemes="compact")': "SchemePolicy",
    'p.materialise(counters="all")': "KeptCounters",
    'evermat.Program.parse("", entailment="owl")': "Entailment",
    'evermat.Program.parse("", equality="on")': "EqualityMode",
    'evermat.Program.read("p.dl", inconsistency="ignore")': "Inconsistency",
    'm.triples("explicit")': "Which",
    "m.nothing": "",
}


def test_strict_mypy_accepts_a_user_program_and_rejects_wrong_names(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(_USER_PROGRAM.format(names=",\n    ".join(evermat.__all__)))
    head = "import evermat\np = evermat.Program.parse('')\nm = p.materialise()\n"
    (tmp_path / "wrong.py").write_text(head + "".join(f"{line}\n" for line in _MISTAKES))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "--config-file=",
         "--cache-dir", tmp_path / "cache", "right.py", "wrong.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = done.stdout.splitlines()
    assert done.stderr == ""
    assert [line for line in found if line.startswith("right.py")] == []
    assert [int(line.split(":")[1]) for line in found] == list(range(4, 4 + len(_MISTAKES))), done.stdout
    for line, type_ in zip(found, _MISTAKES.values(), strict=True):
        names = ", ".join(map(repr, TYPES[type_].names)) if type_ else ""
        assert names in line


# --- the reference -------------------------------------------------------------------------------------------------


def test_the_api_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == api_page(), "run `make docs`"


def _documented() -> Iterator[tuple[str, Any]]:
    for name in evermat.__all__:
        thing = getattr(evermat, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{member}", value) for member, value in public_members(thing))


def test_every_public_name_has_a_docstring() -> None:
    found = dict(_documented())
    assert {"Program.materialise", "Materialisation.stats", "Relation.to_arrow", "Answer.write", "open"} <= set(found)
    assert [name for name, thing in found.items() if not inspect.getdoc(thing)] == []


def test_every_parameter_of_a_public_function_is_described() -> None:
    for name, function in _callables():
        text = inspect.getdoc(function) or ""
        if "Args:" in text:
            known = [
                parameter for parameter in inspect.signature(function).parameters if parameter not in {"self", "cls"}
            ]
            assert [one for one in known if not re.search(rf"^ +\**{one}: ", text, re.MULTILINE)] == [], name


#: names in signatures that come from other libraries, as users import them
FOREIGN = {
    "DataFrame",
    "SparkSession",
    "StreamingQuery",
    "PathLike",
    "datetime",
    "pa",
    "Table",
    "RecordBatch",
    "pd",
    "pl",
}


def _annotations() -> Iterator[tuple[str, str]]:
    """All annotations of public functions, properties and attributes as texts, each with where it stands."""
    for name in evermat.__all__:
        thing = getattr(evermat, name)
        members = public_members(thing) if inspect.isclass(thing) else []
        found = [(f"{name}.{member}", value) for member, value in members]
        if inspect.isfunction(thing):
            found.append((name, thing))
        if inspect.isclass(thing):
            yield from ((f"{name}.{field}", str(thing.__annotations__[field])) for field in public_fields(thing))
            init = vars(thing).get("__init__")
            if init is not None and "Args:" in (init.__doc__ or ""):
                found.append((name, init))
        for where, value in found:
            function = getattr(value, "fget", None) or getattr(value, "func", value)
            signature = inspect.signature(function)
            for annotation in (signature.return_annotation, *(p.annotation for p in signature.parameters.values())):
                if annotation not in {None, inspect.Signature.empty}:
                    yield where, str(annotation)


def test_every_type_in_a_signature_is_public_or_described() -> None:
    known = {*evermat.__all__, *DESCRIBED, *FOREIGN, *dir(builtins), *dir(typing), "Triple"}
    found = {}
    for where, annotation in _annotations():
        bare = re.sub(r"ForwardRef\('(.*)', module='[^']*'\)", r"\1", annotation)
        for word in re.findall(r"[A-Za-z_]\w*", re.sub(r"Literal\[[^]]*\]", "", bare)):
            if word not in known:
                found[word] = where
    assert found == {}


def test_every_attribute_of_a_public_class_is_described() -> None:
    for name in evermat.__all__:
        thing = getattr(evermat, name)
        if inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or typing.is_typeddict(thing)):
            text = inspect.getdoc(thing) or ""
            assert [one for one in public_fields(thing) if not re.search(rf"^ +{one}: ", text, re.MULTILINE)] == [], (
                name
            )


def _examples() -> list[str]:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(>>> .*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(_examples())))
def test_examples_of_the_reference_run_as_they_stand(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with nothing defined before it."""
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(_examples()[number], {}, f"example {number}", "docs/api.md", 0)
    reported: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=reported.append)
    assert reported == []


def test_the_example_of_the_package_runs() -> None:
    assert len(_examples()) >= 4
    assert doctest.testmod(evermat).failed == 0


# --- the other pages -----------------------------------------------------------------------------------------------

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name != "api.md")]


def _blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)])
def test_blocks_of_pages_use_public_names_only(page: str) -> None:
    for block in _blocks(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom | ast.Import):
                assert "evermat." not in ast.unparse(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "evermat":
                    assert node.attr in evermat.__all__
                elif node.value.id in {"m", "program"}:
                    owner = evermat.Program if node.value.id == "program" else evermat.Materialisation
                    assert hasattr(owner, node.attr) or node.attr == "notes"


def test_the_blocks_about_states_and_streams_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the README, the page about states and that about streams, all but the lines that need Spark."""
    monkeypatch.chdir(tmp_path)
    readme, state, streams = _blocks("README.md"), _blocks("docs/state.md"), _blocks("docs/streams.md")
    text = re.findall(r"^```\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    Path("depends.dl").write_text(text[0])
    names: dict[str, Any] = {}
    exec("".join(line for line in readme[0].splitlines(keepends=True) if "spark" not in line), names)
    assert sorted(names["m"]["depends"]) == [("b", "b"), ("b", "c"), ("b", "d"), ("c", "c"), ("c", "d")]
    assert [version.number for version in evermat.versions("state")] == [1]

    edges = ".decl edge(x:symbol, y:symbol) .decl path(x:symbol, y:symbol) path(x, y) :- edge(x, y)."
    names = {"evermat": evermat, "program": evermat.Program.parse(edges), "facts": {}, "more": [("a", "b")]}
    (tmp_path / "page").mkdir()
    monkeypatch.chdir(tmp_path / "page")
    exec(state[0].replace("version=3", "version=2").replace('"state/", 2, 5', '"state/", 1, 2'), names)
    assert [version.number for version in evermat.versions("state")] == [1, 2]

    Path("changes").mkdir()
    Path("changes/1.tsv").write_text("+\tedge\tb\tc\n")
    folder = next(block for block in streams if "FolderStream" in block)
    exec(folder.replace('"changes/", m', '"changes/", m, once=True'), names)
    assert ("b", "c") in evermat.open("state")["path"]


def test_the_blocks_about_threads_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as they stand."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = _blocks("docs/threads.md")
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, names)
    assert names["writer"].ident is not None
    assert set(names["live"]["path"]) == {(1, 2), (2, 3), (1, 3)}
    for reader in ("live", "reader", "m"):
        names[reader].close()
