"""Which storage scheme a relation gets, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evermat
from evermat import Materialisation
from evermat.columns.schemes import policy
from evermat.testing import state_of
from tests.support.commands import Evermat
from tests.support.scheme_cases import parsed, schemes_of
from tests.support.schemes import use_schemes

CHAIN = [(i, i + 1) for i in range(100)]
PAIRS = 100 * 101 // 2
CLOSURE = ".decl e(x:number, y:number) .decl t(x:number, y:number) t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z). "
UNION = ".decl a(x:number) .decl b(x:number) .decl u(x:number) u(x) :- a(x). u(x) :- b(x). "


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closure of a thousand pairs is large, one that is read backwards from ten thousand on."""
    monkeypatch.setattr(policy, "LEAST_PAIRS", 1_000)
    monkeypatch.setattr(policy, "LEAST_PAIRS_IF_READ_BACKWARDS", 10_000)


def decided(m: Materialisation) -> dict[str, tuple[str, int, str]]:
    """Scheme, facts and reason for every relation for which there is a scheme."""
    for made in m.stats["schemes"].values():
        assert set(made) == {"scheme", "estimated", "facts", "bytes", "scheme_bytes", "reason"}
    return {name: (made["scheme"], made["facts"], made["reason"]) for name, made in m.stats["schemes"].items()}


def test_small_data_is_plain() -> None:
    m = parsed(CLOSURE + UNION).materialise({"e": CHAIN, "a": [(1,)], "b": [(1,), (2,)]})
    assert decided(m) == {
        "t": ("plain", PAIRS, "100 edges"),
        "u": ("plain", 2, "fewer than 50,000,000 facts to copy"),
    }
    assert m.stats["schemes"]["t"]["estimated"] is None
    assert m.stats["schemes"]["u"]["estimated"] == 3


@pytest.mark.usefixtures("bound")
def test_a_large_closure_is_intervals() -> None:
    m = parsed(CLOSURE).materialise({"e": CHAIN})
    assert decided(m) == {"t": ("intervals", PAIRS, "a table of all pairs would be large")}
    plain = parsed(CLOSURE).materialise({"e": CHAIN}, schemes="plain")
    assert set(m["t"]) == set(plain["t"])
    estimated = m.stats["schemes"]["t"]["estimated"]
    assert 0.5 * PAIRS < estimated < 2 * PAIRS
    assert m.stats["schemes"]["t"]["bytes"] * 2 < plain.stats["schemes"]["t"]["bytes"]
    assert m.stats["stored_bytes"] < plain.stats["stored_bytes"]
    assert m.stats["facts"] == plain.stats["facts"]
    assert (m.stats["explicit"], m.stats["derived"]) == (100, PAIRS)


@pytest.mark.usefixtures("bound")
def test_a_closure_that_turns_out_small_is_plain() -> None:
    m = parsed(CLOSURE).materialise({"e": [(2 * i, 2 * i + 1) for i in range(500)]})
    assert decided(m) == {"t": ("plain", 500, "fewer than 1,000 pairs expected")}
    m = parsed(CLOSURE).materialise({"e": [(2 * i, 2 * i + 1) for i in range(1500)]})
    assert decided(m) == {"t": ("plain", 1500, "1,500 edges, not many fewer than pairs")}


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize(
    ("rule", "scheme"),
    [
        ("r(x) :- t(x, _).", "intervals"),
        ("r(y) :- e(x, _), t(x, y).", "intervals"),
        ("r(x) :- e(x, y), t(x, y).", "intervals"),
        ("r(x) :- e(x, y), !t(y, x).", "intervals"),
        ("r(x) :- t(x, y), e(y, _).", "plain"),
        ("r(x) :- t(x, 7), e(9, 10).", "plain"),
    ],
)
def test_reading_a_closure_backwards_needs_a_larger_one(rule: str, scheme: str) -> None:
    m = evermat.Program.parse(f"{CLOSURE} .decl r(x:number) {rule}").materialise({"e": CHAIN})
    assert m.stats["schemes"]["t"]["scheme"] == scheme


@pytest.mark.usefixtures("bound")
def test_a_turned_member_is_read_forwards_where_the_other_is_read_backwards() -> None:
    text = CLOSURE + ".decl n(x:number, y:number) n(y, x) :- t(x, y). t(y, x) :- n(x, y). .decl r(x:number) "
    m = evermat.Program.parse(text + "r(y) :- n(x, y), e(x, _).").materialise({"e": CHAIN})
    assert schemes_of(m) == {}
    m = evermat.Program.parse(text + "r(x) :- n(x, y), e(y, _).").materialise({"e": CHAIN})
    assert schemes_of(m) == {"t": "intervals", "n": "intervals"}


