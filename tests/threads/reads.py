"""Operations that read: each checks that what it reads is of one version, and of one that it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import evermat
from tests.threads.ledger import Mismatch, Window, as_set
from tests.threads.workload import Facts, Version, version_of
from tests.threads.world import Source, World

Read = Callable[[Source, Random], Iterator[None]]

LIMITS: list[dict[str, Any]] = [{}, {}, {"limit_seconds": 600.0}]
_PAUSE = 0.15  # how likely others come between two rows


def _relation(source: Source, rng: Random) -> str:
    return rng.choice(source.world.workload.always())


def iterate(source: Source, rng: Random) -> Iterator[None]:
    """Reads a relation row by row; the first step decides about the version."""
    name, found = _relation(source, rng), []
    window = source.window()
    for row in source.facts[name]:
        window.end()
        found.append(row)
        if source.steady and rng.random() < _PAUSE:
            yield
    window.claim(f"iteration of {name}", as_set(found), lambda facts: facts[name])


def drop_iteration(source: Source, rng: Random) -> Iterator[None]:
    """Begins to read and does not end; what was read belongs to one version."""
    name = _relation(source, rng)
    window = source.window()
    rows = iter(source.facts[name])
    found = {row for row, _ in zip(rows, range(rng.randint(1, 5)), strict=False)}
    window.end()
    if source.steady:
        yield
    del rows
    window.claim(f"the first rows of {name}", True, lambda facts: found <= facts[name])


def count(source: Source, rng: Random) -> Iterator[None]:
    """Counts a relation."""
    name = _relation(source, rng)
    window = source.window()
    found = len(source.facts[name])
    window.claim(f"len of {name}", found, lambda facts: len(facts[name]))
    yield


def look_up(source: Source, rng: Random) -> Iterator[None]:
    """Looks for a fact, which may have symbols that nobody knows."""
    name = _relation(source, rng)
    window = source.window()
    some = sorted(source.world.workload.facts(rng.choice([window.low, (0, 0, 0)]))[name])
    row = rng.choice(some) if some else ()
    if rng.random() < 0.2:
        row = tuple(f"{value}{rng.random()}" if isinstance(value, str) else value for value in row)
    found = row in source.facts[name]
    window.claim(f"{row} in {name}", found, lambda facts: row in facts[name])
    yield


def _as_arrow(rows: Any) -> Iterable[pa.Table]:
    return [rows.to_arrow()]


def _as_pandas(rows: Any) -> Iterable[pa.Table]:
    return [pa.Table.from_pandas(rows.to_pandas(), preserve_index=False)]


def _as_polars(rows: Any) -> Iterable[pa.Table]:
    return [rows.to_polars().to_arrow()]


def _as_stream(rows: Any) -> Iterable[pa.Table]:
    return [pa.table(rows)]


def _as_batches(rows: Any) -> Iterable[pa.Table]:
    return (pa.Table.from_batches([batch]) for batch in rows.batches())


EXPORTS = (_as_arrow, _as_pandas, _as_polars, _as_stream, _as_batches)


def rows_of(table: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def export_rows(source: Source, rng: Random) -> Iterator[None]:
    """Reads a relation with columns as Arrow, pandas or polars."""
    name, form = _relation(source, rng), rng.choice(EXPORTS)
    if name == "connected":
        name = "path"
    window, found = source.window(), []
    for table in form(source.facts[name]):
        window.end()
        found += rows_of(table)
        if source.steady and rng.random() < _PAUSE:
            yield
    window.claim(f"{form.__name__} of {name}", as_set(found), lambda facts: facts[name])


def ask(source: Source, rng: Random) -> Iterator[None]:
    """Asks a query, and reads its answer later."""
    question = rng.choice(source.world.workload.questions)
    window = source.window()
    answer = source.facts.query(question.text, **rng.choice(LIMITS))
    window.end()
    if rng.random() < 0.5:
        yield
    found = as_set(answer)
    window.claim(question.text, found, lambda facts: set(question.answer(facts)))
    if len(answer) != len(found) or bool(answer) != bool(found) or not all(row in answer for row in found):
        raise Mismatch(f"{question.text}: {len(answer)} rows, of which {len(found)} were found")
    if answer.columns and as_set(rows_of(answer.to_arrow())) != found:
        raise Mismatch(f"{question.text}: as Arrow, the answer is another one")


def ask_batches(source: Source, rng: Random) -> Iterator[None]:
    """Asks a query whose answer is computed while it is read."""
    question = rng.choice([one for one in source.world.workload.questions if "now(p" in one.text])
    window, found = source.window(), []
    for batch in source.facts.query_batches(question.text, **rng.choice(LIMITS)):
        window.end()
        found += rows_of(batch)
        if source.steady:
            yield
    window.claim(f"batches of {question.text}", as_set(found), lambda facts: set(question.answer(facts)))


def drop_batches(source: Source, rng: Random) -> Iterator[None]:
    """Asks a query and leaves after the first batch."""
    question = rng.choice([one for one in source.world.workload.questions if "now(p" in one.text])
    window = source.window()
    batches = iter(source.facts.query_batches(question.text))
    first = next(batches, None)
    window.end()
    found = set() if first is None else set(rows_of(first))
    if source.steady:
        yield
    del batches
    window.claim(f"the first batch of {question.text}", True, lambda facts: found <= set(question.answer(facts)))


def figures(source: Source, rng: Random) -> Iterator[None]:
    """Reads what is printed and reported: it has the sizes of all relations of one version."""
    del rng
    window = source.window()
    names = set(source.facts)
    window.claim("names", names, set)
    yield


def print_all(source: Source, rng: Random) -> Iterator[None]:
    """The text of a materialisation has the sizes of one version."""
    del rng
    window = source.window()
    text = repr(source.facts)
    sizes = dict(one.rsplit(" ", 1) for one in text.strip("<>").split(": ", 1)[1].split(", "))
    window.claim("printed sizes", sizes, lambda facts: {name: str(len(rows)) for name, rows in facts.items()})
    yield


def report(source: Source, rng: Random) -> Iterator[None]:
    """The sizes among the statistics are those of one version."""
    del rng
    window = source.window()
    stats = source.facts.stats
    if source.world.path is None:  # those of an opened version are what they were
        window.claim("reported sizes", stats["facts"], lambda facts: {name: len(rows) for name, rows in facts.items()})
    yield


def _triples(facts: Facts) -> set[tuple[str, str, str]]:
    return {(x, name, y) for name, rows in facts.items() if name.startswith("<") for x, y in rows}


def read_triples(source: Source, rng: Random) -> Iterator[None]:
    """Reads the facts of RDF."""
    window, found = source.window(), []
    for table in source.facts.triples():
        window.end()
        found += rows_of(table)
        if source.steady and rng.random() < 0.5:
            yield
    window.claim("triples", as_set(found), _triples)


def write_rdf(source: Source, rng: Random) -> Iterator[None]:
    """Writes the facts of RDF to a file."""
    del rng
    path = source.world.file(".nt")
    window = source.window()
    source.facts.export(path)
    found = as_set(tuple(line.removesuffix(" .").split(" ")) for line in path.read_text("utf-8").splitlines())
    path.unlink()
    window.claim("exported triples", found, _triples)
    yield


def write_outputs(source: Source, rng: Random) -> Iterator[None]:
    """Writes the outputs of the program: all files are of one version."""
    del rng
    folder = source.world.file("")
    folder.mkdir()
    window = source.window()
    source.facts.write_outputs(folder)
    found = {
        file.stem: as_set(tuple(line.split("\t")) for line in file.read_text("utf-8").splitlines())
        for file in folder.iterdir()
    }
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    window.claim(
        "written outputs", found, lambda facts: {name: {tuple(map(str, row)) for row in facts[name]} for name in found}
    )
    yield


def equal_terms(source: Source, rng: Random) -> Iterator[None]:
    """Asks which terms are equal to one."""
    term = f"<http://e/{rng.randrange(20)}>"
    window = source.window()
    found = source.facts.names(term)

    def names(facts: Facts) -> list[str]:
        same = "<http://www.w3.org/2002/07/owl#sameAs>"
        return sorted({y for x, y in facts[same] if x == term} | {term})

    window.claim(f"names of {term}", found, names)
    window = source.window()
    window.claim(f"representative of {term}", source.facts.representative(term), lambda facts: names(facts)[0])
    yield


READS: dict[Read, int] = {
    iterate: 6,
    drop_iteration: 1,
    count: 2,
    look_up: 3,
    export_rows: 3,
    ask: 10,
    ask_batches: 3,
    drop_batches: 1,
    figures: 1,
    print_all: 1,
    report: 1,
}
RDF: dict[Read, int] = {read_triples: 1, write_rdf: 1, write_outputs: 1}
OF_SNAPSHOTS = {read for read in READS if read not in (print_all, report)} | set(RDF)


def changing(read: Read) -> Callable[[World, Random], Iterator[None]]:
    """The operation that reads the materialisation."""

    @wraps(read)
    def operation(world: World, rng: Random) -> Iterator[None]:
        yield from read(Source.changing(world), rng)

    return operation


def holding_snapshots(reads: dict[Read, int]) -> Callable[[World, Random], Iterator[None]]:
    """The operation that pins a version and reads it in several ways."""
    usable = {read: weight for read, weight in reads.items() if read in OF_SNAPSHOTS}

    def hold_snapshot(world: World, rng: Random) -> Iterator[None]:
        window = world.window()
        m: Any = world.m
        with m.snapshot() as s:
            window.end()
            version = world.marked(s, window)
            known = s.version is not None or m.version is not None  # one that is closed has no state directory any more
            if s.version != world.number_of(version) and world.path is not None and m is world.m and known:
                raise Mismatch(f"snapshot {s.version} is of version {version}")
            source = Source.fixed(world, s, version)
            for read in rng.choices(list(usable), list(usable.values()), k=rng.randint(1, 5)):
                yield
                yield from read(source, rng)
            if set(s) != world.workload.names(version):
                raise Mismatch(f"{set(s)} are not the relations of {version}")
        with pytest.raises(evermat.EvermatError):
            s.query("now(p, n)")

    return hold_snapshot


def checked(world: World, facts: Any, version: Version, names: Iterable[str]) -> None:
    """Raises `Mismatch` unless relations are those of a version."""
    window = Window(world.ledger, world.ledger.memory, version)
    for name in names:
        window.claim(name, as_set(facts[name]), lambda found, name=name: found[name])  # type: ignore[misc]


def checked_whole(world: World, facts: Any) -> Version:
    """Raises `Mismatch` unless all relations are those of the version that the markers show."""
    version = version_of(facts["now"])
    checked(world, facts, version, world.workload.names(version))
    return version
