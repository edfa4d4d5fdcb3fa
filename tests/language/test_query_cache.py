"""The queries of a program that were asked last stay compiled, as long as there is room."""

from __future__ import annotations

import tracemalloc

import pytest

from evermat.core import ProgramError, Source
from evermat.language import Queries, Query
from evermat.language.compile import compile_program
from evermat.language.query_cache import MOST_BYTES, QueryCache, bytes_of
from tests.support.many_threads import same_in_threads

PROGRAM = ".decl a(x:number, y:number)\n.decl s(x:symbol, y:symbol)\n"


@pytest.fixture
def queries() -> Queries:
    return Queries(compile_program(Source("p.dl", PROGRAM)))


def test_a_query_that_is_asked_again_is_not_compiled_again(queries: Queries) -> None:
    assert queries.compile("a(x, y)") is queries.compile("a(x, y)")
    assert queries.compile("a(x, y)") is not queries.compile("a(x, y).")


def test_programs_share_nothing(queries: Queries) -> None:
    others = Queries(compile_program(Source("p.dl", ".decl a(x:symbol, y:float)")))
    mine, other = queries.compile("a(x, y)"), others.compile("a(x, y)")
    assert [str(column.type) for column in mine.answer.columns] == ["number", "number"]
    assert [str(column.type) for column in other.answer.columns] == ["symbol", "float"]


def test_mistakes_are_found_each_time(queries: Queries) -> None:
    for _ in range(3):
        with pytest.raises(ProgramError, match="b"):
            queries.compile("b(x, y)")


def compiled(queries: Queries, text: str) -> Query:
    """The query in a text, compiled now."""
    return Queries(queries.program).compile(text)


def test_those_that_were_asked_last_are_kept(queries: Queries) -> None:
    cache, made = QueryCache(most_queries=3), list[str]()

    def get(number: int) -> None:
        def compile_now(text: str) -> Query:
            made.append(text)
            return compiled(queries, text)

        cache.get(f"a({number}, y)", compile_now)

    for number in (1, 2, 3, 1, 4, 1, 2):  # 4 replaces 2, and 2 replaces 3
        get(number)
    assert made == [f"a({number}, y)" for number in (1, 2, 3, 4, 2)]
    assert len(cache) == 3


def test_a_cache_is_bounded_by_what_it_takes(queries: Queries) -> None:
    query = compiled(queries, "a(1, y)")
    most = 10 * bytes_of("a(1, y)", query)
    cache = QueryCache(most)
    for number in range(200):
        cache.get(
            f"a({number % 10}, y)" if number % 3 else f"a({number}, y), a(y, {number})", lambda t: compiled(queries, t)
        )
        assert cache.nbytes <= most
    assert 1 < len(cache) <= 10
    large = ", ".join(f"a(x{i}, y{i})" for i in range(100))
    before = len(cache)
    assert cache.get(large, lambda text: compiled(queries, text)).answer.arity == 200
    assert len(cache) == before
    assert cache.nbytes == sum(size for _, size in cache._queries.values())


@pytest.mark.parametrize(
    "text",
    [
        "a({0}, y)",
        ", ".join(f"a(x{i}, {{0}})" for i in range(20)),
        ", ".join(f"(a(x, {i}{{0}}); a({i}, x))" for i in range(7)),
        's("' + "z" * 3000 + '{0}", y)',
        "a(x, y), x = {0} + " + " + ".join("y" for _ in range(100)),
        'k = count : {{ a(_, {0}), s(_, _) }}, !s(_, "a{0}")',
    ],
)
def test_queries_take_no_more_than_is_thought(queries: Queries, text: str) -> None:
    compiled(queries, text.format(0))  # what all of them share
    tracemalloc.start()
    made = [compiled(queries, text.format(number)) for number in range(1, 11)]
    taken = tracemalloc.get_traced_memory()[0] / len(made)
    tracemalloc.stop()
    assert taken < 1.5 * bytes_of(text, made[0]) < MOST_BYTES


def test_threads_get_one_query_for_one_text(queries: Queries) -> None:
    cache = QueryCache(most_queries=5)
    kept = [cache.get(f"a({i}, y)", lambda text: compiled(queries, text)) for i in range(3)]

    def ask(number: int) -> object:
        query = cache.get(f"a({number}, y)", lambda text: compiled(queries, text))
        assert cache.nbytes <= MOST_BYTES
        return str(query.rules[0])

    same_in_threads(ask, list(range(8)))
    assert len(cache) <= 5
    assert cache.nbytes == sum(size for _, size in cache._queries.values())
    assert [str(query.rules[0]).count(str(i)) > 0 for i, query in enumerate(kept)] == [True] * 3
