"""Queries that are compiled once answer as if each was compiled when it is asked: whatever programs, rules, versions and threads there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

import evermat
from evermat import EvermatError, Materialisation
from evermat.engine import Run
from evermat.language import Queries
from evermat.runtime.query import answer_query
from tests.support.many_threads import at_once
from tests.support.randomness import seeds

PROGRAMS = (
    """.prefix ex: <http://one.example/>
.decl a(x:number, y:number) .decl b(x:number, y:number) .decl ex:c(x:number) .decl s(x:symbol, y:number)
b(x, y) :- a(x, y), x != y.  b(x, z) :- b(x, y), a(y, z).  ex:c(x) :- a(x, _).
""",
    """.prefix ex: <http://two.example/>
.decl a(x:symbol, y:number) .decl b(x:number, y:symbol) .decl ex:c(x:symbol) .decl s(x:symbol, y:number)
b(y, x) :- a(x, y).  ex:c(x) :- a(x, _), !s(x, _).  s("new", 1) :- a(_, 3).
""",
)
#: each is right in one of the programs at least, with some rules
QUERIES = (
    "a(x, y)",
    "?- a(x, y), b(y, z).",
    "b(x, _)",
    "ex:c(x)",
    'a("v1", y)',
    "a(1, y), y != 2",
    "k = count : { b(_, _) }",
    "s(x, n), !ex:c(x)",
    's("nobody", n); s("new", n)',
    "d(x, y)",
    "ex:c(x), d(x, _)",
    "a(x, y), z = x / (y - 2)",
    "b(x, y), x = x",
    "a(2, 3)",
    "a(x y)",
)
RULES = (
    ".decl d(x:number, y:number) d(y, 1) :- a(_, y).",
    "b(x, y) :- s(_, x), a(y, _)." , "b(x, y) :- s(y, x).",
    "s(cat(x, \"'\"), n + 10) :- s(x, n), n < 4.",
)  # fmt: skip


def facts(chance: Random, program: int) -> dict[str, list[tuple[Any, ...]]]:
    numbers = [(chance.randrange(5), chance.randrange(5)) for _ in range(chance.randrange(4))]
    a = numbers if program == 0 else [(f"v{x}", y) for x, y in numbers]
    return {"a": a, "s": [(f"v{chance.randrange(4)}", chance.randrange(5)) for _ in range(chance.randrange(3))]}


def shown(ask: Any) -> object:
    """The answer, or the error, so that it can be compared."""
    try:
        answer = ask()
        return [(c.name, str(c.type)) for c in answer.relation.columns], sorted(answer), len(answer), answer.undefined
    except EvermatError as error:
        return type(error), str(error)


def check(reader: Any, text: str) -> None:
    """A query is answered as one that was never compiled before."""
    pin = reader._pin()
    expected = shown(lambda: answer_query(Queries(pin.program).compile(text), pin.reading, Run()))
    assert shown(lambda: reader.query(text)) == expected


def changes(m: Materialisation, program: int, chance: Random, rules: set[str]) -> None:
    """One random change of facts or rules; one that is refused changes nothing."""
    try:
        match chance.randrange(4):
            case 0 if free := sorted(set(RULES) - rules):
                rule = chance.choice(free)
                m.update(add_rules=rule)
                rules.add(rule)
            case 1 if rules:
                rule = chance.choice(sorted(rules))
                m.update(remove_rules=rule)
                rules.remove(rule)
            case _:
                m.update(facts(chance, program), facts(chance, program))
    except EvermatError:
        pass


@pytest.mark.parametrize("seed", list(seeds("cached queries", 6)))
def test_any_order_of_changes_snapshots_and_queries(seed: int) -> None:
    chance = Random(seed)
    made = [evermat.Program.parse(text).materialise(facts(chance, i)) for i, text in enumerate(PROGRAMS)]
    rules: list[set[str]] = [set(), set()]
    with ExitStack() as open_:
        readers: list[Any] = [*made]
        for _ in range(60):
            program = chance.randrange(2)
            match chance.randrange(8):
                case 0 | 1:
                    changes(made[program], program, chance, rules[program])
                case 2 if len(readers) < 8:
                    readers.append(open_.enter_context(made[program].snapshot()))
                case 3 if len(readers) > 2:
                    readers.pop(chance.randrange(2, len(readers))).close()
                case _:
                    check(chance.choice(readers), chance.choice(QUERIES))
        for reader in readers:
            for text in QUERIES:
                check(reader, text)


def test_threads_ask_while_rules_and_facts_change() -> None:
    (seed,) = seeds("cached queries in threads", 1)
    chance = Random(seed)
    made = [evermat.Program.parse(text).materialise(facts(chance, i)) for i, text in enumerate(PROGRAMS)]
    stop = Event()

    def change() -> None:
        rules: list[set[str]] = [set(), set()]
        while not stop.is_set():
            program = chance.randrange(2)
            changes(made[program], program, chance, rules[program])

    def asking(number: int) -> Iterator[None]:
        own = Random(f"{seed} {number}")
        while True:
            with own.choice(made).snapshot() as reader:
                for text in own.sample(QUERIES, 4):
                    check(reader, text)
            yield

    writer = Thread(target=change)
    writer.start()
    try:
        at_once(*[asking(number).__next__ for number in range(6)], seconds=1.0)
    finally:
        stop.set()
        writer.join()
