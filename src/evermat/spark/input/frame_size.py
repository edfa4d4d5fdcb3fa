"""How many rows a DataFrame may have, as far as that is known before it is computed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOOTERS, STATISTICS = "Parquet footers", "plan statistics"

_MOST_FILES = 256  # whose footers are read one after the other
_UNKNOWN = 1 << 62  # bytes that Spark claims of what it knows nothing about
_ROW = 8  # bytes that Spark adds to every row
_TEXT = 20  # bytes that Spark assumes of a text
_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}
_STATISTICS = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) (\w+)(?:, rowCount=([\d.E+]+))?")
_NODE = re.compile(r"^[\s:+|-]*(\w+)")
_PLAIN = {"Project", "Relation"}  # nodes that neither add nor remove rows


class Estimate(NamedTuple):
    """A number of rows, and what says so."""

    rows: int
    source: str


def estimate_of(frame: DataFrame) -> Estimate | None:
    """The number of rows that footers or the plan's statistics tell; None if Spark knows nothing. No job runs.

    Footers are right, statistics need not be: those of a join may be wrong by any factor, in both directions.
    """
    plan = _explained(frame)
    if plan is None:
        return None
    lines = plan.partition("== Physical Plan ==")[0].splitlines()
    nodes = [line for line in lines if line and not line.startswith("==")]
    if nodes and {_name(node) for node in nodes} <= _PLAIN and "] parquet" in nodes[-1]:
        rows = _rows_of_footers(frame)
        if rows is not None:
            return Estimate(rows, FOOTERS)
    found = next((match for node in nodes if (match := _STATISTICS.search(node))), None)
    return None if found is None else _of_statistics(found, frame)


def _of_statistics(found: re.Match[str], frame: DataFrame) -> Estimate | None:
    number, unit, rows = found.groups()
    if rows is not None:
        return Estimate(int(float(rows)), STATISTICS)
    size = float(number) * 2 ** _UNITS.get(unit, 60)
    if size >= _UNKNOWN:
        return None
    width = _ROW + sum(_TEXT if field.dataType.typeName() == "string" else 8 for field in frame.schema.fields)
    return Estimate(int(size / width), STATISTICS)


def _name(node: str) -> str:
    found = _NODE.match(node)
    return found[1] if found else ""


def _explained(frame: DataFrame) -> str | None:
    """The optimised plan with its statistics as text; None if there is none to be had."""
    made: Any = frame
    try:
        if is_connect(frame.sparkSession):
            return str(made._explain_string(mode="cost"))  # noqa: SLF001
        jvm: Any = frame.sparkSession._jvm  # noqa: SLF001
        return str(jvm.PythonSQLUtils.explainString(made._jdf.queryExecution(), "cost"))  # noqa: SLF001
    except Exception:  # noqa: BLE001  # what is wrong with the frame shows when it is read
        return None


def _rows_of_footers(frame: DataFrame) -> int | None:
    """The number of rows in the files of a scan; None if this process does not see them, or if they are too many."""
    try:
        paths = [urlsplit(file) for file in frame.inputFiles()]
        if len(paths) > _MOST_FILES or any(path.scheme != "file" for path in paths):
            return None
        return sum(int(pq.read_metadata(unquote(path.path)).num_rows) for path in paths)
    except Exception as error:
        if isinstance(error, OSError | pa.ArrowException) or type(error).__module__.startswith(("pyspark", "py4j")):
            return None
        raise