def test_a_union_is_stored_where_a_source_has_no_table_or_copies_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "LEAST_COPIES", 5)
    monkeypatch.setattr(policy, "LEAST_COPIES_IF_SLOW", 8)
    facts = {"a": [(i,) for i in range(4)], "b": [(i,) for i in range(3)]}
    assert decided(parsed(UNION).materialise(facts)) == {"u": ("plain", 4, "fewer than 8 facts to copy")}
    monkeypatch.setattr(policy, "MOST_LOOKED_UP", 0.5)
    assert decided(parsed(UNION).materialise(facts)) == {"u": ("union", 4, "a table would repeat those of its sources")}
    read = evermat.Program.parse(UNION + ".decl r(x:number) r(x) :- u(x), x > 1.")
    assert decided(read.materialise(facts)) == {"u": ("plain", 4, "fewer than 8 facts to copy")}
    monkeypatch.setattr(policy, "LEAST_PAIRS", 1_000)
    above = evermat.Program.parse(CLOSURE + ".decl v(x:number, y:number) v(x, y) :- t(x, y). v(x, y) :- e(y, x).")
    assert decided(above.materialise({"e": CHAIN})) == {
        "t": ("intervals", PAIRS, "a table of all pairs would be large"),
        "v": ("union", PAIRS + 100, "a source has no table"),
    }


def test_plain_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    m = parsed(CLOSURE + UNION).materialise({"e": CHAIN, "a": [(1,)]}, schemes="plain")
    assert decided(m) == {"t": ("plain", PAIRS, "as asked for"), "u": ("plain", 1, "as asked for")}
    m.update({"e": [(100, 101)]}, add_rules="u(x) :- e(x, _).")
    assert schemes_of(m) == {}
    assert state_of(m).stored_by_schemes == set()


def test_what_is_no_name_of_schemes() -> None:
    for bad, hint in (("intervals", ""), ("", ""), ("Plain", "; did you mean `plain`?")):
        with pytest.raises(ValueError) as error:
            parsed(CLOSURE).materialise(schemes=bad)
        assert str(error.value) == f"error[E200]: schemes {bad!r} are not known: use 'auto' or 'plain'{hint}"


@pytest.mark.parametrize("algorithm", ["seminaive", "modular", "auto"])
def test_rules_that_are_evaluated_one_by_one_have_tables(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    m = parsed(CLOSURE).materialise({"e": CHAIN}, algorithm=algorithm)
    assert schemes_of(m) == ({} if algorithm == "seminaive" else {"t": "intervals"})
    assert len(m["t"]) == PAIRS


def test_forbidden_relations_have_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    text = UNION.replace(".decl u(x:number)", ".decl u(x:number) forbidden")
    text += CLOSURE.replace(".decl t(x:number, y:number)", ".decl t(x:number, y:number) forbidden")
    m = evermat.Program.parse(text).materialise()
    assert decided(m) == {}
    for insert in ({"a": [(1,)]}, {"e": [(1, 2)]}):
        with pytest.raises(evermat.DataError):
            m.update(insert)
    assert (len(m["u"]), len(m["t"])) == (0, 0)


def test_facts_that_are_forbidden_for_what_a_closure_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    m = evermat.Program.parse(CLOSURE + ".decl cycle(x:number) forbidden cycle(x) :- t(x, x).").materialise(
        {"e": CHAIN}
    )
    assert schemes_of(m) == {"t": "intervals"}
    with pytest.raises(evermat.DataError) as error:
        m.update({"e": [(1, 0)]})
    assert "`cycle(0)` is forbidden, but it follows" in str(error.value)
    assert len(m["t"]) == PAIRS
    assert len(m.update({"e": [(100, 101)]}).inserted["t"]) == 101


def test_programs_about_equal_terms_have_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    text = """
    .prefix owl: <http://www.w3.org/2002/07/owl#>
    .prefix e: <http://e/>
    .decl owl:sameAs(x:term, y:term)
    .decl e:p(x:term, y:term)
    .decl far(x:term, y:term)
    .decl copy(x:term, y:term)
    far(x, y) :- e:p(x, y).
    far(x, z) :- far(x, y), far(y, z).
    copy(x, y) :- far(x, y).
    e:p(e:a, e:b). e:p(e:c, e:d). owl:sameAs(e:b, e:c).
    """
    rewritten = evermat.Program.parse(text, equality="rewrite").materialise()
    assert decided(rewritten) == {}
    axioms = evermat.Program.parse(text, equality="axiomatise").materialise()
    assert "intervals" in schemes_of(axioms).values()
    assert set(rewritten["copy"]) == set(axioms["copy"])
    assert len(rewritten["far"]) == 5


@pytest.mark.parametrize("schemes", ["auto", "plain"])
def test_the_command_line(
    schemes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat
) -> None:
    use_schemes(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("closure.dl").write_text(CLOSURE + ".input e .output t")
    Path("e.facts").write_text("1\t2\n2\t3\n")
    done = evermat_command("run", "closure.dl", "--schemes", schemes, "--stats", "stats.json", "--state", "state")
    assert done == (0, "", "")
    assert Path("t.csv").read_text() == "1\t2\n1\t3\n2\t3\n"
    expected = {"auto": ("intervals", "a table of all pairs would be large"), "plain": ("plain", "as asked for")}
    made = json.loads(Path("stats.json").read_text())["schemes"]["t"]
    assert (made["scheme"], made["reason"]) == expected[schemes]
    with evermat.open("state") as m:
        assert state_of(m).stored_by_schemes == ({"t"} if schemes == "auto" else set())


def test_the_command_line_refuses_other_schemes(tmp_path: Path, evermat_command: Evermat) -> None:
    (tmp_path / "closure.dl").write_text(CLOSURE)
    code, out, err = evermat_command("run", tmp_path / "closure.dl", "--schemes", "tables")
    assert (code, out) == (2, "")
    assert "'tables' is not one of 'auto', 'plain'" in err
