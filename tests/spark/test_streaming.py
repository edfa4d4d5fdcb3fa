"""Structured Streaming: every batch changes a materialisation once, and the changes of a state are a stream."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evermat
from evermat import Materialisation
from evermat.language import RelationNames, relation_names
from evermat.runtime.streams import change_source, data_source, structured_streaming
from evermat.runtime.streams.data_source import register_source
from evermat.spark.sink import ChangeFrames
from evermat.store import chunked_write, delta_table
from tests.support import oracle
from tests.support.environment import LASTING, LONG
from tests.support.states import explicit_of, facts_at, refused
from tests.support.updates import facts_of

pytestmark = pytest.mark.spark

PROGRAM = """
.decl edge(x:number, y:number) .decl path(x:number, y:number) .decl lone(x:number) .decl named(x:number, name:symbol) .decl on()
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lone(x) :- named(x, _), !path(_, x), on().
"""
EDGES = "op string, y long, x long"
Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "arriving"
    made.mkdir()
    return made


@pytest.fixture
def m(tmp_path: Path) -> Iterator[Materialisation]:
    with evermat.Program.parse(PROGRAM).materialise({"edge": [(1, 2), (2, 3)]}) as made:
        made.save(tmp_path / "state")
        yield made


def put(folder: Path, name: str, text: str) -> None:
    """A file that is whole when it appears; none is as old as another."""
    written = folder.parent / name
    written.write_text(text, encoding="utf-8")
    time = 1_700_000_000 + len(list(folder.iterdir()))
    os.utime(written, (time, time))
    written.rename(folder / name)


def put_rows(folder: Path, name: str, rows: Rows) -> None:
    put(folder, f"{name}.json", "".join(json.dumps(row) + "\n" for row in rows))


def edges(inserted: set[tuple[int, int]], deleted: set[tuple[int, int]] = frozenset()) -> Rows:
    return [{"op": op, "x": x, "y": y} for op, some in (("+", inserted), ("-", deleted)) for x, y in some]


def stream(spark: Any, folder: Path, schema: str = EDGES) -> Any:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def done(query: Any) -> None:
    query.awaitTermination()


def failed(query: Any) -> str:
    """What a query says that must fail."""
    with pytest.raises(Exception, match="STREAM_FAILED") as raised:
        query.awaitTermination()
    return str(raised.value)


def assert_recomputed(m: Materialisation) -> None:
    assert facts_of(m) == oracle.materialise(oracle.read(PROGRAM), explicit_of(m))


# --- rows ------------------------------------------------------------------------------------------------------


def test_every_batch_is_a_version_and_comes_once(spark: Any, m: Materialisation, folder: Path, tmp_path: Path) -> None:
    rng, explicit = Random(3), {1: {(1, 2), (2, 3)}}

    def more() -> None:
        inserted, deleted = ({(rng.randrange(6), rng.randrange(6)) for _ in range(3)} for _ in range(2))
        number = len(explicit)
        put_rows(folder, f"{number:02}", edges(inserted, deleted - inserted))
        explicit[number + 1] = (explicit[number] - deleted) | inserted

    def follow() -> None:
        frame = stream(spark, folder)
        done(m.follow(frame, relation="edge", checkpoint=tmp_path / "checkpoint", available_now=True))

    put_rows(folder, "nothing", [])
    more(), more(), more()
    follow()
    assert m.version == 4
    (stream_name,) = m.positions
    assert m.positions == {stream_name: "3"}  # and batch 0 has committed nothing

    # Spark did not come to note that the last batch was done: it comes again, and then another.
    for file in ("3", ".3.crc"):
        (tmp_path / "checkpoint" / "commits" / file).unlink()
    more()
    m.close()
    frame = stream(spark, folder)
    with evermat.open(tmp_path / "state", write=True) as again:
        query = again.follow(frame, relation="edge", checkpoint=tmp_path / "checkpoint", available_now=True)
        done(query)
        assert [progress["batchId"] for progress in query.recentProgress][:2] == [3, 4]
        assert again.version == 5
        assert again.positions == {stream_name: "4"}
        assert explicit_of(again)["edge"] == explicit[5]
    for number, facts in explicit.items():
        assert facts_at(tmp_path / "state", number) == oracle.materialise(oracle.read(PROGRAM), {"edge": facts})

    # Another checkpoint is another stream, whose first batch is not the first batch of the one before it.
    with evermat.open(tmp_path / "state", write=True) as again:
        query = again.follow(frame, relation="edge", checkpoint=tmp_path / "other", available_now=True)
        done(query)
        assert again.version == 9
        assert set(again.positions) == {stream_name, f"spark:{query.id}"}
        assert_recomputed(again)


def test_facts_on_a_cluster(spark: Any, folder: Path, tmp_path: Path) -> None:
    text = (
        PROGRAM if LONG else ".decl edge(x:number, y:number) .decl path(x:number, y:number) path(y, x) :- edge(x, y)."
    )
    program = evermat.Program.parse(text)
    with program.materialise({"edge": [(1, 2), (2, 3)]}, engine=spark, place="cluster") as m:
        assert m.on_cluster
        if LONG:
            m.save(tmp_path / "state")
        put_rows(folder, "a", edges({(3, 4)}, {(1, 2)}))
        frame = stream(spark, folder)
        done(m.follow(frame, relation="edge", checkpoint=tmp_path / "checkpoint", available_now=True))
        assert facts_of(m) == oracle.materialise(oracle.read(text), {"edge": {(2, 3), (3, 4)}})
        assert list(m.positions.values()) == ["0"]
        if LONG:
            with evermat.open(tmp_path / "state") as opened:
                assert (opened.version, opened.positions, facts_of(opened)) == (2, m.positions, facts_of(m))


def test_rows_of_many_relations_and_their_order(spark: Any, m: Materialisation, folder: Path, tmp_path: Path) -> None:
    rows = [
        {"op": "+", "relation": "named", "values": ["7", "tab\tand\nline"], "sequence": 1},
        {"op": "+", "relation": "named", "values": ["2", "two"], "sequence": 1},
        {"op": "-", "relation": "on", "values": [], "sequence": 5},
        {"op": "+", "relation": "on", "values": [], "sequence": 6},
        {"op": "+", "relation": "edge", "values": ["3", "1"], "sequence": 10},
        {"op": "-", "relation": "edge", "values": ["3", "1"], "sequence": 9},
        {"op": "-", "relation": "edge", "values": ["1", "2"], "sequence": 2},
    ]
    put_rows(folder, "a", rows)
    schema = "op string, relation string, values array<string>, sequence int"
    query = m.follow(stream(spark, folder, schema), checkpoint=tmp_path / "checkpoint", interval=0.1)
    query.processAllAvailable()
    assert m.version == 2
    assert explicit_of(m) == {
        "edge": {(2, 3), (3, 1)},
        "path": set(),
        "lone": set(),
        "named": {(7, "tab\tand\nline"), (2, "two")},
        "on": {()},
    }
    assert set(m["lone"]) == {(7,), (2,)}
    # One that cannot be: the query ends, and nothing has changed.
    put_rows(folder, "b", [*rows, {"op": "+", "relation": "edge", "values": ["1", "x"], "sequence": 1}])
    message = failed(query)
    assert "DataError: error[E306]: `x` in row 8, value 2 (`y`) is not of the type `number`" in message
    assert m.version == 2
    assert_recomputed(m)


def test_queries_without_an_end_take_turns(spark: Any, folder: Path, tmp_path: Path) -> None:
    """Two streams for one materialisation that is nowhere but here."""
    m = evermat.Program.parse(PROGRAM).materialise()
    other = tmp_path / "other"
    other.mkdir()
    queries = [
        m.follow(stream(spark, folder), relation="edge", checkpoint=tmp_path / "a"),
        m.follow(stream(spark, other, "op string, x long, name string"), relation="named", checkpoint=tmp_path / "b"),
    ]
    try:
        for number in range(3):
            put_rows(folder, str(number), edges({(number, number + 1)}))
            put_rows(other, str(number), [{"op": "+", "x": number, "name": "n"}])
        for query in queries:
            query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    assert {query.id for query in queries} == {name.removeprefix("spark:") for name in m.positions}
    assert set(m.positions.values()) == {"2"}
    assert_recomputed(m)
    assert len(m["path"]) == 6 and len(m["named"]) == 3


# --- rows that are wrong, without a query ------------------------------------------------------------------------


def schema_with(**types: str) -> Any:
    """The schema of a stream."""
    from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructField, StructType

    known = {"string": StringType(), "long": LongType(), "bool": BooleanType(), "texts": ArrayType(StringType())}
    return StructType([StructField(name, known[type_]) for name, type_ in types.items()])


def placed(told: str, place: str) -> str:
    """Errors, each with its place after the first line."""
    return re.sub(r"^(error.*)$", rf"\1\n --> {place}", told, flags=re.MULTILINE)


def relations() -> RelationNames:
    return relation_names(evermat.Program.parse(PROGRAM + ".decl odd(op:symbol)").compiled)


NOTE = (
    "\n  = note: a stream of changes has a column `op` with `+` and `-`, or `_change_type` as in a change data feed, and either the columns of the "
    "relation, or, for changes of any relations, `relation` and `values`, an array of strings; a column `sequence` of numbers, times or strings, "
    "or `_commit_version`, may say what comes last"
)


@pytest.mark.parametrize(
    ("relation", "columns", "told"),
    [
        (
            "edge",
            {"x": "long", "y": "long"},
            "error[E391]: there is no column `op` among `x`, `y`" + NOTE,
        ),
        (
            "edge",
            {"op": "long", "x": "long", "y": "long"},
            "error[E391]: the column `op` is of the type `bigint`" + NOTE,
        ),
        (
            "edge",
            {"op": "string", "x": "long", "z": "long"},
            "error[E315]: column `y` of `edge` is missing\n  = note: the columns here: `op`, `x`, `z`\n\n"
            "error[E316]: `z` is not a column of `edge`\n  = note: its columns: `x`, `y`",
        ),
        (
            "edge",
            {"op": "string", "y": "string", "x": "long"},
            "error[E314]: column 2 (`y`) is of the Arrow type `string`, but the column is `number`\n"
            "  = note: a `number` is read from integer columns and decimals without a fraction",
        ),
        (
            "edge",
            {"op": "string", "x": "long", "y": "long", "sequence": "bool"},
            "error[E391]: the column `sequence` is of the type `boolean`" + NOTE,
        ),
        (
            "odd",
            {"op": "string"},
            "error[E391]: `odd` has a column `op` itself, and can only be one of any relations" + NOTE,
        ),
        (
            None,
            {"op": "string", "relation": "string", "values": "string"},
            "error[E391]: the column `values` is of the type `string`" + NOTE,
        ),
        (
            None,
            {"op": "string", "relations": "string", "values": "texts"},
            "error[E391]: there is no column `relation` among `op`, `relations`, `values`"
            + NOTE
            + "\n  = help: did you mean `relations`?",
        ),
        (
            None,
            {"op": "string", "relation": "string", "values": "texts", "x": "long"},
            "error[E391]: `x` is not a column of a stream of changes of any relations" + NOTE,
        ),
    ],
)
def test_columns_that_do_not_fit(relation: str | None, columns: dict[str, str], told: str) -> None:
    chosen = None if relation is None else relations()[relation]
    assert refused(lambda: ChangeFrames.of(schema_with(**columns), chosen), 3) == placed(told, "the stream")


def changes(relation: str | None, rows: list[tuple[Any, ...]], columns: dict[str, str]) -> Any:
    known = relations()
    arrow = {"string": pa.string(), "long": pa.int64(), "texts": pa.list_(pa.string())}
    arrays = [pa.array([row[i] for row in rows], arrow[type_]) for i, type_ in enumerate(columns.values())]
    frames = ChangeFrames.of(schema_with(**columns), None if relation is None else known[relation])
    return frames.changes_of(pa.table(dict(zip(columns, arrays, strict=True))), 4, known)


PLAIN = {"op": "string", "x": "long", "y": "long"}
ORDERED = {**PLAIN, "sequence": "long"}
SPELLED = {"op": "string", "relation": "string", "values": "texts"}
NO_ORDER = "\n  = note: the rows of a batch have no order; a column `sequence` or `_commit_version` can say which of them comes last"


@pytest.mark.parametrize(
    ("relation", "columns", "rows", "told"),
    [
        (
            "edge",
            PLAIN,
            [("+", 1, 2), ("-", 3, 4), ("-", 1, 2)],
            "error[E392]: `edge(1, 2)` is both inserted and deleted" + NO_ORDER,
        ),
        (
            "edge",
            ORDERED,
            [("+", 1, 2, 5), ("-", 1, 2, 5)],
            "error[E392]: `edge(1, 2)` is both inserted and deleted with the same `sequence`" + NO_ORDER,
        ),
        (
            None,
            SPELLED,
            [("+", "on", []), ("-", "on", [])],
            "error[E392]: `on()` is both inserted and deleted" + NO_ORDER,
        ),
        (
            "edge",
            ORDERED,
            [("+", 1, 2, None)],
            "error[E313]: NULL in row 1, column `sequence`\n  = note: a fact has a value in every column",
        ),
        (
            "edge",
            PLAIN,
            [("+", 1, 2), ("+", 1, None)],
            "error[E313]: NULL in row 2, column 2 (`y`)\n  = note: a fact has a value in every column",
        ),
        (
            "edge",
            PLAIN,
            [("upsert", 1, 2), ("+", 1, 2), (None, 1, 2)],
            "error[E363]: `upsert` in row 1, column `op`, is not a change\n  = note: a row is inserted by `+`, `i`, `insert` or "
            "`update_postimage`, and deleted by `-`, `d`, `delete` or `update_preimage`\n\n"
            "error[E313]: NULL in row 3, column `op`\n  = note: a fact has a value in every column",
        ),
        (
            None,
            SPELLED,
            [("+", "edges", ["1", "2"])],
            "error[E330]: the program has no relation `edges`\n"
            "  = help: it stands in row 1, column `relation`; did you mean `edge`?",
        ),
        (
            None,
            SPELLED,
            [("+", None, ["1", "2"])],
            "error[E313]: NULL in row 1, column `relation`\n  = note: a fact has a value in every column",
        ),
        (
            None,
            SPELLED,
            [("+", "edge", ["1"])],
            "error[E304]: the change in row 1 has 1 value, but `edge` has 2 columns\n  = note: `y` is missing",
        ),
    ],
)
def test_rows_that_are_refused(relation: str | None, columns: dict[str, str], rows: list[Any], told: str) -> None:
    assert refused(lambda: changes(relation, rows, columns), 3) == placed(told, "batch 4")


@pytest.mark.parametrize("seed", range(200 if LONG else 20))
def test_the_last_of_ordered_rows_decides(seed: int) -> None:
    rng = Random(seed)
    size = rng.randrange(30)
    sequence = rng.sample(range(1000), size)
    rows = [(rng.choice("+-"), rng.randrange(3), rng.randrange(3), place) for place in sequence]
    last = {(x, y): op for op, x, y, _ in sorted(rows, key=lambda row: row[3])}
    found = changes("edge", rows, ORDERED)
    for op, chosen in (("+", found.insert), ("-", found.delete)):
        expected = {fact for fact, sign in last.items() if sign == op}
        told = chosen.get("edge")
        assert (set() if told is None else {tuple(row.values()) for row in told.to_pylist()}) == expected


FEED = {"x": "long", "y": "long", "_change_type": "string", "_commit_version": "long"}


def netted(relation: str, rows: list[tuple[Any, ...]], columns: dict[str, str]) -> tuple[set[Any], set[Any]]:
    found = changes(relation, rows, columns)
    inserted, deleted = (
        {tuple(row.values()) for row in side[relation].to_pylist()} if side else set()
        for side in (found.insert, found.delete)
    )
    return inserted, deleted


def test_a_change_data_feed_in_the_order_of_its_commits() -> None:
    rows = [
        (1, 2, "update_postimage", 7),  # the update of a column that is not read: the fact stays
        (1, 2, "update_preimage", 7),
        (3, 4, "delete", 9),
        (3, 4, "insert", 8),
        (5, 6, "insert", 9),
        (5, 6, "delete", 8),
        (7, 8, "update_preimage", 5),
        (7, 9, "update_postimage", 5),
        (7, 9, "INSERT", 6),
    ]
    expected = ({(1, 2), (5, 6), (7, 9)}, {(3, 4), (7, 8)})
    assert netted("edge", rows, FEED) == expected
    Random(1).shuffle(rows)
    assert netted("edge", rows, FEED) == expected
    # The time of a commit orders as well, where there is nothing else.
    assert netted("edge", rows, {**PLAIN_FEED, "_commit_timestamp": "long"}) == expected
    # Our own feed has other names.
    ours = [(x, y, "+" if "insert" in op.lower() or "post" in op else "-", at) for x, y, op, at in rows]
    assert netted("edge", ours, {"x": "long", "y": "long", "_op": "string", "_version": "long"}) == expected


PLAIN_FEED = {name: type_ for name, type_ in FEED.items() if name != "_commit_version"}


def test_a_feed_without_an_order() -> None:
    rows = [(1, 2, "i"), (3, 4, "D"), (5, 6, "I"), (5, 6, "insert")]
    assert netted("edge", rows, PLAIN_FEED) == ({(1, 2), (5, 6)}, {(3, 4)})
    said = refused(lambda: changes("edge", [*rows, (5, 6, "delete")], PLAIN_FEED), 3)
    assert said == placed("error[E392]: `edge(5, 6)` is both inserted and deleted" + NO_ORDER, "batch 4")


def test_columns_for_what_a_row_does_that_compete() -> None:
    said = refused(lambda: ChangeFrames.of(schema_with(**FEED, op="string"), relations()["edge"]), 3)
    what = "there are several columns for what a row does: `op` and `_change_type`"
    assert said == placed(f"error[E391]: {what}{NOTE}", "the stream")
    # A column of the relation is none of these.
    frames = ChangeFrames.of(schema_with(op="string", _change_type="string"), relations()["odd"])
    found = frames.changes_of(pa.table({"op": ["-"], "_change_type": ["insert"]}), 0, relations())
    assert found.insert["odd"].to_pylist() == [{"op": "-"}]
    # Of a sink, which inserts all rows without such a column.
    frames = ChangeFrames.of(schema_with(op="string"), relations()["odd"], signed=False)
    found = frames.changes_of(pa.table({"op": ["-"]}), 0, relations())
    assert found.insert["odd"].to_pylist() == [{"op": "-"}]
    said = refused(
        lambda: ChangeFrames.of(schema_with(x="long", y="long", opp="string"), relations()["edge"], signed=False), 3
    )
    assert said == placed("error[E316]: `opp` is not a column of `edge`\n  = note: its columns: `x`, `y`", "the stream")


def test_columns_that_are_called_like_ours() -> None:
    """A relation may have columns `relation`, `values` and `sequence`; one without columns has none but `op`."""
    text = ".decl r(relation:symbol, sequence:number) .decl v(values:number) .decl on()"
    known = relation_names(evermat.Program.parse(text).compiled)

    def read(name: str, rows: dict[str, list[Any]], **types: str) -> Any:
        found = ChangeFrames.of(schema_with(op="string", **types), known[name]).changes_of(pa.table(rows), 0, known)
        return {k: t.to_pylist() for k, t in found.insert.items()}, {k: t.num_rows for k, t in found.delete.items()}

    rows: dict[str, list[Any]] = {"op": ["+", "+", "-"], "sequence": [2, 1, 3], "relation": ["on", "r", "on"]}
    inserted = [{"relation": "on", "sequence": 2}, {"relation": "r", "sequence": 1}]
    assert read("r", rows, sequence="long", relation="string") == ({"r": inserted}, {"r": 1})
    assert read("v", {"op": ["-"], "values": [4]}, values="long") == ({}, {"v": 1})
    assert read("on", {"op": ["-", "-"]}) == ({}, {"on": 1})
    assert read("on", {"op": ["-", "+"], "sequence": [1, 2]}, sequence="long") == ({"on": [{}]}, {})


def test_what_cannot_be_followed(spark: Any, m: Materialisation, tmp_path: Path) -> None:
    plain = spark.createDataFrame([("+", 1, 2)], "op string, x long, y long")
    told = refused(lambda: m.follow(plain, relation="edge", checkpoint="c"), 3)
    assert told == (
        "error[E390]: this DataFrame cannot be followed: it is an ordinary one, which `update` takes\n"
        "  = note: create it by `spark.readStream`"
    )
    rate = spark.readStream.format("rate").load()
    told = refused(lambda: m.follow(rate, relation="edges", checkpoint="c"), 3)
    assert told == "error[E330]: the program has no relation `edges`\n  = help: did you mean `edge`?"
    with pytest.raises(evermat.ProgramError, match="there is no algorithm `quick`"):
        m.follow(rate, relation="edge", checkpoint="c", algorithm="quick")
    told = refused(lambda: m.follow_files(spark, "nowhere", checkpoint="c"), 3)
    assert told == "error[E301]: cannot read `nowhere`: there is no such folder\n  = note: changes are read from it"
    ops = rate.selectExpr("'+' op", "value x", "value y")
    with pytest.raises(ValueError, match="`available_now` ends when everything is processed: it has no `interval`"):
        m.follow(ops, relation="edge", checkpoint="c", available_now=True, interval=1)
    assert not (tmp_path / "c").exists()


# --- files -------------------------------------------------------------------------------------------------------

RDF = """
.prefix e: <http://example.org/>
.decl e:knows(x:term, y:term) .decl e:Person(x:term) .decl edge(x:number, y:number)
e:Person(x) :- e:knows(x, _).
"""


def knows(*pairs: str) -> str:
    node = "<http://example.org/{}>".format
    return "".join(f"{node(pair[0])} {node('knows')} {node(pair[1])} .\n" for pair in pairs)


def test_files_of_all_formats(spark: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash amid a batch leaves what was done, and the rest of it is done later; files that are wrong change nothing."""
    m = evermat.Program.parse(RDF).materialise()
    m.save(tmp_path / "state")

    def follow(checkpoint: str = "checkpoint", **options: Any) -> Any:
        return m.follow_files(spark, folder, checkpoint=tmp_path / checkpoint, available_now=True, **options)

    put(folder, "5 last.tsv", "-\tedge\t1\t2\n")
    put(folder, "1.tsv", "+\tedge\t1\t2\n+\tedge\t2\t3\n")
    put(folder, "2.jsonl", '{"op": "-", "relation": "edge", "values": [2, 3]}\n')
    put(folder, "3.del.nt", knows("ab"))
    put(folder, "3.add.nt", knows("ab", "bc"))
    pq.write_table(pa.table({"op": ["+"], "x": [8], "y": [9]}), folder.parent / "edge.parquet")
    (folder.parent / "edge.parquet").rename(folder / "edge.parquet")
    (folder / "_hidden").write_text("not looked at", encoding="utf-8")

    def crash(self: Any, m: Materialisation, updates: Any) -> None:
        carry_out(self, m, updates[:3])
        raise MemoryError("pretended")

    carry_out = structured_streaming.BatchProcessing.carry_out
    monkeypatch.setattr(structured_streaming.BatchProcessing, "carry_out", crash)
    assert "MemoryError: pretended" in failed(follow())
    assert m.version == 4
    (name,) = m.positions
    assert m.positions[name] == "0/2"
    assert len(m["<http://example.org/knows>"]) == 2  # what is inserted counts
    assert set(m["edge"]) == {(1, 2)}
    monkeypatch.undo()
    done(follow())
    assert (m.version, m.positions[name]) == (6, "0/4")
    assert set(m["edge"]) == {(8, 9)}
    assert len(m["<http://example.org/Person>"]) == 2

    put(folder, "6.tsv", "+\tedge\t5\t6\n")
    put(folder, "7.tsv", "+\tedge\t5\n+\tedge\t1\t1\n")
    put(folder, "8.tsv", "+\tedge\tx\t6\n")
    message = failed(follow())
    assert f"error[E304]: this change has 1 value, but `edge` has 2 columns\n --> {folder}/7.tsv:1:9\n" in message
    assert f"error[E306]: `x` in column 1 (`x`) is not of the type `number`\n --> {folder}/8.tsv:1:8\n" in message
    assert m.version == 6
    (folder / "7.tsv").write_text("+\tedge\t5\t7\n", encoding="utf-8")
    (folder / "8.tsv").write_text("-\tedge\t5\t7\n", encoding="utf-8")
    done(follow())
    assert (m.version, m.positions[name]) == (9, "1/2")
    assert set(m["edge"]) == {(8, 9), (5, 6)}

    # All at once, for another who begins.
    m.close()
    m = evermat.Program.parse(RDF).materialise()
    done(follow("other", coalesce=True))
    assert set(m["edge"]) == {(8, 9), (5, 6)}
    assert list(m.positions.values()) == ["0/7"]


