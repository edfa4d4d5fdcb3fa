"""Relations declared `forbidden`: nothing is materialised or updated that would put a fact into one of them."""

from __future__ import annotations

import pytest

import evermat

PROGRAM = """\
.decl man(x:symbol)
.decl woman(x:symbol)
.decl child(x:symbol, y:symbol)
.decl inconsistent(why:symbol) forbidden
.decl many(x:symbol, n:number) forbidden
inconsistent("man and woman") :- man(x), woman(x).
many(x, n) :- man(x), n = count : { child(x, _) }, n > 1, !woman(x).
"""


def told(error: pytest.ExceptionInfo[evermat.DataError]) -> list[tuple[str, str]]:
    assert error.value.exit_code == 3
    return [(problem.message, problem.note) for problem in error.value.problems]


def test_a_materialisation_says_which_facts_are_at_fault() -> None:
    program = evermat.Program.parse(PROGRAM)
    with pytest.raises(evermat.DataError) as error:
        program.materialise({"man": [("a",), ("b",)], "woman": [("b",), ("c",)]})
    assert told(error) == [
        ('`inconsistent("man and woman")` is forbidden, but it follows', 'from `man("b")`, `woman("b")`')
    ]
    assert (error.value.problems[0].span, error.value.problems[0].source) is not None


def test_what_nobody_asks_for_is_shown_too() -> None:
    program = evermat.Program.parse(PROGRAM + 'inconsistent("no children") :- child(_, x), man(x), child(x, _).')
    with pytest.raises(evermat.DataError) as error:
        program.materialise({"man": [("b",)], "child": [("a", "b"), ("b", "c")]})
    assert told(error)[0][1] == 'from `child("a", "b")`, `man("b")`, `child("b", "c")`'


def test_an_update_is_refused_as_a_whole() -> None:
    program = evermat.Program.parse(PROGRAM)
    m = program.materialise({"man": [("a",)], "woman": [("b",)]})
    with pytest.raises(evermat.DataError) as error:
        m.update(insert={"woman": [("a",), ("d",)], "child": [("b", "c")]})
    assert told(error)[0][1] == 'from `man("a")`, `woman("a")`'
    with pytest.raises(evermat.DataError) as error:
        m.update(insert={"child": [("a", "b"), ("a", "c")]})
    assert told(error) == [('`many("a", 2)` is forbidden, but it follows', 'from `man("a")`, `!woman("a")`')]
    assert sorted(m["woman"]) == [("b",)]
    assert not len(m["child"])
    m.update(insert={"woman": [("a",)]}, delete={"man": [("a",)]})
    assert not len(m["inconsistent"])


def test_a_rule_that_nothing_satisfies_is_not_added() -> None:
    m = evermat.Program.parse(PROGRAM).materialise({"man": [("a",)]})
    with pytest.raises(evermat.DataError, match='`inconsistent\\("no men"\\)` is forbidden'):
        m.update(add_rules='inconsistent("no men") :- man(_).')
    m.update(insert={"man": [("b",)]})
    assert len(m["man"]) == 2


def test_facts_that_are_given_and_many_of_them() -> None:
    program = evermat.Program.parse(".decl bad(x:number) forbidden")
    with pytest.raises(evermat.DataError) as error:
        program.materialise({"bad": [(i,) for i in range(1_500)]})
    found = told(error)
    assert found[0] == ("`bad(0)` is forbidden, but it is given", "")
    assert found[-1] == ("and 1,490 more facts of `bad`, which is forbidden", "")
    assert len(found) == 11


def test_instances_are_counted() -> None:
    program = evermat.Program.parse(PROGRAM)
    people = [(f"p{i}",) for i in range(9)]
    with pytest.raises(evermat.DataError) as error:
        program.materialise({"man": people, "woman": people})
    first, second, third = (f'from `man("p{i}")`, `woman("p{i}")`' for i in range(3))
    assert told(error)[0][1] == f"{first}; {second}; {third} (and 6 more)"


def test_a_state_stays_at_its_version(tmp_path: object) -> None:
    m = evermat.Program.parse(PROGRAM).materialise({"man": [("a",)]})
    m.save(f"{tmp_path}/state")
    m.close()
    with evermat.open(f"{tmp_path}/state") as opened:
        with pytest.raises(evermat.DataError):
            opened.update(insert={"woman": [("a",)]})
        assert opened.version == 1
        opened.update(insert={"woman": [("b",)]})
        assert opened.version == 2
