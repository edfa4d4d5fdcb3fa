"""A file format is a module and a row of the registry; nothing is loaded of a format that no file has."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import evermat
from evermat.core.lazy import deferred
from evermat.io import Outputs, read_relation
from evermat.io.byte_ranges import can_split
from evermat.io.changes.model import ChangedRows
from evermat.io.changes.read import read_update
from evermat.io.formats import registry
from evermat.io.formats.registry import ENDINGS, FORMATS, FileFormat
from evermat.io.locate import file_ref
from evermat.io.schema import table_from_values
from evermat.language.model import Io
from tests.io.relations import relation, rows_of, table


@pytest.mark.parametrize("path", re.findall(r'deferred\("(.*?)"\)', Path(registry.__file__).read_text()))
def test_every_function_that_a_row_names_exists(path):
    module, name = path.split(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_be_read_in_one_way(name):
    form = FORMATS[name]
    assert (form.read is None) != (form.block_reader is None)


def toy() -> ModuleType:
    """Facts of one number each, as bytes."""
    module = ModuleType("toy")

    def read(stream, file):
        return table_from_values(file.io.relation, [list(stream.read())])

    def write(sink, io, batches, path):
        for batch in batches:
            sink.write(bytes(batch.column(0).to_pylist()))

    def read_toy_changes(update):
        (path,) = update.paths
        changed = relation("n")
        facts = table_from_values(changed, [list(path.read_bytes())])
        return [ChangedRows(changed, facts, pa.array([True] * facts.num_rows).to_numpy(zero_copy_only=False))]

    module.read, module.write, module.read_changes = read, write, read_toy_changes
    return module


def test_a_format_is_a_module_and_a_row(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "toy", toy())
    row = FileFormat(
        title="a toy",
        endings={".toy": "toy"},
        read=deferred("toy:read"),
        write=deferred("toy:write"),
        read_changes=deferred("toy:read_changes"),
    )
    monkeypatch.setitem(ENDINGS, ".toy", row)
    rel = relation("n")
    with Outputs() as out:
        out.write(table(rel, [(3,), (1,)]), Io(rel, path="r.toy"), tmp_path)
        out.write(table(rel, [(2,)]), Io(relation("n", "q"), path="q.toy.gz"), tmp_path)
        out.commit()
    assert (tmp_path / "r.toy").read_bytes() == bytes([1, 3])
    assert rows_of(read_relation(Io(rel, path="*.toy*"), tmp_path)) == [(2,), (1,), (3,)]
    assert not can_split(file_ref(tmp_path / "r.toy"), Io(rel))
    program = evermat.Program.parse(".decl r(x:number)").compiled
    assert rows_of(read_update([tmp_path / "r.toy"], program).insert["r"]) == [(1,), (3,)]
