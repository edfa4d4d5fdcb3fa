"""Micro-batches that executors check and net: the same changes as in the driver, and the same refusals."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat.io import FileChanges
from evermat.language import RelationNames, relation_names
from evermat.runtime.streams import structured_streaming
from evermat.spark import changes_by_tasks
from evermat.spark.sink import ChangeFrames
from tests.spark.test_streaming import PROGRAM, done, edges, failed, folder, put_rows, stream
from tests.support import oracle
from tests.support.environment import LONG
from tests.support.updates import facts_of

pytestmark = pytest.mark.spark
__all__ = ["folder"]

TYPED = """
.decl r(u:unsigned, f:float, s:symbol, t:term, n:number) .decl on() .decl edge(x:number, y:number)
"""
Found = tuple[dict[str, set[tuple[Any, ...]]], dict[str, set[tuple[Any, ...]]]]


def names_in(text: str) -> RelationNames:
    return relation_names(evermat.Program.parse(text).compiled)


def in_driver(frames: ChangeFrames, batch: Any, known: RelationNames) -> Found:
    found: FileChanges = frames.changes_of(batch.toArrow(), 4, known)
    both = (
        {
            name: {tuple(row.values()) if known[name].columns else () for row in table.to_pylist()}
            for name, table in side.items()
        }
        for side in (found.insert, found.delete)
    )
    return tuple(both)  # type: ignore[return-value]


def by_executors(frames: ChangeFrames, batch: Any, known: RelationNames) -> Found:
    with changes_by_tasks(frames, batch, 4, known) as found:
        return tuple(
            {name: rows for name, frame in side.items() if (rows := {plain(row) for row in frame.collect()})}
            for side in found
        )


def plain(row: Any) -> tuple[Any, ...]:
    return tuple(int(value) if type(value).__name__ == "Decimal" else value for value in row)


def compare(spark: Any, rows: list[Any], schema: str, relation: str | None, text: str = TYPED) -> Found | str:
    """What both find, which has to be the same, as are errors but for their rows."""
    known = names_in(text)
    batch = spark.createDataFrame(rows, schema).repartition(3)
    frames = ChangeFrames.of(batch.schema, None if relation is None else known[relation])
    try:
        expected = in_driver(frames, batch, known)
    except evermat.DataError as error:
        with pytest.raises(evermat.DataError) as raised:
            by_executors(frames, batch, known)
        kinds = {problem.kind.code for problem in error.problems}
        assert {problem.kind.code for problem in raised.value.problems} == kinds
        return str(raised.value)
    found = by_executors(frames, batch, known)
    assert found == expected
    return found


@pytest.mark.parametrize("seed", range(20 if LONG else 2))
def test_ordered_rows(spark: Any, seed: int) -> None:
    rng = Random(seed)
    rows = [
        (
            rng.choice(["insert", "delete", "update_preimage", "update_postimage"]),
            rng.randrange(4),
            rng.randrange(4),
            rng.randrange(9),
        )
        for _ in range(60)
    ]
    found = compare(spark, rows, "_change_type string, y long, x int, _commit_version long", "edge")
    assert found[0] and found[1]
    rows += [("+", 1, 1, 9), ("-", 1, 1, 9)]
    said = compare(spark, rows, "op string, x long, y long, sequence long", "edge")
    assert "with the same `sequence`" in said


def test_values_of_all_types(spark: Any) -> None:
    one = "http://example.org/a"
    rows = [
        ("+", 2**64 - 1, -0.0, "a\tb", f"<{one}>", 1, "b"),
        ("-", 2**64 - 1, 0.0, "a\tb", f"<{one}>", 1, "a"),
        ("+", 1, 0.1, "é", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', -(2**63), "c"),
        ("-", 1, 0.1, "é", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', -(2**63), "d"),
    ]
    schema = "op string, u decimal(20,0), f double, s string, t string, n long, sequence string"
    from decimal import Decimal

    rows = [(op, Decimal(u), *rest) for op, u, *rest in rows]  # type: ignore[misc]
    found = compare(spark, rows, schema, "r")
    assert len(found[0]["r"]) == 1 and len(found[1]["r"]) == 1
    assert compare(spark, rows[:1], schema, "r")[0]["r"]


def test_rows_of_any_relation(spark: Any) -> None:
    schema = "op string, relation string, values array<string>, sequence int"
    rows = [
        ("+", "on", [], 1),
        ("-", "on", [], 2),
        ("+", "r", ["18446744073709551615", "1e3", "x y", "<a:b>", "0x10"], 1),
        ("-", "r", ["18446744073709551615", "1000", "x y", "<a:b>", "16"], 0),
        ("-", "edge", ["1", "2"], 0),
    ]
    inserted, deleted = compare(spark, rows, schema, None)
    assert inserted == {"r": {(2**64 - 1, 1000.0, "x y", "<a:b>", 16)}}
    assert deleted == {"on": {()}, "edge": {(1, 2)}}
    assert "`on()` is both inserted and deleted with the same" in compare(
        spark, [*rows, ("+", "on", [], 2)], schema, None
    )
    assert "no relation `edg`" in compare(spark, [*rows, ("+", "edg", ["1", "2"], 1)], schema, None)
    assert compare(spark, [("+", "edge", ["1", "2"], 1)], schema, None) == ({"edge": {(1, 2)}}, {})


def test_facts_without_columns_or_order(spark: Any) -> None:
    assert compare(spark, [("+",), ("i",)], "op string", "on") == ({"on": {()}}, {})
    assert "`on()` is both inserted and deleted" in compare(spark, [("+",), ("-",)], "op string", "on")
    rows = [("+", 1, 2), ("-", 3, 4), ("+", 1, 2)]
    assert compare(spark, rows, "op string, x long, y long", "edge") == ({"edge": {(1, 2)}}, {"edge": {(3, 4)}})
    assert "`edge(3, 4)` is both" in compare(spark, [*rows, ("+", 3, 4)], "op string, x long, y long", "edge")
    assert "NULL in a row, column 2 (`y`)" in compare(spark, [("+", 1, None)], "op string, x long, y long", "edge")
    assert "`?` in a row, column `op`, is not a change" in compare(
        spark, [("?", 1, 2)], "op string, x long, y long", "edge"
    )


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_a_large_batch_is_one_update(
    place: str, spark: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured_streaming, "FEW_ROWS", 3)
    taken: list[Any] = []
    changes_of = ChangeFrames.changes_of
    monkeypatch.setattr(
        ChangeFrames,
        "changes_of",
        lambda self, rows, *rest: taken.append(rows.num_rows) or changes_of(self, rows, *rest),
    )
    text = (
        PROGRAM if LONG else ".decl edge(x:number, y:number) .decl path(x:number, y:number) path(y, x) :- edge(x, y)."
    )
    program = evermat.Program.parse(text)
    with program.materialise({"edge": [(1, 2), (2, 3)]}, engine=spark, place=place) as m:
        assert m.on_cluster == (place == "cluster")
        put_rows(folder, "1", edges({(3, 4), (4, 5)}))
        put_rows(folder, "2", edges({(n, n + 1) for n in range(10, 14)}, {(1, 2), (3, 4)}))
        done(m.follow(stream(spark, folder), relation="edge", checkpoint=tmp_path / "c", available_now=True))
        expected = {(2, 3), (4, 5), *((n, n + 1) for n in range(10, 14))}
        assert facts_of(m) == oracle.materialise(oracle.read(text), {"edge": expected})
        assert list(m.positions.values()) == ["1"]
        assert taken == [2]
        put_rows(folder, "3", [*edges({(n, n) for n in range(9)}), {"op": None, "x": 1, "y": 1}])
        query = m.follow(stream(spark, folder), relation="edge", checkpoint=tmp_path / "c", available_now=True)
        assert "error[E313]: NULL in a row, column `op`\n --> batch 2" in failed(query)
        assert set(m["edge"]) == expected