def test_names_that_spark_misreads(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a {b,c} [d] * ? 100%20"
    folder.mkdir()
    m = evermat.Program.parse(PROGRAM).materialise()
    for number, name in enumerate(("ä b.tsv", "[1].tsv", "%20.tsv", "{1,2}.tsv", "*.tsv")):
        put(folder, name, f"+\tedge\t{number}\t{number}\n")
    done(m.follow_files(spark, folder, checkpoint=tmp_path / "checkpoint", available_now=True, files_per_batch=2))
    assert set(m["edge"]) == {(n, n) for n in range(5)}
    assert list(m.positions.values()) == ["2/0"]


# --- the source --------------------------------------------------------------------------------------------------


def reading(spark: Any, state: Path, relation: str, **options: Any) -> Any:
    register_source(spark)
    return spark.read.format("evermat").option("state", str(state)).option("relation", relation).options(**options)


def replayed(rows: list[Any]) -> set[tuple[Any, ...]]:
    """What changes come to, by their versions: no fact comes or goes twice in one."""
    facts: set[tuple[Any, ...]] = set()
    for *values, op, _ in sorted(map(tuple, rows), key=lambda row: (row[-1], row[-2] == "+")):
        assert (tuple(values) in facts) == (op == "-")
        (facts.remove if op == "-" else facts.add)(tuple(values))
    return facts


def test_changes_as_a_stream(spark: Any, m: Materialisation, tmp_path: Path) -> None:
    state = tmp_path / "state"
    m.update({"edge": [(3, 1)]}, {"edge": [(1, 2)]})
    m.update({"edge": [(4, 4)], "named": [(1, "n")], "on": [()]})
    m.close()
    evermat.vacuum(state, 2)
    register_source(spark)

    def consume(start: str = "earliest", name: str = "out", **trigger: Any) -> Any:
        frame = spark.readStream.format("evermat").option("state", str(state)).option("relation", "path")
        frame = frame.option("startingVersion", start).load()
        sink = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / f"of-{name}"))
        return sink.option("path", str(tmp_path / name)).trigger(**trigger or {"availableNow": True}).start()

    def consumed(name: str = "out") -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in pq.read_table(tmp_path / name, partitioning=None).to_pylist()]

    query = consume(processingTime="200 milliseconds")
    try:
        query.processAllAvailable()
        assert replayed(consumed()) == facts_at(state)["path"]
        assert {row[-1] for row in consumed()} == {2, 3}
        with evermat.open(state, write=True) as again:
            again.update({}, {"edge": [(3, 1), (4, 4)]})
            again.update({"named": [(2, "n")]})  # changes no path
            again.update({"edge": [(5, 6)]})
        query.processAllAvailable()
    finally:
        query.stop()
    assert replayed(consumed()) == facts_at(state)["path"] == {(2, 3), (5, 6)}
    some = reading(spark, state, "path", startingVersion=6).load()
    assert some.schema.simpleString() == "struct<x:bigint,y:bigint,_op:string,_version:bigint>"
    assert list(map(tuple, some.collect())) == [(5, 6, "+", 6)]
    if not LONG:
        return
    with evermat.open(state, write=True) as again:
        again.update({}, {"edge": [(2, 3)]})
    done(consume())
    assert replayed(consumed()) == facts_at(state)["path"] == {(5, 6)}
    # A query that falls behind what a vacuum has left.
    done(consume("6", "late"))
    assert set(consumed("late")) == {(5, 6, "+", 6), (2, 3, "-", 7)}
    with evermat.open(state, write=True) as again:
        for number in range(4):
            again.update({"edge": [(number, 7)]})
    evermat.vacuum(state, 2)
    with pytest.raises(Exception, match=r"error\[E506\]: version 8 is no longer kept: the state has versions 10 to 11"):
        done(consume("6", "late"))


