"""Literals of different value are never the same: whoever says so is refused, and nothing changes. Literals of one value may be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.literal_values import different_values
from evermat.language.terms import SAME_AS
from tests.support.commands import Evermat
from tests.support.equality.checks import ALGORITHMS
from tests.support.updates import facts_of

XSD = "http://www.w3.org/2001/XMLSchema#"
ONE, ALSO_ONE, TWO = (f'"{text}"^^<{XSD}integer>' for text in ("1", "01", "2"))
A, B = "<http://e/a>", "<http://e/b>"
AGE = "<http://e/age>"
PROGRAM = """
.prefix e: <http://e/>
.pragma "equality" "rewrite"
.decl e:age(x:term, y:term)
y = z :- e:age(x, y), e:age(x, z).
"""
DIFFERENT = [
    (ONE, TWO),
    ('"1"', ONE),
    ('"a"', '"b"'),
    ('"a"', '"a"@en'),
    ('"a"@de', '"a"@en'),
    (ONE, f'"1"^^<{XSD}double>'),
    (f'"1"^^<{XSD}float>', f'"1"^^<{XSD}double>'),
    (f'"x"^^<{XSD}integer>', f'"y"^^<{XSD}integer>'),
]
SAME = [
    (ONE, ALSO_ONE),
    (ONE, f'"+1.0"^^<{XSD}decimal>'),
    (ONE, f'"1"^^<{XSD}byte>'),
    (f'"1"^^<{XSD}boolean>', f'"true"^^<{XSD}boolean>'),
    (f'"1e0"^^<{XSD}double>', f'"1"^^<{XSD}double>'),
    (f'"00:00:00Z"^^<{XSD}time>', f'"00:00:00.0Z"^^<{XSD}time>'),
    ('"1"^^<http://e/inch>', '"01"^^<http://e/inch>'),  # nobody knows
    ('"1"^^<http://e/inch>', ONE),
    (ONE, A),
    (ONE, "_:b"),
]


@pytest.fixture(params=[False, True], ids=["relations", "triples"])
def program(request: pytest.FixtureRequest) -> evermat.Program:
    """A program whose facts are held in either way."""
    triples = ".decl triple(s:term, p:term, o:term)\n"
    return evermat.Program.parse(PROGRAM.replace(".decl e:age(x:term, y:term)\n", triples if request.param else ""))


def given_to(program: evermat.Program, **pairs: list[tuple[str, str]]) -> dict[str, list[tuple[str, ...]]]:
    """Facts about `age` and `same`, as the program holds them."""
    names = {"age": AGE, "same": SAME_AS}
    if "triple" in program.relations:
        return {"triple": [(x, names[kind], y) for kind, rows in pairs.items() for x, y in rows]}
    return {names[kind]: rows for kind, rows in pairs.items()}


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(evermat.DataError) as error:
        action()
    assert error.value.exit_code == 3
    return str(error.value)


@pytest.mark.parametrize(("x", "y"), DIFFERENT)
def test_explicit_facts_that_make_different_values_the_same(program: evermat.Program, x: str, y: str) -> None:
    for same in ([(x, y)], [(y, x)], [(A, x), (A, y)], [(x, A), (A, B), (y, B)]):
        text = refused(lambda same=same: program.materialise(given_to(program, same=same)))
        first, second = sorted((x, y))
        assert text.startswith(
            f"error[E382]: {first} and {second} would be equal, but are literals of different values\n  = note: "
        )
        name, property_ = ("triple", f" {SAME_AS},") if "triple" in program.relations else (SAME_AS, "")
        given = {f"`{name}({one},{property_} {other})` is given" for one, other in same}
        reasons = text[text.index("note: ") + len("note: ") :].split("; ")
        assert set(reasons) == given | {"nothing was changed"}


@pytest.mark.parametrize(("x", "y"), SAME)
def test_literals_of_one_value_may_be_the_same(program: evermat.Program, x: str, y: str) -> None:
    m = program.materialise(given_to(program, same=[(x, y)]))
    smallest = min(x, y, key=str.encode)
    assert m.names(x) == m.names(y) == sorted([x, y])
    assert m.representative(x) == m.representative(y) == smallest
    (same,) = [m[name] for name in m if len(m[name])]
    assert len(same) == 4
    assert [row[0] for row in same.representatives] == [smallest]


def test_literals_of_one_value_are_not_the_same_by_themselves(program: evermat.Program) -> None:
    m = program.materialise(given_to(program, age=[(A, ONE), (B, ALSO_ONE)]))
    assert sum(len(m[name]) for name in m) == 4  # both, and that each value is the same as itself
    assert m.names(ONE) == [ONE]


def test_rules_that_make_different_values_the_same(program: evermat.Program) -> None:
    text = refused(lambda: program.materialise(given_to(program, age=[(A, ONE), (A, TWO)])))
    assert ONE in text
    assert TWO in text
    assert program.materialise(given_to(program, age=[(A, ONE), (A, ALSO_ONE)])).names(ONE) == [ALSO_ONE, ONE]
    refused(lambda: program.materialise(given_to(program, age=[(A, ONE), (B, TWO)], same=[(A, B)])))
    # Not these two are said to be the same, but what they are the same as.
    refused(
        lambda: program.materialise(given_to(program, age=[(A, "_:x"), (A, "_:y")], same=[("_:x", ONE), ("_:y", TWO)]))
    )


@pytest.mark.parametrize("algorithm", ["", *ALGORITHMS])
def test_the_message_names_the_rule_and_the_facts(algorithm: str) -> None:
    """As for forbidden facts: the subject, the property and the rule. Without an algorithm, from scratch."""
    program = evermat.Program.parse(PROGRAM, name="p.dl")
    given = {AGE: [(A, ONE), (B, ALSO_ONE)]}
    if algorithm:
        m = program.materialise(given)
        text = refused(lambda: m.update(insert={AGE: [(A, TWO)]}, algorithm=algorithm))
    else:
        text = refused(lambda: program.materialise({AGE: [*given[AGE], (A, TWO)]}))
    *head, note = text.splitlines()
    assert head == [
        f"error[E382]: {ONE} and {TWO} would be equal, but are literals of different values",
        " --> p.dl:5:1",
        "  |",
        "5 | y = z :- e:age(x, y), e:age(x, z).",
        "  | ^^^^^",
    ]
    assert note in {
        f"  = note: `{SAME_AS}({one}, {other})` follows from `{AGE}({A}, {one})`, `{AGE}({A}, {other})`; "
        "nothing was changed"
        for one, other in ((ONE, TWO), (TWO, ONE))
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "insert",
    [
        {"same": [(ONE, TWO)]},
        {"same": [(A, B)]},
        {"age": [(A, TWO)]},
        {"age": [(A, B), (B, A), (A, TWO)], "same": [(B, B)]},
    ],
    ids=["said", "merged", "derived", "among others"],
)
def test_an_update_that_makes_different_values_the_same(
    program: evermat.Program, insert: dict[str, list[tuple[str, str]]], algorithm: str
) -> None:
    m = program.materialise(given_to(program, age=[(A, ONE), (A, ALSO_ONE), (B, TWO)], same=[("_:a", A)]))
    before, held = facts_of(m), {name: set(m[name].representatives) for name in m}
    delete = given_to(program, age=[(A, ALSO_ONE)])
    refused(lambda: m.update(insert=given_to(program, **insert), delete=delete, algorithm=algorithm))
    assert facts_of(m) == before
    assert {name: set(m[name].representatives) for name in m} == held
    assert [m.names(t) for t in (ONE, TWO, A, B)] == [[ALSO_ONE, ONE], [TWO], [A, "_:a"], [B]]
    # Nothing is left of what was to be inserted, and what was to be deleted is there to be deleted.
    change = m.update(delete=given_to(program, **insert), algorithm=algorithm)
    assert not change
    assert facts_of(m) == before
    m.update(delete=delete, algorithm=algorithm)
    expected = program.materialise(given_to(program, age=[(A, ONE), (B, TWO)], same=[("_:a", A)]))
    assert facts_of(m) == facts_of(expected)
    assert m.names(ONE) == [ONE]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_value_may_be_replaced_in_one_update(program: evermat.Program, algorithm: str) -> None:
    """What counts is what holds afterwards."""
    m = program.materialise(given_to(program, age=[(A, ONE)], same=[("_:x", ONE), (A, B)]))
    change = given_to(program, age=[(B, TWO)], same=[("_:x", TWO)])
    m.update(insert=change, delete=given_to(program, age=[(A, ONE)], same=[("_:x", ONE)]), algorithm=algorithm)
    assert facts_of(m) == facts_of(program.materialise(given_to(program, age=[(B, TWO)], same=[("_:x", TWO), (A, B)])))
    assert m.names(TWO) == [TWO, "_:x"]


LITERALS = sorted({term for pair in [*DIFFERENT, *SAME] for term in pair})


@settings(max_examples=40, deadline=None)
@given(same=st.lists(st.tuples(*[st.sampled_from(LITERALS)] * 2), max_size=4))
def test_exactly_different_values_are_refused(same: list[tuple[str, str]]) -> None:
    program = evermat.Program.parse(PROGRAM)
    classes = [{term} for term in LITERALS]
    for x, y in same:
        joined = [c for c in classes if {x, y} & c]
        classes = [c for c in classes if not {x, y} & c] + [set().union(*joined)]
    if any(different_values(x, y) for c in classes for x, y in combinations(c, 2)):
        refused(lambda: program.materialise({SAME_AS: same}))
    else:
        m = program.materialise({SAME_AS: same})
        assert set(m[SAME_AS]) == {pair for c in classes for pair in product(c, repeat=2) if len(c) > 1 or pair in same}


def test_the_command_line_refuses_them(tmp_path: Path, evermat_command: Evermat) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "good.nt").write_text(f"{A} {AGE} {ONE} .\n")
    (tmp_path / "bad.nt").write_text(f"{A} {AGE} {ONE} .\n{A} {AGE} {TWO} .\n")
    (tmp_path / "change.add.nt").write_text(f"{A} {AGE} {TWO} .\n")
    state = tmp_path / "state"
    code, out, err = evermat_command("run", tmp_path / "p.dl", "--rdf", tmp_path / "bad.nt", "--state", state)
    assert (code, out) == (3, "")
    assert err.startswith("error[E382]")
    assert ONE in err
    assert TWO in err
    assert not state.exists()
    assert evermat_command("run", tmp_path / "p.dl", "--rdf", tmp_path / "good.nt", "--state", state).code == 0
    assert evermat_command("update", "--state", state, tmp_path / "change.add.nt").code == 3
    assert len(evermat.versions(state)) == 1
    with evermat.open(state) as m:
        assert set(m[AGE]) == {(A, ONE)}
