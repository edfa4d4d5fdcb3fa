"""Queries about a materialisation: compiled against its program, evaluated by its engine."""

from __future__ import annotations

from pathlib import Path

from evermat.core import watched
from evermat.engine import Run
from evermat.language import Program, Query
from evermat.language import Queries as QueryCompiler
from evermat.runtime.answer import Answer
from evermat.runtime.engine import Engine


class Queries:
    """Compiles queries against the program of an engine; what they need of its text is read once."""

    def __init__(self) -> None:
        self._compiler: QueryCompiler | None = None

    def compile(self, text: str, program: Program) -> Query:
        """The query in a text.

        Raises:
            ProgramError: with all errors of the query.
        """
        if self._compiler is None or self._compiler.program is not program:
            self._compiler = QueryCompiler(program)
        return self._compiler.compile(text)


def answer_query(query: Query, engine: Engine, run: Run, *, representatives: bool = False) -> Answer:
    """The answer to a query as things are now, expanded or over representatives.

    Raises:
        LimitError: a limit was reached.
    """
    reading = engine.snapshot()
    with watched(run):
        solutions = reading.evaluate(query, run, representatives=representatives)
    return Answer(query.answer, solutions, reading.dictionary)


def stream_answer(query: Query, engine: Engine, run: Run) -> Answer:
    """The same, expanded; its rows are computed when they are read, where the engine can do that."""
    reading = engine.snapshot()
    return Answer(query.answer, reading.stream(query, run), reading.dictionary)


def query_version(path: Path, number: int | None, text: str, *, representatives: bool = False) -> Answer:
    """The answer to a query about a version of a state directory, to be read once; only relations that it reads are loaded.

    Raises:
        ProgramError: with all errors of the query.
        StateError: there is no such state directory or version, or it is damaged.
    """
    from evermat.runtime.memory_engine import restored
    from evermat.runtime.saved_version import SavedVersion
    from evermat.store import open_reader

    with open_reader(path) as store:
        version = SavedVersion(store, number)
        query = QueryCompiler(version.program).compile(text)
        engine = restored(version, query.reads)
    if representatives:
        return answer_query(query, engine, Run(), representatives=True)
    return stream_answer(query, engine, Run())