@LASTING
def test_changes_at_once(spark: Any, m: Materialisation, tmp_path: Path) -> None:
    state = tmp_path / "state"
    m.update({"edge": [(3, 4)], "named": [(1, "n")], "on": [()]})
    m.update({}, {"edge": [(1, 2)]})

    def rows(relation: str, **options: Any) -> set[tuple[Any, ...]]:
        return set(map(tuple, reading(spark, state, relation, **options).load().collect()))

    every = [tuple(row.values()) for row in evermat.changes(state)["path"].to_pylist()]
    assert rows("path") == set(every)
    assert rows("path", startingVersion=2, endingVersion=2) == {row for row in every if row[-1] == 2}
    assert rows("on") == {("+", 2)}
    with pytest.raises(Exception, match=r"error\[E505\]: there is no version 0: the state has versions 1 to 3"):
        rows("path", startingVersion=0)
    with pytest.raises(Exception, match=r"error\[E330\]: the program has no relation `paths`"):
        reading(spark, state, "paths").load()


# --- the source, without Spark -----------------------------------------------------------------------------------


def options(**given: str) -> Any:
    from pyspark.sql.datasource import CaseInsensitiveDict

    return CaseInsensitiveDict(given)


def read_all(reader: Any, partitions: list[change_source.Range]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("most", [1, 2, 3, 64] if LONG else [3])
def test_ranges_of_versions(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However versions are divided among tasks and batches, the same is read."""
    monkeypatch.setattr(change_source, "_VERSIONS", most)
    rng, state = Random(most), tmp_path / "state"
    with evermat.Program.parse(PROGRAM + ".decl big(n:unsigned, f:float, _op:symbol)").materialise() as m:
        m.update({"edge": [(1, 2)]})
        m.save(state)
        for number in range(6):
            m.update(
                {"edge": [(rng.randrange(4), rng.randrange(4))], "big": [(2**64 - 1 - number, 0.5, "é")], "on": [()]},
                {"edge": [(rng.randrange(4), rng.randrange(4))], "on": [()] if number % 2 else []},
            )
    names, told, now = ("path", "big", "on"), evermat.changes(state), facts_at(state)
    for name in names:
        made = data_source.EvermatDataSource(options(State=str(state), relation=name))
        schema = made.schema()
        assert schema.names[-2:] == ["_op", "_version"]
        assert len(set(schema.names)) == len(schema.names)
        stream, plain = made.streamReader(schema), made.reader(schema)
        assert sum(not part.whole for part in plain.partitions()) == -(-6 // most)
        everything = read_all(plain, plain.partitions())
        assert sorted(everything) == sorted(zip(*told[name].to_pydict().values(), strict=True))
        assert replayed(everything) == now[name]
        offset, found = stream.initialOffset(), []
        for last in (1, 1, 4, 5, 7):
            end = {"version": last, "whole": False} if last > offset["version"] else offset
            found += read_all(stream, stream.partitions(offset, end))
            offset = end
        assert sorted(found) == sorted(everything)
        assert stream.latestOffset(offset, None) == offset
        assert stream.latestOffset({"version": 3, "whole": False}, None) == offset
    evermat.vacuum(state, 3)
    said = refused(lambda: stream.partitions({"version": 2, "whole": False}, offset))
    assert said == "error[E506]: version 3 is no longer kept: the state has versions 5 to 7"
    for name in names:  # now the oldest version is not the first
        plain = data_source.EvermatDataSource(options(state=str(state), relation=name)).reader(schema_of(state, name))
        assert replayed(read_all(plain, plain.partitions())) == now[name]


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_shares_of_files(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the files of a version are divided among tasks, the same is read, and by many tasks."""
    monkeypatch.setattr(change_source, "_ROWS", most)
    for module in (chunked_write, delta_table):
        monkeypatch.setattr(module, "PART_ROWS", 10)
    monkeypatch.setattr(chunked_write, "_SMALL_ROWS", 0)
    rng, state = Random(most), tmp_path / "state"
    text = ".decl big(n:unsigned, f:float, s:symbol) .decl small(n:number) small(n) :- small(n), n > 0. .decl none(x:number)"
    numbers = range(40)
    with evermat.Program.parse(text).materialise() as m:
        m.update({"big": [row_of(n) for n in numbers], "small": [(n,) for n in numbers]})
        m.save(state)
        for _ in range(3):
            changed = rng.sample(range(60), 12)
            m.update({"big": [row_of(n) for n in changed[:6]]}, {"big": [row_of(n) for n in changed[6:]]})
    told = evermat.changes(state)
    for oldest in (1, 3):
        evermat.vacuum(state, 5 - oldest)
        for name in ("big", "small", "none"):
            made = data_source.EvermatDataSource(options(state=str(state), relation=name))
            plain = made.reader(made.schema())
            ranges = plain.partitions()
            if name == "big" and most < 1000 and oldest == 1:  # a vacuum makes one file of several small ones
                shares = [part.share for part in ranges if part.share is not None]
                assert len(shares) >= (4 + 3 if most == 1 else 4)
                assert all(sum(file.rows for file in share.base) <= 10 for share in shares)
            first = [row[:-2] for row in read_all(plain, [part for part in ranges if part.whole])]
            assert len(first) == len(set(first))
            assert set(first) == facts_at(state, oldest).get(name, set())
            assert replayed(read_all(plain, ranges)) == facts_at(state).get(name, set())
            made = data_source.EvermatDataSource(options(state=str(state), relation=name, startingVersion=str(oldest)))
            plain = made.reader(made.schema())
            later = read_all(plain, plain.partitions())
            expected = (
                [row for row in zip(*told[name].to_pydict().values(), strict=True) if row[-1] >= oldest]
                if name in told
                else []
            )
            assert sorted(later) == sorted(expected)


def row_of(number: int) -> tuple[int, float, str]:
    return 2**64 - 1 - number, number / 8, f"s{number % 5}"


def test_a_batch_has_as_many_versions_as_are_allowed(tmp_path: Path, m: Materialisation) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

    for number in range(5):
        m.update({"edge": [(7, number)]})

    def made(**given: str) -> Any:
        source = data_source.EvermatDataSource(options(state=str(tmp_path / "state"), relation="path", **given))
        return source.streamReader(source.schema())

    reader = made(maxVersionsPerTrigger="2")
    limit, offset, ends = reader.getDefaultReadLimit(), reader.initialOffset(), []
    assert limit == ReadMaxFiles(2)
    while (end := reader.latestOffset(offset, limit)) != offset:
        offset = end
        ends.append(end["version"])
    assert ends == [2, 4, 6]
    assert made().getDefaultReadLimit() == ReadAllAvailable()
    assert made().latestOffset({"version": 0, "whole": True}, ReadAllAvailable())["version"] == 6
    for wrong in ("0", "many"):
        with pytest.raises(
            ValueError, match=f"`{wrong}` cannot be the `maxVersionsPerTrigger`: it is a number, at least 1"
        ):
            made(maxVersionsPerTrigger=wrong).getDefaultReadLimit()
    m.close()
    evermat.vacuum(tmp_path / "state", 1)
    assert made().latestOffset({"version": 1, "whole": False}, limit)["version"] == 6


def schema_of(state: Path, name: str) -> Any:
    return data_source.EvermatDataSource(options(state=str(state), relation=name)).schema()


def test_a_state_that_is_another(tmp_path: Path, m: Materialisation) -> None:
    made = data_source.EvermatDataSource(options(state=str(tmp_path / "state"), relation="path"))
    stream = made.streamReader(made.schema())
    told = refused(lambda: stream.latestOffset({"version": 3, "whole": False}, None))  # as one that was removed
    assert told == "error[E505]: there is no version 3: the state has only version 1"
    m.update(add_rules=".decl more(x:symbol)")
    m.close()
    with evermat.Program.parse(".decl path(x:symbol)").materialise({"path": [("a",)]}) as other:
        other.save(tmp_path / "state")
    told = refused(lambda: list(stream.read(change_source.Range(1, 1))))
    assert told == (
        f"error[E509]: cannot read `{tmp_path}/state`: `path` did not always have the columns that it has: start where it has them"
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, 'the option `state` is missing: .option("state", …)'),
        ({"state": "state"}, 'the option `relation` is missing: .option("relation", …)'),
        (
            {"startingVersion": "first"},
            "`first` cannot be the `startingVersion`: it is a number, `earliest` or `latest`",
        ),
        ({"startingVersion": "3"}, "error[E505]: there is no version 3: the state has only version 1"),
        ({"endingVersion": "-1"}, "`-1` cannot be the `endingVersion`: it is a number or `latest`"),
        ({"endingVersion": "2"}, "error[E505]: there is no version 2: the state has only version 1"),
        ({"relation": "paths"}, "error[E330]: the program has no relation `paths`\n  = help: did you mean `path`?"),
    ],
)
def test_options_that_cannot_be(given: dict[str, str], told: str, tmp_path: Path, m: Materialisation) -> None:
    known = {"state": str(tmp_path / "state"), "relation": "path"}
    made = data_source.EvermatDataSource(options(**(given if "is missing" in told else known | given)))
    with pytest.raises((ValueError, evermat.EvermatError)) as raised:
        made.reader(made.schema()).partitions()
    assert str(raised.value) == told


def test_where_a_stream_begins(tmp_path: Path, m: Materialisation) -> None:
    m.update({"edge": [(7, 8)]})

    def begins(**given: str) -> dict[str, Any]:
        made = data_source.EvermatDataSource(options(state=str(tmp_path / "state"), relation="path", **given))
        return made.streamReader(made.schema()).initialOffset()

    assert begins() == begins(startingVersion="earliest") == {"version": 0, "whole": True}
    assert begins(startingVersion="2") == {"version": 1, "whole": False}
    assert begins(startingVersion="latest") == begins(startingVersion="3") == {"version": 2, "whole": False}
    with pytest.raises(ValueError, match="a stream has no `endingVersion`: read the changes without `readStream`"):
        begins(endingVersion="2")
