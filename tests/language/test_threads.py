"""Programs and queries are compiled in many threads at once, each as if it were alone."""

from __future__ import annotations

import gc

import pytest

from evermat.core import EvermatError, Source
from evermat.language import Queries
from evermat.language.compile import collector_paused, compile_program
from evermat.language.model import Program
from tests.support.golden import cases
from tests.support.many_threads import THREADS, at_once, same_in_threads

FOLDERS = ("errors", "warnings", "souffle", "fuzz")
SLOW = "many_alternatives_of_an_aggregate"
PROGRAM = """
.prefix ex: <http://example.org/>
.type City <: symbol
.type Place = City | Town
.type Town <: symbol
.decl road(a:City, b:City) .decl far(a:City, n:number) .decl rdf(s:term, o:term)
far(x, n) :- n = count : { road(x, _) }, road(x, _), !road(_, x).
rdf(ex:a, ex:b).
"""
QUERIES = [
    'road(x, y), x != "a"',
    "?- far(x, n), n > 3, !road(x, _).",
    "n = sum m : { far(_, m) }, road(x, _)",
    "rdf(ex:a, y)",
    "road(x, y); far(x, _), road(y, _)",
    "road(x, y), z = as(x, Place), far(z, _)",
    "road(x)",
    "road(x y)",
    "roda(x, y)",
    "far(x, n), n = x",
    "",
    "rdf(ey:a, y)",
    "road(x, y) & far(x, _)",
]


def shown(program: Program) -> str:
    """All that a program consists of, as a text."""
    parts = [*program.relations.values(), *program.facts.items(), *program.inputs, *program.outputs]
    strata = [stratum.signature for stratum in program.strata]
    warnings = [problem.render() for problem in program.warnings]
    return "\n".join(map(str, [*parts, *program.rules, *strata, *warnings]))


def compiled(source: Source) -> str:
    try:
        return shown(compile_program(source))
    except EvermatError as error:
        return str(error)


def test_unrelated_programs_compile_as_alone() -> None:
    paths = [path for folder in FOLDERS for path in cases(folder) if path.stem != SLOW]
    sources = [Source(path.name, path.read_text(encoding="utf-8", errors="replace")) for path in paths]
    assert len(sources) > 50
    same_in_threads(compiled, sources)


def test_queries_of_one_program_compile_as_alone() -> None:
    queries = Queries(compile_program(Source("p.dl", PROGRAM)))

    def asked(text: str) -> str:
        try:
            query = queries.compile(text)
        except EvermatError as error:
            return str(error)
        return "\n".join(map(str, [query.answer.columns, *query.relations.values(), *query.rules, query.about_names]))

    same_in_threads(asked, QUERIES)


@pytest.mark.parametrize("enabled", [True, False])
def test_pauses_of_the_collector_leave_it_as_it_was(enabled: bool) -> None:
    def pause() -> None:
        for _ in range(100):
            with collector_paused():
                pass

    (gc.enable if enabled else gc.disable)()
    try:
        for _ in range(5):
            at_once(*[pause] * THREADS, seconds=0.05)
            assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_a_pause_of_the_collector_ends_in_the_thread_where_it_began() -> None:
    with collector_paused():
        at_once(lambda: compiled(Source("p.dl", PROGRAM)))
        assert not gc.isenabled()
    assert gc.isenabled()
