"""Symbols ↔ 64-bit ids at scale, for relations that no single machine holds.

The id of a symbol is its xxHash64 as Spark computes it (`xxhash64` of the one column, whose seed is 42), so encoding needs no join, and a
dictionary grows without renumbering. Should two symbols have the same hash, then one of them has another id: an exception, kept in a list.
An id never changes once a symbol has it; it is the newcomer that becomes the exception.

A dictionary is a folder that the driver and all executors see:

    dictionary.json     the extensions, with their numbers of rows, and the exceptions; written last, and whole or not at all
    extension-…/        Parquet files with the columns `id` and `symbol` (and perhaps `taken`, which only its writer needed);
                        one folder for each extension, never changed

An extension that `dictionary.json` does not name is one that was not finished. There is one writer at a time.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evermat import errors
from evermat.columns.dictionary import Dictionary, Ids
from evermat.errors import Problem, ResourceError
from evermat.store.disk import damaged, put, read, writing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    Hash = Callable[[Column, int], Column]

_MANIFEST = "dictionary.json"
_PREFIX = "extension-"
_FORMAT = 1
_SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("symbol", pa.string())])
_SPARK_SCHEMA = "id long, symbol string"
_BROADCAST = 200_000  # symbols that are sent to every executor rather than shuffled
_ATTEMPTS = 8  # ids that are tried for an exception in one job
_GLOB = re.compile(r"([\\{}\[\]*?])")


def xxhash(symbol: Column, attempt: int) -> Column:
    """The id of a symbol; for exceptions the attempts 1, 2 … hash it with other seeds."""
    from pyspark.sql.functions import lit, xxhash64  # noqa: PLC0415

    # Spark hashes the columns one after the other, each with the hash of those before it as the seed.
    return xxhash64(lit(attempt), symbol) if attempt else xxhash64(symbol)


class HashDictionary:
    """The dictionary in a folder, empty if there is none.

    Every symbol has one id, different symbols have different ids, and neither changes.

    Args:
        spark: who reads and writes it.
        folder: where it is, or is to be.
        hash_: what gives a symbol its id, for each attempt; whoever opens the folder again must give the same.

    Raises:
        StateError: the folder is damaged.
    """

    def __init__(self, spark: SparkSession, folder: Path, hash_: Hash = xxhash) -> None:
        self._spark, self._folder, self._hash = spark, folder.resolve(), hash_
        self._extensions, self._exceptions = _contents(self._folder)

    def __len__(self) -> int:
        return sum(self._extensions.values())

    @property
    def exceptions(self) -> Mapping[str, int]:
        """The symbols whose id is not their hash."""
        return self._exceptions

    @property
    def frame(self) -> DataFrame:
        """All symbols, with the columns `id` and `symbol`."""
        if not self._extensions:
            return self._spark.createDataFrame([], _SPARK_SCHEMA)
        return self._read(self._extensions)

    # --- growing -------------------------------------------------------------------------------------------

    def extend(self, parts: Iterable[tuple[DataFrame, Sequence[str]]]) -> int:
        """Adds the symbols in these columns of these DataFrames that are not there yet; NULL is none.

        Returns:
            How many were added.

        Raises:
            ResourceError: the driver does not see all that executors wrote, or nothing can be written.
        """
        from pyspark.sql.functions import col  # noqa: PLC0415

        symbols: DataFrame | None = None
        for frame, columns in parts:
            places = _places(frame, columns)
            numbered = frame.toDF(*_numbered(frame))
            for place in places:
                column = numbered.select(col(f"c{place}").alias("symbol"))
                symbols = column if symbols is None else symbols.union(column)
        if symbols is None:
            return 0
        self._remove_left_overs()
        name, rows = self._write(self._unknown(symbols.where("symbol is not null").distinct()))
        exceptions = self._resolved(name) if rows else {}
        if exceptions:
            name, again = self._write(self._corrected(name, exceptions))
            assert again == rows, f"{again} rows of {rows}"
        if rows:
            self._commit({**self._extensions, name: rows}, {**self._exceptions, **exceptions})
        self._remove_left_overs()
        return rows

    def _unknown(self, symbols: DataFrame) -> DataFrame:
        """The symbols that are not there yet, with their hash as `id` and whether another symbol has that id already."""
        from pyspark.sql.functions import col  # noqa: PLC0415

        coded = self._coded(symbols, "symbol", "id").select("id", "symbol")
        known = self.frame.select(col("id").alias("known_id"), col("symbol").alias("known"))
        # Ids are unique in the dictionary, so each symbol meets at most one row: its own, or one that it collides with.
        met = coded.join(known, col("id") == col("known_id"), "left")
        met = met.where(col("known").isNull() | (col("known") != col("symbol")))
        return met.select("id", "symbol", col("known").isNotNull().alias("taken"))

    def _resolved(self, name: str) -> dict[str, int]:
        """The exceptions that a new extension needs."""
        from pyspark.sql.functions import col, count, lit  # noqa: PLC0415
        from pyspark.sql.functions import max as greatest  # noqa: PLC0415

        new = self._read([name], _SPARK_SCHEMA + ", taken boolean")
        groups = new.groupBy("id").agg(count(lit(1)).alias("symbols"), greatest("taken").alias("taken"))
        groups = groups.where((col("symbols") > 1) | col("taken"))
        # In nearly every case there are none, and this job is the last one.
        clashes: dict[int, bool] = {row["id"]: row["taken"] for row in groups.collect()}
        if not clashes:
            return {}
        ids = self._spark.createDataFrame(pa.table({"clash": pa.array(clashes, pa.int64())}))
        rows = new.join(ids, new["id"] == ids["clash"], "left_semi").select("id", "symbol").collect()
        together = defaultdict(list)
        for row in rows:
            together[row["id"]].append(row["symbol"])
        # The least symbol keeps the id, unless it is taken: which one does not depend on the order of rows.
        newcomers = [s for number, found in together.items() for s in sorted(found)[not clashes[number] :]]
        return self._other_ids(sorted(newcomers), name)

    def _other_ids(self, symbols: Sequence[str], name: str) -> dict[str, int]:
        """For each of the symbols an id that nobody has: the hash of the first attempt that is free."""
        from pyspark.sql.functions import array as array_of  # noqa: PLC0415
        from pyspark.sql.functions import col, explode, lit, struct  # noqa: PLC0415

        given: dict[str, int] = {}
        used: set[int] = set()
        first = 1
        taken = self.frame.select("id").union(self._read([name]).select("id")).distinct()
        taken = taken.withColumnRenamed("id", "other")
        while len(given) < len(symbols):
            left = self._spark.createDataFrame(pa.table({"symbol": [s for s in symbols if s not in given]}))
            tries = [
                struct(lit(attempt).alias("attempt"), self._hash(col("symbol"), attempt).alias("id"))
                for attempt in range(first, first + _ATTEMPTS)
            ]
            tried = left.select("symbol", explode(array_of(*tries)).alias("try"))
            tried = tried.select("symbol", "try.attempt", "try.id")
            free = tried.join(taken, tried["id"] == taken["other"], "left_anti").collect()
            for row in sorted(free, key=lambda row: (row["attempt"], row["symbol"])):
                if row["symbol"] not in given and row["id"] not in used:
                    given[row["symbol"]] = row["id"]
                    used.add(row["id"])
            first += _ATTEMPTS
        return given

    def _corrected(self, name: str, exceptions: Mapping[str, int]) -> DataFrame:
        """The rows of a new extension with the exceptions' own ids."""
        from pyspark.sql.functions import broadcast, coalesce, col  # noqa: PLC0415

        other = broadcast(self._exception_frame(exceptions))
        rows = self._read([name]).join(other, col("symbol") == col("exception"), "left")
        return rows.select(coalesce("other", "id").alias("id"), "symbol")

    # --- using ---------------------------------------------------------------------------------------------

    def encode(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The DataFrame with ids in place of the symbols of these columns, which need not be in the dictionary yet; NULL stays."""
        names = frame.columns
        coded = frame.toDF(*_numbered(frame))
        for place in _places(frame, columns):
            coded = self._coded(coded, f"c{place}", f"c{place}")
        return coded.select(*_numbered(frame)).toDF(*names)

    def decode(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The DataFrame with symbols in place of the ids of these columns; NULL stays. An unknown id fails when it is met."""
        from pyspark.sql.functions import broadcast, coalesce, col, concat, lit, raise_error, when  # noqa: PLC0415

        names = frame.columns
        found = frame.toDF(*_numbered(frame))
        for place in _places(frame, columns):
            column = f"c{place}"
            known = self.frame.select(col("id").alias("known_id"), col("symbol").alias("known"))
            if len(self) <= _BROADCAST:
                known = broadcast(known)
            unknown = raise_error(concat(lit("the dictionary has no symbol with the id "), col(column).cast("string")))
            symbol = coalesce(col("known"), when(col(column).isNotNull(), unknown.cast("string")))
            found = found.join(known, col(column) == col("known_id"), "left").withColumn(column, symbol)
            found = found.drop("known_id", "known")
        return found.select(*_numbered(frame)).toDF(*names)

    def _coded(self, frame: DataFrame, column: str, into: str) -> DataFrame:
        """The frame with the ids of a column of symbols."""
        from pyspark.sql.functions import broadcast, coalesce, col, when  # noqa: PLC0415

        number = when(col(column).isNotNull(), self._hash(col(column), 0))
        if not self._exceptions:
            return frame.withColumn(into, number)
        other = broadcast(self._exception_frame(self._exceptions))
        joined = frame.join(other, col(column) == col("exception"), "left")
        return joined.withColumn(into, coalesce(col("other"), number)).drop("exception", "other")

    def _exception_frame(self, exceptions: Mapping[str, int]) -> DataFrame:
        columns = {"exception": list(exceptions), "other": pa.array(exceptions.values(), pa.int64())}
        return self._spark.createDataFrame(pa.table(columns))

    # --- files ---------------------------------------------------------------------------------------------

    def _read(self, extensions: Iterable[str], schema: str = _SPARK_SCHEMA) -> DataFrame:
        places = [_GLOB.sub(r"\\\1", f"file://{self._folder / name}") for name in extensions]
        return self._spark.read.schema(schema).parquet(*places)

    def _write(self, frame: DataFrame) -> tuple[str, int]:
        """Writes a new extension, which nobody sees yet; its name and its number of rows."""
        from pyspark.sql import Observation  # noqa: PLC0415
        from pyspark.sql.functions import count, lit  # noqa: PLC0415

        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        name, written = f"{_PREFIX}{uuid4().hex[:12]}", Observation()
        counted = frame.observe(written, count(lit(1)).alias("rows"))
        counted.write.option("compression", "zstd").parquet(f"file://{self._folder / name}")
        rows = int(written.get["rows"])
        if _rows(_files(self._folder / name)) != rows:
            raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": self._folder}))
        return name, rows

    def _commit(self, extensions: dict[str, int], exceptions: dict[str, int]) -> None:
        contents = {"format": _FORMAT, "extensions": extensions, "exceptions": exceptions}
        with writing(self._folder):
            put(self._folder / _MANIFEST, json.dumps(contents).encode() + b"\n")
        self._extensions, self._exceptions = extensions, exceptions

    def _remove_left_overs(self) -> None:
        """Removes extensions that were not finished."""
        for path in self._folder.glob(f"{_PREFIX}*"):
            if path.name not in self._extensions:
                shutil.rmtree(path, ignore_errors=True)


class Dense:
    """A dictionary as the driver's engine has it: ids 0, 1, 2 … for the symbols, and which 64-bit id is which.

    Args:
        folder: that of a `HashDictionary`; no Spark is needed to read it.

    Raises:
        StateError: the folder is damaged.
    """

    def __init__(self, folder: Path) -> None:
        extensions, _ = _contents(folder)
        tables = [
            pq.read_table(file, columns=["id", "symbol"]) for name in extensions for file in _files(folder / name)
        ]
        rows = pa.concat_tables([_SCHEMA.empty_table(), *(table.cast(_SCHEMA) for table in tables)])
        self._folder = folder
        self.dictionary = Dictionary()
        numbers = self.dictionary.encode_arrow(rows.column("symbol"))
        self._hashed: npt.NDArray[np.int64] = rows.column("id").to_numpy()
        if len(self.dictionary) != len(self._hashed):
            raise damaged(folder, "a symbol stands there twice")
        order = np.argsort(self._hashed)
        self._sorted, self._numbers = self._hashed[order], numbers[order]

    def dense(self, hashed: npt.NDArray[np.int64]) -> Ids:
        """The dense ids of 64-bit ids."""
        places = np.searchsorted(self._sorted, hashed)
        found = places < len(self._sorted)
        found[found] = self._sorted[places[found]] == hashed[found]
        if not found.all():
            raise damaged(self._folder, f"there is no symbol with the id {hashed[~found][0]}")
        return self._numbers[places]

    def hashed(self, dense: Ids) -> npt.NDArray[np.int64]:
        """The 64-bit ids of dense ids."""
        ids: npt.NDArray[np.int64] = self._hashed[dense]
        return ids


def _places(frame: DataFrame, columns: Sequence[str]) -> list[int]:
    """Where the columns stand. Columns are told apart by place, for Spark does not see case in names."""
    return [frame.columns.index(name) for name in columns]


def _numbered(frame: DataFrame) -> list[str]:
    return [f"c{place}" for place in range(len(frame.columns))]


def _contents(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """The extensions of a dictionary with their numbers of rows, and its exceptions."""
    manifest = folder / _MANIFEST
    if not manifest.exists():
        return {}, {}
    try:
        found: Any = json.loads(read(manifest))
        if found["format"] != _FORMAT:
            raise damaged(manifest, f"its format is {found['format']}, not {_FORMAT}")
        extensions, exceptions = dict(found["extensions"]), dict(found["exceptions"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(manifest, "it is no list of extensions") from error
    for name, rows in extensions.items():
        try:
            seen = _rows(_files(folder / name))
        except (OSError, pa.ArrowInvalid) as error:
            raise damaged(folder / name, str(error).split("\n")[0]) from error
        if seen != rows:
            raise damaged(folder / name, f"it has {seen} rows, not {rows}")
    return extensions, exceptions


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _rows(files: Iterable[Path]) -> int:
    return sum(pq.read_metadata(file).num_rows for file in files)
