"""Closures that Spark expands: the facts are those of the relation, each once, and nobody stores them."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from functools import reduce
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evermat
from evermat.columns.schemes.interval_scheme import ClosedRelation
from evermat.columns.schemes.union_scheme import UnionOfRelations
from evermat.columns.state.update import Update
from evermat.columns.storage.selection import KEPT, domain_of
from evermat.spark import closure_dataframe, dataframes
from evermat.spark.closure_dataframe import expand_sent, expanded_frame
from evermat.testing import state_of
from tests.support.environment import LASTING, LONG
from tests.support.frozen_tables import FrozenTables
from tests.support.schemes import use_schemes

pytestmark = pytest.mark.spark

PROGRAM = """
.decl e(x:number, y:number) .input e
.decl f(x:symbol, y:number) .input f
.decl g(x:number, y:unsigned) .input g
.decl h(x:unsigned, y:unsigned) .input h
.decl d(x:float, y:float) .input d
.decl n(x:symbol, y:symbol) .input n
.decl k(x:symbol, y:symbol) .input k

.decl both(x:number, y:number)        // transitive
both(x, y) :- e(x, y).
both(x, z) :- both(x, y), both(y, z).
.decl left(x:symbol, y:number)        // linear, and its sources are of another type
left(x, y) :- f(x, y).
left(x, z) :- left(x, y), e(y, z).
.decl right(x:number, y:unsigned)     // the same from behind
right(x, y) :- g(x, y).
right(x, z) :- e(x, y), right(y, z).
.decl right2(x:unsigned, y:unsigned)
right2(x, y) :- h(x, y).
right2(x, z) :- h(x, y), right2(y, z).
.decl floats(x:float, y:float)
floats(x, y) :- d(x, y).
floats(x, z) :- floats(x, y), floats(y, z).
.decl same(x:symbol, y:symbol)        // symmetric
same(x, y) :- n(x, y).
same(x, y) :- same(y, x).
same(x, z) :- same(x, y), same(y, z).
.decl in(x:symbol, y:symbol)          // two members of one closure, one turned around
.decl has(x:symbol, y:symbol)
in(x, y) :- n(x, y).
in(x, z) :- in(x, y), in(y, z).
in(x, y) :- has(y, x).
has(x, y) :- in(y, x).
.decl far(x:symbol, y:symbol)
far(x, y) :- k(x, y).
far(x, z) :- far(x, y), far(y, z).
.decl near(x:symbol, y:symbol)        // a union of closures and a table
near(x, y) :- in(x, y).
near(x, y) :- far(x, y).
near(x, y) :- n(x, y), k(y, x).
.decl any(x:symbol, y:symbol)         // a union of a union, of a closure in both directions, and of tables with facts in common
any(x, y) :- near(x, y).
any(x, y) :- has(x, y).
any(x, y) :- k(x, y).
any("extra", "fact").
.decl late(x:symbol, y:symbol)        // a linear closure, some facts of which another has
late(x, y) :- k(x, y).
late(x, z) :- late(x, y), n(y, z).
.decl mixed(x:symbol, y:symbol)
mixed(x, y) :- same(x, y).
mixed(x, y) :- late(x, y).
mixed(x, y) :- has(x, y).
mixed(x, y) :- far(x, y).
"""
CLOSURES = ("both", "left", "right", "right2", "floats", "same", "in", "has", "far", "late")
UNIONS = ("near", "any", "mixed")


def random_facts(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    chance = random.Random(seed)
    numbers = [*range(9), 2**62, -(2**63)]
    unsigned = [*range(9), 2**63, 2**64 - 1]
    symbols = [f"s{i}" for i in range(9)] + ["", "größe"]
    floats = [x / 4 for x in range(9)]
    columns = {
        "e": (numbers, numbers),
        "f": (symbols, numbers),
        "g": (numbers, unsigned),
        "h": (unsigned, unsigned),
        "d": (floats, floats),
        "n": (symbols, symbols),
        "k": (symbols, symbols),
    }
    return {
        name: [(chance.choice(xs), chance.choice(ys)) for _ in range(chance.randrange(14))]
        for name, (xs, ys) in columns.items()
    }


def materialised(seed: int, monkeypatch: pytest.MonkeyPatch) -> evermat.Materialisation:
    use_schemes(monkeypatch)
    m = evermat.Program.parse(PROGRAM).materialise(random_facts(seed))
    for name in CLOSURES:
        assert isinstance(state_of(m).tables[name].scheme, ClosedRelation), name
    for name in UNIONS:
        assert isinstance(state_of(m).tables[name].scheme, UnionOfRelations), name
    return m


def table_of(facts: Any) -> Any:
    rows = facts._rows()
    return rows._reading.table(rows.relation.name)


def frame_of(spark: Any, facts: Any) -> Any:
    return expanded_frame(spark, facts._rows().relation, table_of(facts), facts._rows().dictionary)


def rows_of(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(_plain, row)) for row in frame.collect())


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | float) else int(value)


def without_spark(facts: Any, table: Any = None) -> Counter[tuple[Any, ...]]:
    """What tasks and the driver would produce from a table, or that of the facts."""
    closures, others = closure_dataframe._leaves((table_of(facts) if table is None else table).scheme)
    found: Counter[tuple[Any, ...]] = Counter()
    for batch in closure_dataframe._listed_facts(closures, others, facts._rows().relation, facts._rows().dictionary):
        found.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for flipped, expansion in closure_dataframe._expansions(closures, facts._rows().relation, facts._rows().dictionary):
        sent = pickle.loads(pickle.dumps(expansion))
        for number in range(len(sent.shares)):
            for batch in sent.batches(number):
                for first, seconds in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    assert 0 < len(seconds) <= closure_dataframe._LIST
                    for second in map(_plain, seconds):
                        pair = (_plain(first), second)
                        found[pair[::-1] if flipped else pair] += 1
    return found


class Squares:
    """A made-up scheme, as a third one might be: x, x² for all x below a number, without a row for any; see `scheme.Scheme`."""

    name = "squares"
    nbytes = 0
    mentions = None

    def __init__(self, end: int) -> None:
        self._facts = np.array([np.arange(end), np.arange(end) ** 2])

    def leaves(self) -> tuple[Squares]:
        return (self,)

    def frozen(self, rows: Any, freeze: Any) -> Squares:
        return self

    def as_closure(self) -> None:
        return None

    def domain(self, truth: Any) -> int:
        return domain_of(truth)

    def is_changed(self, changed: Any) -> bool:
        return False

    def changed(self, kind: int) -> Any:
        return self._facts[:, :0]

    def kinds(self, facts: Any, n: int) -> Any:
        held = (facts[0, :n] < self._facts.shape[1]) & (facts[0, :n] >= 0) & (facts[0, :n] ** 2 == facts[1, :n])
        return np.where(held, KEPT, 0).astype(np.uint8)

    def holds(self, fact: Any) -> bool:
        return bool(self.kinds(fact, 1)[0])

    def scan(self, domain: int, chunk: int) -> Any:
        for first in range(0, self.count(domain), chunk):
            yield self._facts[:, first : first + chunk]

    def join(self, columns: tuple[int, ...], keys: Any, n: int, domain: int, chunk: int) -> Any:
        for fact in self._facts.T if domain & KEPT else ():
            same = (keys[:, :n] == fact[list(columns), np.newaxis]).all(axis=0)
            for position in np.flatnonzero(same).astype(np.int32):
                yield np.array([position], np.int32), fact[:, np.newaxis].copy()

    def counts(self, columns: tuple[int, ...], keys: Any, n: int, domain: int) -> Any:
        found = np.zeros(n, np.int64)
        for positions, _ in self.join(columns, keys, n, domain, 1):
            found[positions] += 1
        return found

    def count(self, domain: int) -> int:
        return self._facts.shape[1] if domain & KEPT else 0

    about = count


def test_a_third_scheme_needs_no_change_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself, in a union, and in a union of that union with closures: what is not a closure is listed by the driver, each fact once."""
    use_schemes(monkeypatch)
    program = evermat.Program.parse("""
        .decl e(x:number, y:number) .input e
        .decl s(x:number, y:number) .input s
        .decl closed(x:number, y:number)
        closed(x, y) :- e(x, y).
        closed(x, z) :- closed(x, y), closed(y, z).
        .decl near(x:number, y:number)
        near(x, y) :- s(x, y).
        near(x, y) :- e(x, y).
        .decl all(x:number, y:number)
        all(x, y) :- near(x, y).
        all(x, y) :- closed(x, y).
        all(7, 49).
    """)
    edges = [(1, 1), (2, 4), (4, 5), (5, 16)]
    m = program.materialise({"e": edges, "s": []})
    assert isinstance(table_of(m["closed"]).scheme, ClosedRelation)
    assert isinstance(table_of(m["near"]).scheme, UnionOfRelations)
    assert isinstance(table_of(m["all"]).scheme, UnionOfRelations)
    state_of(m).tables["s"].scheme = Squares(6)
    squares = {(x, x * x) for x in range(6)}
    expected = {"s": squares, "near": squares | {*edges}, "all": squares | {*m["closed"]} | {(7, 49)}}
    for name, facts in expected.items():
        assert without_spark(m[name]) == Counter(facts), name
        assert set(m[name]) == facts and len(m[name]) == len(facts), name
        assert all(fact in m[name] for fact in facts) and (5, 26) not in m[name], name
    frame = SimpleNamespace(schema=SimpleNamespace(fields=[]))
    rows: list[pa.Table] = []
    monkeypatch.setattr(dataframes, "to_frame", lambda _spark, table, _relation: rows.append(table) or frame)
    assert frame_of(None, m["s"]) is frame  # nothing is left for tasks
    assert Counter(zip(*(column.to_pylist() for column in rows[-1].columns), strict=True)) == Counter(squares)


