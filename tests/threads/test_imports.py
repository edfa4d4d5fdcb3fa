"""Modules that another thread is importing: they are there, and have nothing yet."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import evermat

PROGRAM = ".decl a(x:number) .decl b(x:number) b(x) :- a(x)."
FORMS: dict[str, Any] = {"rows": [(1,)], "Arrow": pa.table({"x": [1]}), "a generator": None}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("modules", [["pandas"], ["pyspark", "pyspark.sql"], ["polars"]])
def test_facts_are_read_while_another_thread_imports(
    form: str, modules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in modules:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    facts = FORMS[form] or ((x,) for x in (1,))
    m = evermat.Program.parse(PROGRAM).materialise({"a": facts})
    assert set(m["b"]) == {(1,)}
    m.update({"a": [(2,)]})
    assert set(m["b"]) == {(1,), (2,)}
    assert (2,) in m.query("a(x), b(x)")
    assert m["b"].to_arrow().num_rows == 2
