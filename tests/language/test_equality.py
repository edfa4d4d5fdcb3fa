"""`x = y` as a head, and the axioms of equality, against a plain computation."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
NAMES = [f"<http://e/{letter}>" for letter in "abcde"]
RULES = """\
.prefix e: <http://e/>
.prefix owl: <http://www.w3.org/2002/07/owl#>
y = z :- e:f(x, y), e:f(x, z), y != z.
e:C(x) :- e:p(x, e:a).
"""

pairs = st.lists(st.tuples(*[st.sampled_from(NAMES)] * 2), max_size=5)
Facts = dict[str, set[tuple[str, ...]]]


def expected(facts: Facts) -> Facts:
    """Naive evaluation of the rules and of equality."""
    while True:
        new = {name: set(rows) for name, rows in facts.items()}
        new[SAME] |= {(y, z) for (x, y), (w, z) in product(facts["f"], repeat=2) if x == w and y != z}
        new["C"] |= {(x,) for x, y in facts["p"] if y == NAMES[0]}
        new[SAME] |= {(y, x) for x, y in facts[SAME]}
        for name, rows in facts.items():
            for row, (x, y) in product(rows, facts[SAME]):
                new[name] |= {(*row[:i], y, *row[i + 1 :]) for i, value in enumerate(row) if value == x}
        if new == facts:
            return facts
        facts = new


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(f=pairs, p=pairs, c=st.lists(st.sampled_from(NAMES), max_size=2), same=pairs, more=pairs)
def test_equality_equals_its_axioms(
    f: list[object], p: list[object], c: list[str], same: list[object], more: list[object]
) -> None:
    program = evermat.Program.parse(RULES)
    rows = {"<http://e/f>": f, "<http://e/p>": p, "<http://e/C>": [(x,) for x in c], SAME: same}
    m = program.materialise(rows)
    for _ in range(2):
        wanted = expected({"f": set(f), "p": set(p), "C": {(x,) for x in c}, SAME: set(same)})  # type: ignore[arg-type]
        found = {name.removeprefix("<http://e/").removesuffix(">"): set(m[name]) for name in m}
        found[SAME] = found.pop(SAME.removeprefix("<http://e/").removesuffix(">"))
        assert found == wanted
        m.update(delete={SAME: same, "<http://e/f>": f}, insert={"<http://e/f>": more})
        f, same = more, []


def test_equality_over_triples_also_replaces_properties() -> None:
    program = evermat.Program.parse(
        """.prefix e: <http://e/>
        .prefix owl: <http://www.w3.org/2002/07/owl#>
        .decl seen(p:term)
        e:p = e:q.
        e:p(e:a, e:b).
        seen(p) :- triple(_, p, e:b)."""
    )
    m = program.materialise()
    assert ("<http://e/a>", "<http://e/q>", "<http://e/b>") in m["triple"]
    assert set(m["seen"]) == {("<http://e/p>",), ("<http://e/q>",)}


def test_equality_can_be_switched_off_and_on() -> None:
    text = ".prefix e: <http://e/> .prefix owl: <http://www.w3.org/2002/07/owl#> e:C(e:a). owl:sameAs(e:a, e:b)."
    assert len(evermat.Program.parse(text).materialise()["<http://e/C>"]) == 1
    assert len(evermat.Program.parse('.pragma "equality" "axiomatise"\n' + text).materialise()["<http://e/C>"]) == 2
    equations = ".prefix e: <http://e/> e:C(e:a). e:a = e:b."
    assert len(evermat.Program.parse(equations).materialise()["<http://e/C>"]) == 2
    assert len(evermat.Program.parse('.pragma "equality" "off"\n' + equations).materialise()["<http://e/C>"]) == 1


def test_classes_by_their_longer_name() -> None:
    begin = ".prefix e: <http://e/> .prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
    m = evermat.Program.parse(begin + "rdf:type(e:a, e:C). e:D(x) :- rdf:type(x, e:C).").materialise()
    assert set(m) == {"<http://e/C>", "<http://e/D>"}
    assert len(m["<http://e/D>"]) == 1
    m = evermat.Program.parse(begin + "e:C(e:a). .decl c(x:term) c(x) :- rdf:type(_, x).").materialise()
    assert set(m) == {"triple", "c"}
    assert set(m["c"]) == {("<http://e/C>",)}


def test_names_without_a_relation_are_other_triples() -> None:
    m = evermat.Program.parse(
        """.prefix e: <http://e/>
        .decl other_triple(s:term, p:term, o:term)
        .decl e:C(s:term)
        e:C(e:a). e:D(e:a). e:p(e:a, "x").
        e:D(x) :- e:C(x)."""
    ).materialise()
    assert set(m) == {"other_triple", "<http://e/C>"}
    assert len(m["other_triple"]) == 2
    assert set(m.query("e:D(x), e:p(x, y)")) == {("<http://e/a>", '"x"')}


@pytest.mark.parametrize("relation", ["triple", "other_triple"])
@pytest.mark.parametrize(
    "body",
    [
        "n = count : { e:p(_, _) }",
        "n = sum k : { e:q(x), k = count : { e:p(x, _) } }",
        "n = sum (count : { e:p(x, _) }) : { e:q(x) }",
        "n = sum (1 * (count : { e:p(x, _) }) + 0) : { e:q(x) }",
        "n = as((count : { e:p(_, _) }), number)",
        "(n = 1 ; n = 2), !(n != (count : { e:p(_, _) }))",
    ],
)
def test_names_without_a_relation_are_triples_wherever_they_stand(relation: str, body: str) -> None:
    m = evermat.Program.parse(
        f""".prefix e: <http://e/>
        .decl {relation}(s:term, p:term, o:term)
        .decl r(n:number)
        e:p(e:a, e:b). e:p(e:a, e:c). e:q(e:a).
        r(n) :- {body}."""
    ).materialise()
    assert set(m) == {relation, "r"}
    assert set(m["r"]) == {(2,)}


def test_blank_nodes_are_constants() -> None:
    m = evermat.Program.parse(
        """.prefix e: <http://e/>
        e:p(_:b1, e:a). e:p(e:a, _:x.y-z).
        _:b1 = e:b :- e:p(_:b1, _).
        e:C(x) :- e:p(_:b1, x)."""
    ).materialise()
    assert set(m["<http://e/p>"]) == {
        ("_:b1", "<http://e/a>"),
        ("<http://e/b>", "<http://e/a>"),
        ("<http://e/a>", "_:x.y-z"),
    }
    assert set(m.query("e:p(x, _:x.y-z), e:p(_:b1, _)")) == {("<http://e/a>",)}


def test_what_is_wrong_with_a_pragma() -> None:
    with pytest.raises(evermat.ProgramError, match="use `rewrite`, `axiomatise`, `off` or `auto`"):
        evermat.Program.parse('.pragma "equality" "maybe"')


def test_questions_about_all_triples_of_a_program_with_relations() -> None:
    m = evermat.Program.parse(
        """.prefix e: <http://e/>
        .prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
        .decl other_triple(s:term, p:term, o:term)
        .decl e:C(s:term) .decl e:p(s:term, o:term)
        e:C(e:a). e:D(e:a). e:p(e:a, "x"). e:q(e:a, "y"). e:C(e:a, "z")."""
    ).materialise()
    a, rdf_type = "<http://e/a>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    everything = {
        (a, rdf_type, "<http://e/C>"),
        (a, rdf_type, "<http://e/D>"),
        (a, "<http://e/p>", '"x"'),
        (a, "<http://e/q>", '"y"'),
        (a, "<http://e/C>", '"z"'),
    }
    assert set(m.query("triple(s, p, o)")) == everything
    assert set(m.query("rdf:type(x, c)")) == {(a, "<http://e/C>"), (a, "<http://e/D>")}
    assert set(m.query('triple(_, p, "x")')) == {("<http://e/p>",)}
    assert set(m.query("triple(x, rdf:type, e:C)")) == {(a,)}
    assert set(m.query("triple(x, e:p, y)")) == {(a, '"x"')}
    assert set(m.query("e:C(x, y)")) == {(a, '"z"')}
    assert m.query("triple(e:a, _, _)")
    assert not m.query("triple(e:b, _, _)")
    m.update(add_rules=".decl kinds(c:term) kinds(c) :- rdf:type(_, c).")
    assert set(m["kinds"]) == {("<http://e/C>",), ("<http://e/D>",)}
    m.update(insert={"<http://e/C>": [("<http://e/b>",)]}, delete={"<http://e/C>": [(a,)]})
    assert ("<http://e/C>",) in m["kinds"]
    with pytest.raises(evermat.ProgramError, match="this head does not name its class or property"):
        m.update(add_rules="rdf:type(x, y) :- e:p(x, y).")