@pytest.mark.parametrize("seed", range(25 if LONG else 6))
def test_every_fact_is_produced_once(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    m = materialised(seed, monkeypatch)
    if seed % 2:  # many shares, small batches, short lists
        monkeypatch.setattr(closure_dataframe, "_SHARE", 3)
        monkeypatch.setattr(closure_dataframe, "_PAIRS", 5)
        monkeypatch.setattr(closure_dataframe, "_LIST", 2)
    for name in CLOSURES + UNIONS:
        assert without_spark(m[name]) == Counter(set(m[name])), name
    update = random_facts(100 + seed)
    m.update(insert=update, delete=random_facts(seed) if seed % 3 else {})
    for name in CLOSURES + UNIONS:
        assert without_spark(m[name]) == Counter(set(m[name])), name


@pytest.mark.parametrize("seed", range(25 if LONG else 3))
def test_frozen_tables_have_what_was_committed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Also those that are captured in the middle of an update, and read after it."""
    m = materialised(seed, monkeypatch)
    frozen, expected = [], []
    commit = Update.commit

    def committing(update: Update, *result: Any) -> None:
        frozen.append(FrozenTables(state_of(m).tables))
        commit(update, *result)

    monkeypatch.setattr(Update, "commit", committing)
    for change in range(3):
        expected.append({name: Counter(m[name]) for name in (*CLOSURES, *UNIONS)})
        m.update(random_facts(100 * seed + change + 1), random_facts(seed))
    assert expected[0] != expected[1]
    for tables, facts in zip(frozen, expected, strict=True):
        for name, counted in facts.items():
            assert without_spark(m[name], tables.by_name[name]) == counted, name


def test_shares_are_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    monkeypatch.setattr(closure_dataframe, "_SHARE", 500)
    m = chain(100)
    closures, _ = closure_dataframe._leaves(table_of(m["p"]).scheme)
    ((flipped, expansion),) = closure_dataframe._expansions(
        closures, m["p"]._rows().relation, m["p"]._rows().dictionary
    )
    assert not flipped and len(expansion.shares) == 10
    assert sum(share.pairs for share in expansion.shares) == 4950
    assert all(350 <= share.pairs <= 650 for share in expansion.shares)
    for number, share in enumerate(expansion.shares):
        assert sum(len(batch["seconds"].flatten()) for batch in expansion.batches(number)) == share.pairs


def test_long_texts_make_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    monkeypatch.setattr(closure_dataframe, "_BYTES", 1000)
    program = evermat.Program.parse(CHAIN.replace("number", "symbol"))
    texts = [f"{i}" * 100 for i in range(10)]
    m = program.materialise({"e": list(pairwise(texts))})
    closures, _ = closure_dataframe._leaves(table_of(m["p"]).scheme)
    ((_, expansion),) = closure_dataframe._expansions(closures, m["p"]._rows().relation, m["p"]._rows().dictionary)
    assert expansion.chunk == 10
    assert without_spark(m["p"]) == Counter(set(m["p"]))


def test_every_fact_is_a_row(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    m = materialised(24, monkeypatch)
    monkeypatch.setattr(closure_dataframe, "_SHARE", 50)
    wanted: Counter[tuple[str, ...]] = Counter()
    texts = []
    for name in ("both", "left", "right", "any", "mixed"):
        facts = m[name]
        assert len(facts)
        frame = frame_of(spark, facts)
        assert frame.schema == dataframes.to_frame(spark, facts.to_arrow(), facts._rows().relation).schema
        wanted.update((name, str(x), str(y)) for x, y in facts)
        texts.append(frame.selectExpr(f"'{name}'", "string(x)", "string(y)"))
    assert rows_of(reduce(lambda one, other: one.union(other), texts)) == wanted


@LASTING
def test_nothing_to_expand(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    m = evermat.Program.parse(PROGRAM).materialise({"k": [("a", "b")], "n": []})
    closed, union = m["both"], m["near"]
    assert isinstance(table_of(closed).scheme, ClosedRelation) and len(closed) == 0
    assert frame_of(spark, closed).columns == ["x", "y"] and rows_of(frame_of(spark, closed)) == Counter()
    assert rows_of(frame_of(spark, union)) == Counter([("a", "b")])


@LASTING
def test_it_stays_as_it_was(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    m = chain(5)
    frame = frame_of(spark, m["p"])
    before = Counter(set(m["p"]))
    m.update(insert={"e": [(4, 9)]}, delete={"e": [(0, 1)]})
    assert rows_of(frame) == before != Counter(set(m["p"]))


def test_sql(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    m = materialised(24, monkeypatch)
    views = m.create_views(spark, "expanding_")
    counts = " union all ".join(f"select '{name}', count(*) from {views[name]}" for name in ("same", "has", "near"))
    assert rows_of(spark.sql(counts)) == Counter((name, len(m[name])) for name in ("same", "has", "near"))
    joined = spark.sql(f"select a.x, b.y from {views['both']} a join {views['both']} b on a.y = b.x where a.x != b.y")
    pairs = [(x, z) for x, y in m["both"] for other, z in m["both"] if y == other and x != z]
    assert pairs and rows_of(joined) == Counter(pairs)


# --- sizes -------------------------------------------------------------------------------------------------

CHAIN = """
.decl e(x:number, y:number) .input e
.decl p(x:number, y:number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), p(y, z).
"""


def chain(nodes: int) -> evermat.Materialisation:
    edges = pa.table({"x": np.arange(nodes - 1), "y": np.arange(1, nodes)})
    return evermat.Program.parse(CHAIN).materialise({"e": edges})


@LASTING
def test_a_closure_that_nobody_could_store(spark: Any) -> None:
    m = chain(10_000)
    frame = m["p"].to_spark(spark)
    assert len(m["p"]) == 49_995_000
    # Spark leaves out sources before it takes lists apart.
    assert frame.where("x = 9000 or x = 3").count() == 999 + 9_996


@LASTING
def test_spark_does_not_take_it_for_a_small_table(spark: Any) -> None:
    m = chain(3_000)
    frame = frame_of(spark, m["p"])
    few = spark.sql("select bigint(id) x from range(5, 8)")
    counted = frame.join(few, "x").groupBy("x").count()
    assert {tuple(row) for row in counted.collect()} == {(5, 2994), (6, 2993), (7, 2992)}
    assert estimated_bytes(frame) > max(10 << 20, 3 * len(m["p"]))  # from ten megabytes on a table is not broadcast


def estimated_bytes(frame: Any) -> int:
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_a_task_is_loaded_with_little() -> None:
    import subprocess
    import sys

    code = "import sys, evermat.spark.closure_dataframe; print([m for m in ('pyspark', 'evermat.io', 'evermat.spark.dataframes', 'evermat.columns.schemes') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pieces_become_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over Connect a large expansion comes in rows, in any order and in any batches."""
    use_schemes(monkeypatch)
    m = chain(20)
    closures, _ = closure_dataframe._leaves(table_of(m["p"]).scheme)
    ((_, expansion),) = closure_dataframe._expansions(closures, m["p"]._rows().relation, m["p"]._rows().dictionary)
    sent = pickle.dumps(expansion, protocol=5)
    pieces = [(0, place, sent[place * 100 :][:100]) for place in range(-(-len(sent) // 100))]
    random.Random(1).shuffle(pieces)
    columns = [pa.array(column) for column in zip(*pieces, strict=True)]
    whole = pa.RecordBatch.from_arrays(columns, names=["id", "place", "piece"])
    batches = [whole.slice(begin, 7) for begin in range(0, whole.num_rows, 7)]
    assert pa.Table.from_batches(expand_sent(batches)) == pa.Table.from_batches(expansion.batches(0))
    assert list(expand_sent([])) == []
