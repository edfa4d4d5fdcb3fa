"""Queries about a materialisation, evaluated by its engine."""

from __future__ import annotations

from pathlib import Path

from evermat.core import watched
from evermat.engine import Run
from evermat.language import Queries, Query
from evermat.runtime.answer import Answer
from evermat.runtime.engine import Engine


def answer_query(query: Query, engine: Engine, run: Run, *, representatives: bool = False) -> Answer:
    """The answer to a query as things are now, expanded or over representatives."""
    reading = engine.snapshot()
    with watched(run):
        solutions = reading.evaluate(query, run, representatives=representatives)
    return Answer(query.answer, solutions, reading.dictionary)


def stream_answer(query: Query, engine: Engine, run: Run) -> Answer:
    """The same, expanded; its rows are computed when they are read, where the engine can do that."""
    reading = engine.snapshot()
    return Answer(query.answer, reading.stream(query, run), reading.dictionary)


def query_version(path: Path, number: int | None, text: str, *, representatives: bool = False) -> Answer:
    """The answer to a query about a version of a state directory, to be read once; only relations that it reads are loaded."""
    from evermat.runtime.memory_engine import restored
    from evermat.runtime.saved_version import SavedVersion
    from evermat.store import open_reader

    with open_reader(path) as store:
        version = SavedVersion(store, number)
        query = Queries(version.program).compile(text)
        engine = restored(version, query.reads)
    if representatives:
        return answer_query(query, engine, Run(), representatives=True)
    return stream_answer(query, engine, Run())
