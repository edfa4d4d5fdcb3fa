"""Stratification, over random programs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core.errors import ProgramError
from evermat.language.model import Atom, Negation, Program
from tests.support.golden import cases, compile_file, compile_text

NAMES = "pqrstuvw"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Random rules over unary relations, with negation and aggregates at random; some cannot be stratified."""
    literal = st.tuples(
        st.sampled_from(["{}(x)", "{}(x)", "{}(x)", "!{}(x)", "0 < count : {{ {}(_) }}"]), st.sampled_from(NAMES)
    )
    rule = st.tuples(st.sampled_from(NAMES), st.lists(literal, max_size=3))
    lines = [f".decl {name}(x:number)" for name in NAMES] + [".decl base(x:number)"]
    for head, body in draw(st.lists(rule, max_size=12)):
        lines.append(f"{head}(x) :- {', '.join(['base(x)', *(form.format(name) for form, name in body)])}.")
    return "\n".join(lines)


@st.composite
def layered_programs(draw: st.DrawFn) -> str:
    """Like the above, but a negation or aggregate reads only what comes earlier in the alphabet: always stratified."""
    lines = [f".decl {name}(x:number)" for name in NAMES] + [".decl base(x:number)"]
    for _ in range(draw(st.integers(0, 12))):
        head = draw(st.integers(0, len(NAMES) - 1))
        body = ["base(x)"]
        for _ in range(draw(st.integers(0, 3))):
            strict = draw(st.booleans()) and head > 0
            name = NAMES[draw(st.integers(0, head - 1 if strict else head))]
            form = draw(st.sampled_from(["!{}(x)", "0 < count : {{ {}(_) }}"])) if strict else "{}(x)"
            body.append(form.format(name))
        lines.append(f"{NAMES[head]}(x) :- {', '.join(body)}.")
    return "\n".join(lines)


def stratum_of(program: Program) -> dict[str, int]:
    return {name: i for i, stratum in enumerate(program.strata) for name in stratum.relations}


def check(program: Program) -> None:
    every = [name for stratum in program.strata for name in stratum.relations]
    assert sorted(every) == sorted(program.relations)
    level = stratum_of(program)
    assert sorted(map(str, program.rules)) == sorted(str(rule) for stratum in program.strata for rule in stratum.rules)
    for number, stratum in enumerate(program.strata):
        for rule in stratum.rules:
            assert level[rule.head.relation.name] == number
        for rule in stratum.recursive:
            assert reads_own_stratum(program, rule)
        for rule in stratum.nonrecursive:
            assert not reads_own_stratum(program, rule)
    for rule in program.rules:
        head = level[rule.head.relation.name]
        for literal in rule.body:
            if isinstance(literal, Atom):
                assert head >= level[literal.relation.name]
            elif isinstance(literal, Negation):
                assert head > level[literal.atom.relation.name]
        for literal in rule.aggregate.body if rule.aggregate else ():
            atom = literal.atom if isinstance(literal, Negation) else literal
            if isinstance(atom, Atom):
                assert head > level[atom.relation.name]


def reads_own_stratum(program: Program, rule) -> bool:
    level = stratum_of(program)
    own = level[rule.head.relation.name]
    return any(isinstance(literal, Atom) and level[literal.relation.name] == own for literal in rule.body)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(layered_programs())
def test_what_is_layered_is_stratified(text: str):
    check(compile_text(text))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(programs())
def test_every_stratification_is_valid(text: str):
    try:
        program = compile_text(text)
    except ProgramError as error:
        assert {problem.kind.label for problem in error.problems} <= {"E250", "E251"}
    else:
        check(program)


@pytest.mark.parametrize("path", cases("souffle"), ids=lambda path: path.stem)
def test_stratifications_of_whole_programs_are_valid(path):
    check(compile_file(path))


def test_a_rule_over_another_stratum_is_nonrecursive():
    program = compile_text(
        ".decl a(x:number) .decl b(x:number)\na(x) :- a(x), x > 1.\nb(x) :- a(x).\nb(x) :- b(x), a(x).\nb(1) :- true."
    )
    (stratum,) = [s for s in program.strata if "b" in s.relations]
    assert [str(rule) for rule in stratum.recursive] == ["b(x) :- b(x), a(x)."]
    assert [str(rule) for rule in stratum.nonrecursive] == ["b(x) :- a(x).", "b(1) :- true."]


def test_relations_that_no_rule_mentions_have_a_stratum():
    program = compile_text(".decl a(x:number) .decl b(x:number)\n")
    assert [stratum.relations for stratum in program.strata] == [("a", "b")]


@pytest.mark.slow
def test_a_long_chain_needs_no_deep_stack():
    n = 3000
    text = "".join(f".decl r{i}(x:number)\n" for i in range(n + 1)) + "".join(
        f"r{i}(x) :- r{i + 1}(x).\n" for i in range(n)
    )
    assert len(compile_text(text).strata) == n + 1


def test_groups_of_an_aggregate_may_be_recursive():
    program = compile_text(
        ".decl e(x:number, y:number) .decl far(x:number, n:number)\n"
        "far(1, 0).\nfar(y, n) :- far(x, _), e(x, y), n = count : { e(y, _) }, n < 10."
    )
    check(program)
