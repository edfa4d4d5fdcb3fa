"""Facts of the shapes, made once for all processes: large ones take minutes to make."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.equality.data import Facts
from bench.equality.shapes import Shape

Tables = dict[str, pa.Table]


def tables(facts: Facts) -> Tables:
    """Relations as Arrow tables."""
    return {
        name: pa.table({f"c{i}": column for i, column in enumerate(zip(*rows, strict=True))})
        for name, rows in facts.items()
    }


def facts_of(shape: Shape, *, small: bool) -> Tables:
    """The facts of a shape; those of the full size are kept in the folder for temporary files."""
    if small:
        return tables(shape.facts(small))
    folder = Path(tempfile.gettempdir()) / f"evermat-bench-equality-{shape.name}-{shape.version}"
    names = folder / "names.json"
    if not names.exists():
        folder.mkdir(exist_ok=True)
        made = tables(shape.facts(small))
        for number, table in enumerate(made.values()):
            pq.write_table(table, folder / f"{number}.parquet")
        names.write_text(json.dumps(list(made)), encoding="utf-8")  # the last: it says that all is there
    relations: list[str] = json.loads(names.read_text(encoding="utf-8"))
    return {name: pq.read_table(folder / f"{number}.parquet") for number, name in enumerate(relations)}
