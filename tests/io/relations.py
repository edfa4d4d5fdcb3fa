"""Relations, rows and tables for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from hypothesis import strategies as st

from evermat.io import Outputs, arrow_schema, nullary
from evermat.io.blocks import BLOCK, read_blocks
from evermat.io.error_report import Findings
from evermat.io.formats.csv_fast import block_reader
from evermat.io.formats.registry import InputFile
from evermat.io.locate import file_ref
from evermat.language.builtins import MAX_NUMBER, MAX_UNSIGNED, MIN_NUMBER, Type
from evermat.language.model import Column, Io, Relation
from evermat.language.terms import literal_term

LETTERS = {"s": Type.SYMBOL, "n": Type.NUMBER, "u": Type.UNSIGNED, "f": Type.FLOAT, "t": Type.TERM}


def relation(types: str, name: str = "r") -> Relation:
    """A relation with columns x, y, z, …; one letter for each type."""
    columns = (Column("xyzvw"[i], LETTERS[c], str(LETTERS[c])) for i, c in enumerate(types))
    return Relation(name, tuple(columns))


def table(rel: Relation, rows: list[tuple]) -> pa.Table:
    if not rel.columns:
        return nullary(present=bool(rows))
    columns = list(zip(*rows, strict=True)) or [()] * rel.arity
    arrays = [pa.array(values, field.type) for values, field in zip(columns, arrow_schema(rel), strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(rel))


def not_utf8(*, dictionary: bool = False) -> pa.Array:
    """The texts "a", "b\xff" and "c", of which the second is not valid UTF-8, as Arrow takes them from a file."""
    offsets = pa.array([0, 1, 3, 4], pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"ab\xffc"))
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts) if dictionary else texts


def rows_of(found: pa.Table) -> list[tuple]:
    if not found.num_columns:
        return [()] * found.num_rows
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def read_text(stream: BinaryIO, io: Io, findings: Findings, size: int = BLOCK) -> pa.Table:
    """The facts of a text, read in blocks of some size."""
    file = InputFile(file_ref(Path(findings.path)), io, findings)
    found = read_blocks(stream, block_reader(file), io.relation, findings, size=size)
    findings.raise_if_any()
    return found


def write(found: pa.Table, io: Io, folder: Path) -> None:
    with Outputs() as out:
        out.write(found, io, folder)
        out.commit()


def symbols(*, plain: bool = False, delimiter: str = "\t") -> st.SearchStrategy[str]:
    """Any text, with those characters often that files have to care about."""
    odd = "\t\n\r\"',;\\ \ufeff\x00\u2028äß漢😀NULLnan0x1" + delimiter
    text = st.text(st.one_of(st.sampled_from(odd), st.characters(codec="utf-8")), max_size=8)
    if plain:
        return text.map(lambda t: "".join(c for c in t if c not in "\n\r" + delimiter))
    return text


def values(letter: str, **options: object) -> st.SearchStrategy:
    edge = st.sampled_from
    return {
        "s": symbols(**options),  # type: ignore[arg-type]
        "t": symbols(**options).map(literal_term),  # type: ignore[arg-type]
        "n": st.integers(MIN_NUMBER, MAX_NUMBER) | st.integers(-3, 3) | edge([MIN_NUMBER, MAX_NUMBER]),
        "u": st.integers(0, MAX_UNSIGNED) | st.integers(0, 3) | edge([0, MAX_UNSIGNED]),
        "f": st.floats(allow_nan=False).map(lambda v: v + 0.0) | st.integers(-3, 3).map(float) | edge([1e16, 1e300]),
    }[letter]


def facts(types: str, **options: object) -> st.SearchStrategy[list[tuple]]:
    """Some rows for columns of these types."""
    return st.lists(st.tuples(*(values(letter, **options) for letter in types)), max_size=12)


TYPES = st.text("snuft", min_size=1, max_size=4)


def in_order(rows: list[tuple]) -> list[tuple]:
    """The rows as files have them: symbols by their UTF-8 bytes."""
    return sorted(rows, key=lambda row: [v.encode() if isinstance(v, str) else v for v in row])
