"""Queries about a materialisation, evaluated by its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.columns import Solutions
from evermat.core import watched
from evermat.engine import Run
from evermat.language import Queries, Query
from evermat.runtime.engine import EngineSnapshot
from evermat.runtime.results.answer import Answer

if TYPE_CHECKING:
    from evermat.store import Location


def answer_query(query: Query, reading: EngineSnapshot, run: Run, *, representatives: bool = False) -> Answer:
    """The answer to a query about a version, expanded or over representatives."""
    with watched(run):
        solutions = reading.evaluate(query, run, representatives=representatives)
    return _answer(query, solutions, reading)


def stream_answer(query: Query, reading: EngineSnapshot, run: Run) -> Answer:
    """The same, expanded; its rows are computed when they are read, where the engine can do that."""
    return _answer(query, reading.stream(query, run), reading)


def _answer(query: Query, solutions: Solutions, reading: EngineSnapshot) -> Answer:
    own = solutions.dictionary
    return Answer(query.answer, solutions, reading.dictionary if own is None else own)


def query_version(path: Location, number: int | None, text: str, run: Run, *, representatives: bool = False) -> Answer:
    """The answer to a query about a version of a state directory, to be read once; only relations that it reads are loaded."""
    from evermat.runtime.engines.memory_engine import restored
    from evermat.runtime.states.saved_version import SavedVersion
    from evermat.store import VersionReader, read_state

    def load(store: VersionReader) -> tuple[Query, EngineSnapshot]:
        version = SavedVersion(store, number)
        query = Queries(version.program).compile(text)
        return query, restored(version, query.reads).snapshot()

    with watched(run):
        query, reading = read_state(path, load)
    if representatives:
        return answer_query(query, reading, run, representatives=True)
    return stream_answer(query, reading, run)
