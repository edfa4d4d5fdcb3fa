"""The dictionary at scale, against a plain model of it."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evermat.errors import ResourceError, StateError
from evermat.spark import dictionary as module
from evermat.spark.dictionary import Dense, HashDictionary

pytestmark = pytest.mark.xdist_group("spark")


def frame(spark: Any, **columns: Any) -> Any:
    return spark.createDataFrame(pa.table({name: pa.array(values) for name, values in columns.items()}))


def few(symbol: Any, attempt: int) -> Any:
    """A hash with so few values that symbols collide all the time; later attempts have more."""
    from pyspark.sql.functions import abs as absolute
    from pyspark.sql.functions import lit, xxhash64

    return absolute(xxhash64(lit(attempt), symbol)) % (7 * 4**attempt)


def ids_of(dictionary: HashDictionary) -> dict[str, int]:
    rows = dictionary.frame.collect()
    found = {row.symbol: row.id for row in rows}
    assert len(found) == len(rows) == len(dictionary) == len(set(found.values()))
    return found


def check(spark: Any, dictionary: HashDictionary, symbols: list[str]) -> dict[str, int]:
    """The ids of all symbols, after checking that they come and go."""
    ids = ids_of(dictionary)
    given = frame(spark, n=list(range(len(symbols))), x=symbols, y=symbols[::-1])
    coded = dictionary.encode(given, ["x", "y"])
    assert coded.columns == ["n", "x", "y"] and dict(coded.dtypes)["x"] == "bigint"
    assert {(r.n, r.x, r.y) for r in coded.collect()} == {
        (n, ids[x], ids[y]) for n, (x, y) in enumerate(zip(symbols, symbols[::-1], strict=True))
    }
    decoded = dictionary.decode(coded, ["y", "x"])
    assert decoded.columns == given.columns and sorted(decoded.collect()) == sorted(given.collect())
    return ids


@pytest.mark.skipif(not os.environ.get("EVERMAT_LONG"), reason="takes long; EVERMAT_LONG=1 runs it")
def test_collisions_are_resolved_for_good(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(1)
    folder = tmp_path / "a [weird] {folder} ü"
    dictionary = HashDictionary(spark, folder, few)
    expected: set[str] = set()
    before: dict[str, int] = {}
    for size in (3, 25, 25):
        drawn = [f"s{rng.randrange(60)}" for _ in range(size)]
        middle = size // 2
        parts = [(frame(spark, x=drawn, y=[None, *drawn[1:]]), ["x", "y"]), (frame(spark, z=drawn[:middle]), ["z"])]
        added = dictionary.extend(parts)
        new = set(drawn) - expected
        assert added == len(new)
        expected |= new
        dictionary = HashDictionary(spark, folder, few)  # opened again
        ids = ids_of(dictionary)
        assert ids.keys() == expected
        assert before.items() <= ids.items(), "an id has changed"
        before = ids
    assert len(dictionary.exceptions) >= len(expected) - 7
    check(spark, dictionary, sorted(expected))


@pytest.mark.skipif(not os.environ.get("EVERMAT_LONG"), reason="takes long; EVERMAT_LONG=1 runs it")
def test_ids_are_hashes(spark: Any, tmp_path: Path) -> None:
    dictionary = HashDictionary(spark, tmp_path / "d")
    assert dictionary.frame.count() == len(dictionary) == 0
    assert dictionary.extend([]) == 0
    symbols = ["", "a", "größe", "a\x00b", "A", " a"]
    assert dictionary.extend([(frame(spark, x=symbols), ["x"]), (frame(spark, x=["a"], X=["b"]), ["X"])]) == 7
    ids = check(spark, dictionary, [*symbols, "b"])
    assert ids["a"] == spark.sql("select xxhash64('a')").collect()[0][0]
    assert not dictionary.exceptions
    assert dictionary.extend([(frame(spark, x=symbols), ["x"])]) == 0
    assert len(list((tmp_path / "d").iterdir())) == 2, "nothing is written if nothing is new"


@pytest.mark.skipif(not os.environ.get("EVERMAT_LONG"), reason="takes long; EVERMAT_LONG=1 runs it")
def test_columns_are_told_apart_by_case_and_null_stays(spark: Any, tmp_path: Path) -> None:
    dictionary = HashDictionary(spark, tmp_path / "d")
    dictionary.extend([(frame(spark, x=["a", "b"]), ["x"])])
    given = spark.sql("select 'a' as X, 'b' as x, string(null) as `z.z`")
    coded = dictionary.encode(given, ["x", "z.z"])
    ids = ids_of(dictionary)
    assert [tuple(row) for row in coded.collect()] == [("a", ids["b"], None)]
    assert [tuple(row) for row in dictionary.decode(coded, ["x", "z.z"]).collect()] == [("a", "b", None)]


def test_unknown_ids_are_not_passed_over(spark: Any, tmp_path: Path) -> None:
    dictionary = HashDictionary(spark, tmp_path / "d")
    dictionary.extend([(frame(spark, x=["a"]), ["x"])])
    with pytest.raises(Exception, match="the dictionary has no symbol with the id 5"):
        dictionary.decode(frame(spark, x=[5]), ["x"]).collect()
    with pytest.raises(StateError, match="there is no symbol with the id 5"):
        Dense(tmp_path / "d").dense(np.array([5]))


def test_what_was_not_finished_is_not_seen(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "d"
    dictionary = HashDictionary(spark, folder)
    dictionary.extend([(frame(spark, x=["a"]), ["x"])])

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HashDictionary, "_commit", crash)
        with pytest.raises(KeyboardInterrupt):
            dictionary.extend([(frame(spark, x=["b"]), ["x"])])
    assert len(list(folder.glob("extension-*"))) == 2
    again = HashDictionary(spark, folder)
    assert ids_of(again).keys() == {"a"}
    assert again.extend([(frame(spark, x=["b", "c"]), ["x"])]) == 2
    assert len(list(folder.glob("extension-*"))) == 2 and ids_of(again).keys() == {"a", "b", "c"}

    with monkeypatch.context() as patch:
        patch.setattr(module, "_rows", lambda files: 0)
        with pytest.raises(ResourceError, match="E621"):
            again.extend([(frame(spark, x=["d"]), ["x"])])
    assert ids_of(again).keys() == {"a", "b", "c"}


def test_damage_is_told(spark: Any, tmp_path: Path) -> None:
    folder, copy = tmp_path / "d", tmp_path / "copy"
    dictionary = HashDictionary(spark, folder)
    dictionary.extend([(frame(spark, x=["a", "b"]), ["x"])])

    def damaged(harm: Any) -> str:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        harm()
        with pytest.raises(StateError) as caught:
            HashDictionary(spark, copy)
        with pytest.raises(StateError):
            Dense(copy)
        return str(caught.value)

    def files() -> list[Path]:
        return sorted(copy.glob("extension-*/part-*"))

    manifest = copy / "dictionary.json"
    assert "it has 0 rows, not 2" in damaged(lambda: [file.unlink() for file in files()])
    assert "is damaged" in damaged(lambda: files()[0].write_bytes(b"PAR1 no more"))
    assert "it is no list of extensions" in damaged(lambda: manifest.write_text("[]"))
    assert "its format is 2, not 1" in damaged(lambda: manifest.write_text(json.dumps({"format": 2})))


def test_dense_ids(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    dictionary = HashDictionary(spark, folder, few)
    dictionary.extend([(frame(spark, x=[f"s{i}" for i in range(20)]), ["x"])])
    never_null = spark.range(10, 30).selectExpr("'s' || id as x")  # which Spark also says of its files
    dictionary.extend([(never_null, ["x"])])
    ids, dense = ids_of(dictionary), Dense(folder)
    symbols = sorted(ids)
    hashed = np.array([ids[symbol] for symbol in symbols])
    numbers = dense.dense(hashed)
    assert sorted(numbers.tolist()) == list(range(30))
    assert dense.dictionary.decode(numbers) == symbols
    assert dense.hashed(numbers).tolist() == hashed.tolist()
    assert Dense(tmp_path / "none").dense(np.empty(0, np.int64)).tolist() == []
