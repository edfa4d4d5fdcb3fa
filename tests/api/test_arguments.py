"""Arguments that cannot be: an error that names the argument, before anything is done, whatever else is passed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evermat

PROGRAM = evermat.Program.parse(
    ".decl a(x:number)\n.decl b(x:number)\nb(x) :- a(x).\n.decl t(s:term, p:term, o:term)\n"
)
SEVERAL_LIMITS = ("limit_rounds", "limit_facts", "limit_seconds", "memory")
#: what takes limits: how it is called, and its limits
LIMITED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "materialise": (PROGRAM.materialise, SEVERAL_LIMITS),
    "update": (lambda **given: made().update({"a": [(1,)]}, **given), SEVERAL_LIMITS),
    "update_files": (lambda **given: list(made().update_files([], **given)), SEVERAL_LIMITS),
    "stream": (lambda **given: list(made().stream([], **given)), SEVERAL_LIMITS),
    "query": (lambda **given: made().query("a(x)", **given), ("limit_seconds", "memory")),
    "query_batches": (lambda **given: made().query_batches("a(x)", **given), ("limit_seconds", "memory")),
}
each_limit = pytest.mark.parametrize(
    ("where", "name"), [(where, name) for where, (_, names) in LIMITED.items() for name in names]
)


def made() -> evermat.Materialisation:
    return PROGRAM.materialise({"a": [(7,)]})


def message(error: BaseException) -> str:
    return str(error).removeprefix("error[E200]: ")


# --- limits ----------------------------------------------------------------------------------------------------


@each_limit
def test_limits_that_cannot_be(where: str, name: str) -> None:
    call, _ = LIMITED[where]
    uses = {
        "limit_seconds": "a finite number of seconds that is at least 0",
        "memory": "an integer that is at least 1",
    }
    use = uses.get(name, "an integer that is at least 0")
    wrong: list[Any] = [-1] if name != "limit_seconds" else [-1, -0.5, math.nan, math.inf]
    for value in wrong:
        with pytest.raises(evermat.ArgumentError) as error:
            call(**{name: value})
        assert message(error.value) == f"`{name}` is {value}: use {use}"
    if name == "memory":
        use = "a number of bytes, or a text such as '4g'"
    for value in [[], True, object(), *(["1"] if name != "memory" else [1.5])]:
        with pytest.raises(TypeError) as raised:
            call(**{name: value})
        assert str(raised.value) == f"`{name}` is of type {type(value).__name__}: use {use}"


@each_limit
def test_limits_that_can_be(where: str, name: str) -> None:
    call, _ = LIMITED[where]
    for value in {"limit_seconds": [60, 60.5, np.float32(60)], "memory": [2**60, "4096g", "1 t"]}.get(
        name, [10, np.int64(10)]
    ):
        call(**{name: value})
    call(**{name: None})


@pytest.mark.parametrize("size", ["", "x", "0", "-1g", "nan", "g"])
def test_sizes_of_memory_that_cannot_be(size: str) -> None:
    told = f"`{size}` is not a size of memory: write a number with k, m, g or t behind it"
    with pytest.raises(evermat.ProgramError) as error:
        PROGRAM.materialise(memory=size)
    assert message(error.value) == told


# --- names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x", "", None, 3, ["auto"]])
def test_algorithms_are_checked_whatever_there_is_to_do(name: Any, tmp_path: Path) -> None:
    m = made()
    for call in (
        lambda: PROGRAM.materialise(algorithm=name),
        lambda: m.update(algorithm=name),
        lambda: m.update(add_rules="b(1).", algorithm=name),
        lambda: m.update_files([], algorithm=name),
        lambda: m.stream([], algorithm=name),
    ):
        with pytest.raises(evermat.ProgramError, match=rf"there is no algorithm `{name}`".replace("[", r"\[")):
            call()


@pytest.mark.parametrize("name", ["x", "", 3, ["auto"]])
@pytest.mark.parametrize(
    "argument", ["engine", "counters", "schemes", "place", "equality", "entailment", "inconsistency"]
)
def test_misspelt_names_are_program_errors_and_value_errors(argument: str, name: Any) -> None:
    call: Any = evermat.Program.parse if argument in evermat.ProgramOptions.__annotations__ else PROGRAM.materialise
    if argument == "engine" and not isinstance(name, str):
        with pytest.raises(TypeError, match="use 'memory' or a SparkSession"):
            call(engine=name)
        return
    for class_ in (evermat.ProgramError, ValueError):
        with pytest.raises(class_) as error:
            call(**{argument: name})
        assert f"{argument} {name!r} " in message(error.value)
        assert " not known: use '" in message(error.value)


@pytest.mark.parametrize(
    ("argument", "name", "meant"),
    [
        ("algorithm", "seminave", "seminaive"),
        ("counters", "nonrecursiv", "nonrecursive"),
        ("schemes", "plane", "plain"),
        ("place", "clustr", "cluster"),
        ("engine", "memroy", "memory"),
        ("equality", "rewrit", "rewrite"),
        ("entailment", "owlrl", "owl2rl"),
        ("inconsistency", "alow", "allow"),
    ],
)
def test_the_name_that_was_meant(argument: str, name: str, meant: str) -> None:
    call: Any = evermat.Program.parse if argument in evermat.ProgramOptions.__annotations__ else PROGRAM.materialise
    with pytest.raises(evermat.ProgramError) as error:
        call(**{argument: name})
    assert str(error.value).endswith(f"did you mean `{meant}`?")


@pytest.mark.parametrize("memory", ["4x", "", 0, -1, "0g"])
def test_limits_wherever_the_command_line_has_them(memory: Any, tmp_path: Path) -> None:
    m = made()
    m.save(tmp_path / "state")
    (tmp_path / "o.nt").write_text("")
    calls: list[Any] = [
        lambda **limits: evermat.Program.parse("", **limits),
        lambda **limits: evermat.Program.read(None, **limits),
        lambda **limits: evermat.translate(tmp_path / "o.nt", **limits),
        lambda **limits: evermat.query(tmp_path / "state", "a(x)", **limits),
        lambda **limits: evermat.versions(tmp_path / "state", **limits),
        lambda **limits: m.query("a(x)", **limits),
        lambda **limits: m.query_batches("a(x)", **limits),
        lambda **limits: m.update(**limits),
        lambda **limits: m.stream([], **limits),
        lambda **limits: m.update_files([], **limits),
        lambda **limits: m.write_outputs(tmp_path, **limits),
        lambda **limits: m.export(tmp_path / "x.nt", **limits),
        lambda **limits: PROGRAM.materialise(**limits),
    ]
    for call in calls:
        with pytest.raises(evermat.ArgumentError):
            call(memory=memory)
        with pytest.raises(evermat.ArgumentError):
            call(limit_seconds=-1)
        call(memory="400g", limit_seconds=100)
    (tmp_path / "o.nt").write_text("<a:a> <a:b> <a:c> .\n" * 100_000)
    for call in calls[2:3]:
        with pytest.raises(evermat.LimitError):
            call(memory="1k")


# --- what only Spark or an ontology honours --------------------------------------------------------------------


def test_what_needs_spark(tmp_path: Path) -> None:
    made().save(tmp_path / "state")
    for name, call in (
        ("place", lambda: PROGRAM.materialise(place="cluster")),
        ("scratch", lambda: PROGRAM.materialise(scratch=tmp_path)),
        ("buckets", lambda: PROGRAM.materialise(buckets=4)),
        ("broadcast", lambda: PROGRAM.materialise(broadcast=4)),
        ("buckets", lambda: evermat.open(tmp_path / "state", buckets=4)),
        ("broadcast", lambda: evermat.open(tmp_path / "state", broadcast=4)),
        ("scratch", lambda: evermat.open(tmp_path / "state", scratch=tmp_path)),
    ):
        with pytest.raises(evermat.ArgumentError) as error:
            call()
        assert message(error.value) == f"`{name}` needs Spark: pass a SparkSession as `engine`"
    PROGRAM.materialise(place="auto")


def test_trivial_consequences_of_nothing() -> None:
    with pytest.raises(evermat.ArgumentError, match="`trivial` needs `ontology`, `entailment` or `equality`"):
        evermat.Program.parse(trivial=True)
    over_triples = ".decl triple(s:term, p:term, o:term)"
    with pytest.raises(evermat.ArgumentError, match="need a rule set: `entailment`"):
        evermat.Program.parse(over_triples, trivial=True, equality="off")
    evermat.Program.parse(over_triples, trivial=True, entailment="rdfs")
    evermat.Program.parse(trivial=True, equality="off")


# --- paths, functions and other types --------------------------------------------------------------------------


def test_one_path_or_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("u1.tsv").write_text("+\ta\t1\n")
    Path("d.nt").write_text("<http://x/a> <http://x/p> <http://x/b> .\n")
    Path("o.nt").write_text("<http://x/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://x/B> .\n")
    for files in ("u1.tsv", Path("u1.tsv"), ["u1.tsv"], (Path("u1.tsv"),), iter(["u1.tsv"])):
        (change,) = made().update_files(files)
        assert change.stats["files"] == ["u1.tsv"]
    program = evermat.Program.parse(".decl triple(s:term, p:term, o:term)")
    for rdf in ("d.nt", Path("d.nt"), ["d.nt"]):
        assert len(program.materialise(rdf=rdf)["triple"]) == 1
    for ontology in ("o.nt", Path("o.nt"), ["o.nt"]):
        assert len(evermat.translate(ontology).rules) == len(evermat.translate(["o.nt"]).rules) == 1
        assert evermat.Program.parse(ontology=ontology).compiled.rules


@pytest.mark.parametrize("given", [3, None, b"x", {"x": 1}, [3], ["x", None]])
def test_what_is_not_a_path(given: Any) -> None:
    for name, call in (
        ("files", lambda: made().update_files(given)),
        ("rdf", lambda: PROGRAM.materialise(rdf=given)),
        ("ontology", lambda: evermat.Program.parse(ontology=given)),
        ("ontology", lambda: evermat.translate(given)),
    ):
        with pytest.raises(TypeError, match=rf"^`{name}` is of type \w+: use a path, or several$"):
            call()


def test_other_types() -> None:
    m = made()
    for call, told in (
        (lambda: PROGRAM.materialise(timer=3), "`timer` is of type int: use an `evermat.PhaseTimer`"),
        (lambda: PROGRAM.materialise(progress=3), "`progress` is of type int: use a function"),
        (lambda: PROGRAM.materialise([(1,)]), "`facts` is of type list: use a mapping from relations to facts"),
        (lambda: m.update([(1,)]), "`insert` is of type list: use a mapping from relations to facts"),
        (lambda: m.update(delete=3), "`delete` is of type int: use a mapping from relations to facts"),
        (lambda: evermat.Program.parse(b"x"), "`text` is of type bytes: use a str"),
        (lambda: evermat.Program.read(3), "`path` is of type int: use a path"),
        (lambda: m["a"].to_spark(None), "`spark` is of type NoneType: use a SparkSession"),
        (lambda: m.query("a(x)").to_spark("local"), "`spark` is of type str: use a SparkSession"),
        (lambda: m.create_views(3), "`spark` is of type int: use a SparkSession"),
        (lambda: m.write_outputs("out", spark="local"), "`spark` is of type str: use a SparkSession"),
        (lambda: evermat.Change.combined(3), "`changes` is of type int: use a sequence of changes"),
        (lambda: evermat.Change.combined([3]), "`changes` is of type int: use a sequence of changes"),
        (lambda: evermat.Program.parse("", nope=1), "Program.parse() has no argument `nope`"),
        (lambda: evermat.Program.parse("", entailments="rdfs"),
         "Program.parse() has no argument `entailments`: did you mean `entailment`?"),
        (lambda: evermat.Program.read(None, bas="x"), "Program.read() has no argument `bas`: did you mean `base`?"),
    ):  # fmt: skip
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value) == told
    with pytest.raises(evermat.ArgumentError) as empty:
        evermat.Change.combined([])
    assert message(empty.value) == "`changes` is empty: pass at least one change"
    assert PROGRAM.materialise(timer=evermat.PhaseTimer(), progress=print) is not None


def test_a_stream_of_a_folder(tmp_path: Path) -> None:
    m = made()
    with pytest.raises(evermat.ArgumentError, match="`poll` is nan: use a finite number"):
        evermat.FolderStream(tmp_path, m, poll=math.nan)
    with pytest.raises(TypeError, match="`warn` is of type str: use a function"):
        evermat.FolderStream(tmp_path, m, warn="x")


def test_nothing_is_done_if_an_argument_is_wrong(tmp_path: Path) -> None:
    m = made()
    m.save(tmp_path / "state")
    for wrong in ({"algorithm": "x"}, {"limit_rounds": -1}, {"memory": "x"}):
        with pytest.raises(evermat.ProgramError):
            m.update({"a": [(1,)]}, **wrong)
        with pytest.raises(evermat.ProgramError):
            m.update(add_rules="b(2).", **wrong)
    assert (m.version, sorted(m["b"])) == (1, [(7,)])


def test_saving_to_the_own_state_writes_nothing(tmp_path: Path) -> None:
    m = made()
    m.save(tmp_path / "state")
    m.save(tmp_path / "state")
    assert m.version == 1
    m.update({"a": [(8,)]})
    m.save(tmp_path / "." / "state")
    assert (m.version, len(evermat.versions(tmp_path / "state"))) == (2, 2)
    m.close()
    other = made()
    other.save(tmp_path / "state")
    assert other.version == 3
