"""Whatever is fed to the compiler: a program or a located error, soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evermat.core import error_catalogue as errors
from evermat.core.errors import Problem, ProgramError
from evermat.core.source import Source
from evermat.language.compile import compile_program, read_source
from tests.fuzz.compiler import check
from tests.support.golden import cases, compile_text, problems_of

MEGABYTE = 1_000_000
MANY = 100_000
SECONDS = 20.0  # on a busy machine; a quadratic algorithm would take minutes


def problems(text: str) -> tuple[Problem, ...]:
    """What is wrong with a text; fails if it takes long."""
    start = time.perf_counter()
    found = problems_of(Source("bad.dl", text))
    for problem in found:
        assert len(problem.render()) < 5000
    assert time.perf_counter() - start < SECONDS
    return found


def kinds(text: str) -> set[str]:
    return {problem.kind.label for problem in problems(text)}


def error_of(path: Path) -> Problem:
    with pytest.raises(ProgramError) as raised:
        compile_program(read_source(path))
    (problem,) = raised.value.problems
    return problem


# --- files -------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path: Path):
    problem = error_of(tmp_path / "none.dl")
    assert problem.render() == f"error[E208]: cannot read `{tmp_path / 'none.dl'}`: no such file or directory"


def test_a_folder(tmp_path: Path):
    assert error_of(tmp_path).render() == f"error[E208]: cannot read `{tmp_path}`: is a directory"


def test_a_name_that_cannot_be_one():
    assert error_of(Path("nul\0.dl")).kind is errors.UNREADABLE
    assert error_of(Path("x" * 5000)).kind is errors.UNREADABLE


@pytest.mark.parametrize(
    ("data", "byte", "place"),
    [
        (b"\xff", 1, "1:1"),
        (b'.decl a(x:symbol)\na("caf\xe9").\n', 25, "2:7"),
        ("é\nß\n".encode() + b"ok \xc3(", 10, "3:4"),
        (b"a(1).\n\xed\xa0\x80", 7, "2:1"),
        ("\ufeffa".encode() + b"\x80", 5, "1:3"),
    ],
)
def test_bytes_that_are_no_text_are_located(tmp_path: Path, data: bytes, byte: int, place: str):
    path = tmp_path / "latin.dl"
    path.write_bytes(data)
    problem = error_of(path)
    assert problem.kind is errors.NOT_UTF8
    assert f"byte {byte} of" in problem.message
    assert f"--> {path}:{place}" in problem.render()


def test_an_empty_file(tmp_path: Path):
    path = tmp_path / "empty.dl"
    path.write_bytes(b"")
    assert compile_program(read_source(path)).rules == ()


# --- long lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "piece", ["~`\x01", "ab ~ ", "(", "{", "[", "\x00", "é", "@a-", "<a:", "\\", "'", '"', "#", "$", "."]
)
def test_ten_megabytes_of_garbage(piece: str):
    assert kinds(piece * (10 * MEGABYTE // len(piece)))


@pytest.mark.parametrize("piece", ["/*", "//", "/**/", "\n", "\t", "\ufeff"])
def test_ten_megabytes_of_nothing(piece: str):
    assert kinds(piece * (10 * MEGABYTE // len(piece))) <= {"E201", "E205"}


def test_a_string_of_ten_megabytes():
    text = "x" * (10 * MEGABYTE)
    assert compile_text(f'.decl a(x:symbol)\na("{text}").').facts == {"a": [(text,)]}


@pytest.mark.slow
def test_an_open_string_of_ten_megabytes():
    assert kinds('"' + "x" * (10 * MEGABYTE)) == {"E204"}
    assert kinds('a("' + "\\n" * MEGABYTE) == {"E204"}


@pytest.mark.slow
def test_ten_megabytes_of_facts_on_one_line():
    value = "y" * 1000
    facts = f'a("{value}").' * 10_000
    assert len(compile_text(f".decl a(x:symbol)\n{facts}").facts["a"]) == 10_000


def test_numbers_of_any_length():
    assert kinds(f".decl a(x:number)\na({'9' * (10 * MEGABYTE)}).") == {"E244"}
    assert kinds(f".decl a(x:number)\na(0x{'F' * MEGABYTE}).") == {"E244"}
    assert kinds(f".decl a(x:float)\na({'9' * MEGABYTE}.0).") == {"E244"}
    assert kinds(f".decl a(x:float)\na(1e{'9' * MEGABYTE}).") == {"E244"}
    assert compile_text(f".decl a(x:float)\na(0.{'0' * MEGABYTE}1).").facts == {"a": [(0.0,)]}
    assert kinds(f".decl a(x:number)\na({'x' * MEGABYTE}).") == {"E221"}


def test_names_of_any_length():
    assert kinds(f"{'x' * MEGABYTE}(1).") == {"E230"}


# --- depth -------------------------------------------------------------------------------------------------

DECLARED = ".decl a(x:number)\n"


@pytest.mark.slow
@pytest.mark.parametrize("depth", [201, 1000, 50_000])
@pytest.mark.parametrize(
    ("before", "inner", "after"),
    [
        ("a(x) :- a(x), {}a(x).", "!", ""),
        ("a(x) :- a(x), {}a(x){}.", "!(", ")"),
        ("a({}1{}).", "1-(", ")"),
        ("a(x) :- a(y), x = {}y.", "-", ""),
        ("a(x) :- a(y), x = {}y.", "bnot ", ""),
        ("a({}1).", "1+", ""),
        ("a({}1).", "2^", ""),
        ("a(x) :- a(x), {}a(x){}.", "(a(x);a(x),", ")"),
        ("a({}1{}).", "min(1,", ")"),
        ("a(x) :- x = {}1{}.", "count : {{ a(y), y = ", " }}"),
    ],
)
def test_deep_nesting_is_refused(before: str, inner: str, after: str, depth: int):
    inner, after = inner.replace("{{", "{"), after.replace("}}", "}")
    text = DECLARED + before.format(inner * depth, after * depth)
    found = kinds(text)
    assert found
    assert found <= {"E207", "E261"}


def test_parentheses_alone_are_no_depth():
    assert compile_text(f"{DECLARED}a({'(' * 500}1{')' * 500}).").facts == {"a": [(1,)]}
    assert kinds(f"{DECLARED}a({'(' * MANY}1{')' * MANY}).") == {"E207"}


def test_deep_data_types_are_refused_by_name():
    assert kinds(f".type T = {'A { x:' * MANY}number{'}' * MANY}") == {"E260"}


# --- width -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_conjunction_of_many_atoms():
    (rule,) = compile_text(f"{DECLARED}a(x) :- {', '.join(['a(x)'] * 50_000)}.").rules
    assert len(rule.body) == 50_000


@pytest.mark.slow
def test_a_chain_of_many_equations_in_the_wrong_order():
    n = 20_000
    equations = ", ".join(f"x{i} = x{i + 1}" for i in range(n))
    (rule,) = compile_text(f"{DECLARED}a(x0) :- {equations}, a(x{n}).").rules
    assert len(rule.body) == n + 1


@pytest.mark.slow
def test_many_unbound_variables():
    comparisons = ", ".join(f"x{i} < y{i}" for i in range(5000))
    found = problems(f"{DECLARED}a(1) :- {comparisons}.")
    assert [problem.kind.label for problem in found] == ["E222"] * 100 + ["E213"]


@pytest.mark.slow
def test_many_alternatives():
    assert kinds(f"{DECLARED}a(x) :- {'; '.join(['a(x)'] * 20_000)}.") == {"E261"}
    assert kinds(f"{DECLARED}a(x) :- a(x), !({', '.join(['a(x)'] * 20_000)}).") == {"E261"}
    assert kinds(f"{DECLARED}{', '.join(['a(x)'] * 1000)} :- {'; '.join(['a(x)'] * 1000)}.") == {"E261"}
    long = ", ".join(["(a(x); a(x))"] * 12 + ["a(x)"] * 2000)
    assert kinds(f"{DECLARED}a(x) :- {long}.") == {"E261"}


@pytest.mark.slow
@pytest.mark.parametrize("form", [".type T{a} <: T{b}", ".type T{a} = T{b}"])
@pytest.mark.parametrize("forward", [True, False])
def test_long_chains_of_types(form: str, forward: bool):
    n = 30_000
    pairs = [(i + 1, i) if forward else (i, i + 1) for i in range(n)]
    chain = "\n".join(form.format(a=a, b=b) for a, b in pairs)
    end, narrow, middle = (0, n, n // 2) if forward else (n, 0, n // 2)
    text = f"{chain}\n.type T{end} <: number\n.decl a(x:T{narrow})\n.decl b(x:T{middle})\nb(x) :- a(x)."
    assert compile_text(text).rules
    assert compile_text(text + "\n.decl c(x:number)\nc(x) :- a(x), b(x).").rules


@pytest.mark.slow
def test_a_cycle_of_many_types():
    n = 30_000
    (problem,) = problems("\n".join(f".type T{i} <: T{(i + 1) % n}" for i in range(n)))
    assert problem.message.count("→") <= 9


@pytest.mark.slow
def test_a_union_of_many_types():
    n = 20_000
    members = "\n".join(f".type T{i} <: number" for i in range(n))
    text = f"{members}\n.type U = {' | '.join(f'T{i}' for i in range(n))}\n.decl a(x:U) .decl b(x:T7)\na(x) :- b(x)."
    assert compile_text(text).rules


@pytest.mark.slow
def test_many_names_that_were_not_meant():
    n = 3000
    declared = "".join(f".decl relation{i}(x:number)\n" for i in range(n))
    found = problems(declared + "".join(f"relatoin{i}(1).\n" for i in range(n)))
    assert found[0].help == "did you mean `relation0`?"
    assert found[-1].message == "and more: only the first 100 errors are shown"


@pytest.mark.slow
def test_many_errors_on_one_line():
    assert len(problems(DECLARED + 'a("x").' * 20_000)) == 101
    assert len(problems(DECLARED + "a(1 1)." * 20_000)) == 101


@pytest.mark.slow
def test_many_cycles():
    n = 1000
    declared = "".join(f".decl r{i}(x:number)\n" for i in range(n))
    found = problems(declared + "".join(f"r{i}(x) :- r{(i + 1) % n}(x), !r{(i + 7) % n}(x).\n" for i in range(n)))
    assert len(found) == 101
    assert "…" in found[0].message


# --- what fuzzing found ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", cases("fuzz"), ids=lambda path: path.stem)
def test_what_fuzzing_found_stays_mended(path: Path):
    assert check(path.read_bytes().decode()) < SECONDS
