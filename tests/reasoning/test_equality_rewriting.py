"""Equality by representatives equals equality by axioms: on random programs, after every update, by every algorithm."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.builtins import Type
from evermat.language.model import Program
from evermat.language.terms import RDF_TYPE, SAME_AS
from tests.support import oracle
from tests.support.environment import LONG
from tests.support.equality import naive
from tests.support.equality.checks import ALGORITHMS, PLAIN, assert_changed, assert_names, assert_right, assert_same
from tests.support.equality.programs import Sample, applied, random_query, random_row, random_sample, random_update
from tests.support.states import rows_of
from tests.support.updates import facts_of

MANY = 30 if LONG else 1  # times as many examples
KINDS = {
    "relations": {},
    "relations of one stratum": {"upper": False},
    "triples": {"triples": True},
    "literals": {"literals": True},
    "triples with literals": {"triples": True, "literals": True},
}


def randomly(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test with an argument `rng`."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        limits = settings(max_examples=examples * MANY, deadline=None)
        return limits(given(rng=st.randoms(use_true_random=True))(test))

    return decorate


def parsed(rng: Random, sample: Sample, equality: str = "rewrite") -> evermat.Program:
    """The program with its equality chosen in either way."""
    if rng.random() < 0.5:
        return evermat.Program.parse(f'.pragma "equality" "{equality}"\n{sample.text}')
    return evermat.Program.parse(sample.text, equality=equality)


def consequences(sample: Sample, explicit: oracle.Facts) -> naive.Result:
    return naive.materialise(sample.program, explicit)


def follow(rng: Random, sample: Sample, equality: str, check: Callable[..., None]) -> None:
    """Materialises a program and updates it a few times; what says that literals of different value are the same is refused."""
    program = parsed(rng, sample, equality)
    expected, explicit = consequences(sample, sample.explicit), sample.explicit
    if expected.clashes and equality == "rewrite":
        with pytest.raises(evermat.DataError):
            program.materialise(sample.facts)
        return
    counters, materialising = rng.choice(["none", "nonrecursive", "both"]), rng.choice(["seminaive", "modular"])
    m = program.materialise(sample.facts, counters=counters, algorithm=materialising)
    check(m, expected)
    for _ in range(rng.randint(1, 5)):
        delete, insert = random_update(rng, sample, explicit, expected.facts)
        changed = applied(explicit, delete, insert)
        after = consequences(sample, changed)
        algorithm = rng.choice(ALGORITHMS if equality == "rewrite" else PLAIN)
        if after.clashes and equality == "rewrite":
            with pytest.raises(evermat.DataError):
                m.update(insert=insert, delete=delete, algorithm=algorithm)
        else:
            change = m.update(insert=insert, delete=delete, algorithm=algorithm)
            assert_changed(change, expected.facts, after.facts)
            explicit, expected = changed, after
        check(m, expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@randomly(10)
def test_representatives_stand_for_all_names(kind: str, rng: Random) -> None:
    sample = random_sample(rng, **KINDS[kind])
    follow(rng, sample, "rewrite", lambda m, expected: assert_right(m, expected, sample.terms))


@pytest.mark.parametrize("kind", KINDS)
@randomly(3)
def test_axioms_say_the_same(kind: str, rng: Random) -> None:
    follow(rng, random_sample(rng, **KINDS[kind]), "axiomatise", assert_names)


@pytest.mark.slow
@pytest.mark.parametrize("triples", [False, True])
@randomly(2)
def test_all_algorithms_report_the_same_change(triples: bool, rng: Random) -> None:
    sample = random_sample(rng, triples=triples)
    before = consequences(sample, sample.explicit)
    delete, insert = random_update(rng, sample, sample.explicit, before.facts)
    after = consequences(sample, applied(sample.explicit, delete, insert))
    program = parsed(rng, sample)
    for algorithm in ALGORITHMS:
        m = program.materialise(sample.facts)
        assert_changed(m.update(insert=insert, delete=delete, algorithm=algorithm), before.facts, after.facts)
        assert_right(m, after, sample.terms)


@pytest.mark.parametrize("triples", [False, True])
@randomly(4)
def test_any_split_into_updates_gives_the_same(triples: bool, rng: Random) -> None:
    sample = random_sample(rng, triples=triples)
    program, explicit = parsed(rng, sample), sample.explicit
    whole, parts = program.materialise(sample.facts), program.materialise(sample.facts)
    delete, insert = random_update(rng, sample, explicit, facts_of(whole))
    algorithm = rng.choice(ALGORITHMS)
    whole.update(insert=insert, delete=delete, algorithm=algorithm)
    steps = [("delete", name, row) for name, rows in delete.items() for row in sorted(rows - insert[name])]
    steps += [("insert", name, row) for name, rows in insert.items() for row in sorted(rows)]
    rng.shuffle(steps)
    for kind, name, row in steps:
        parts.update(**{kind: {name: [row]}}, algorithm=algorithm)
    expected = consequences(sample, applied(explicit, delete, insert))
    assert_right(whole, expected, sample.terms)
    assert_right(parts, expected, sample.terms)


@pytest.mark.parametrize("triples", [False, True])
@randomly(6)
def test_queries_are_answered_in_names(triples: bool, rng: Random) -> None:
    sample = random_sample(rng, triples=triples)
    expected = consequences(sample, sample.explicit)
    m = parsed(rng, sample).materialise(sample.facts)
    for _ in range(4):
        text = random_query(rng, sample)
        answer = m.query(text)
        types = answer.relation.types
        rows = answers(sample, text, dict(zip(answer.columns, types, strict=True)), expected)
        assert_same({text: set(answer)}, {text: rows})
        assert len(answer) == len(rows)
        normal = {expected.normal(row, types) for row in rows}
        assert_same({text: set(m.query(text, representatives=True))}, {text: normal})


def answers(sample: Sample, text: str, columns: dict[str, Type], expected: naive.Result) -> set[tuple]:
    """All answers to a query, by a rule for them."""
    declared = ", ".join(f"{name}:{type_.name.lower()}" for name, type_ in columns.items())
    program = oracle.read(f"{sample.text}\n.decl answer({declared})\nanswer({', '.join(columns)}) :- {text}.")
    rule = next(rule for rule in program.rules if rule.head.relation.name == "answer")
    return naive.derived(rule, expected.facts)


@pytest.mark.parametrize("triples", [False, True])
@randomly(5)
def test_rules_may_change(triples: bool, rng: Random) -> None:
    sample = random_sample(rng, triples=triples)
    rules = list(dict.fromkeys(sample.rules))
    sample.rules = rng.sample(rules, rng.randint(0, len(rules)))
    m, explicit = parsed(rng, sample).materialise(sample.facts), sample.explicit
    for _ in range(3):
        before = consequences(sample, explicit)
        come = [rule for rule in rules if rule not in sample.rules and rng.random() < 0.5]
        gone = [rule for rule in sample.rules if rng.random() < 0.3]
        delete, insert = random_update(rng, sample, explicit, before.facts)
        sample.rules = [rule for rule in [*sample.rules, *come] if rule not in gone]
        explicit = applied(explicit, delete, insert)
        after = consequences(sample, explicit)
        change = m.update(insert, delete, add_rules="\n".join(come), remove_rules="\n".join(gone))
        assert_changed(change, before.facts, after.facts)
        assert_right(m, after, sample.terms)


@pytest.mark.parametrize("triples", [False, True])
@randomly(3)
def test_facts_in_all_their_forms(triples: bool, rng: Random) -> None:
    sample = random_sample(rng, triples=triples)
    expected = consequences(sample, sample.explicit)
    m = parsed(rng, sample).materialise(sample.facts)
    for name, rows in expected.facts.items():
        assert sorted(rows_of(m[name].to_arrow())) == sorted(rows)
        assert sorted(row for batch in m[name].batches() for row in rows_of(batch)) == sorted(rows)
        assert sorted(rows_of(pa.table(m[name]))) == sorted(rows)
        assert sorted(rows_of(m[name].representatives.to_arrow())) == sorted(expected.rewritten(name))
        assert f"{len(rows):,}" in repr(m[name])
        relation = next(r for r in sample.relations if r.name == name)
        for row in [random_row(rng, relation, sample.terms) for _ in range(5)]:
            assert (row in m[name]) == (row in rows)
            assert (row in m[name].representatives) == (row in expected.rewritten(name))
        assert ("<http://e/new>",) * len(relation.types) not in m[name]
    assert m.names("<http://e/new>") == ["<http://e/new>"]
    for facts, normal in ((expected.facts, False), ({n: expected.rewritten(n) for n in expected.facts}, True)):
        assert sorted(row for t in m.triples(representatives=normal) for row in rows_of(t)) == sorted(as_triples(facts))


def as_triples(facts: oracle.Facts) -> set[tuple]:
    """The facts of `triple`, classes and properties."""
    found = set(facts.get("triple", ()))
    for name, rows in facts.items():
        if name.startswith("<"):
            found |= {(row[0], RDF_TYPE, name) if len(row) == 1 else (row[0], name, row[1]) for row in rows}
    return found


# --- the judge ---------------------------------------------------------------------------------------------


def with_axioms(sample: Sample) -> Program:
    """A program with the axioms of equality as rules of its own; transitivity is a case of replacement."""
    triples = sample.relations[0].name == "triple"
    same = "triple({}, owl:sameAs, {})" if triples else "owl:sameAs({}, {})"
    rules = [f"{same.format('y', 'x')} :- {same.format('x', 'y')}."]
    for relation in sample.relations:
        columns = [f"c{i}" for i in range(len(relation.types))]
        atom = f"{relation.name}({', '.join(columns)})"
        for column, type_ in zip(columns, relation.types, strict=True):
            if type_ == "term":
                rules.append(f"{atom.replace(column, 'other')} :- {atom}, {same.format(column, 'other')}.")
    return oracle.read("\n".join([sample.text, *rules]))


@pytest.mark.parametrize("triples", [False, True])
@randomly(3)
def test_the_naive_materialisation_follows_the_axioms(triples: bool, rng: Random) -> None:
    sample = random_sample(rng, triples=triples, upper=rng.random() < 0.5)
    sample.terms, sample.given = sample.terms[:4], []
    sample.facts = {name: set(sorted(rows)[:2]) for name, rows in sample.facts.items()}
    assert_same(oracle.materialise(with_axioms(sample), sample.facts), consequences(sample, sample.facts).facts)


def test_the_smallest_name_is_the_representative() -> None:
    sample = Sample([], [f".decl {SAME_AS}(x:term, y:term)"], [])
    a, b, c = ("<http://e/é>", "<http://e/z>", "_:b")
    found = consequences(sample, {SAME_AS: {(a, b), (c, SAME_AS)}})
    assert [found.representative(term) for term in (a, b, c, "new")] == [b, b, SAME_AS, "new"]
    assert found.names(a) == [b, a]
    assert found.rewritten(SAME_AS) == {(b, b), (SAME_AS, SAME_AS)}
