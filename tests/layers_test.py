"""The layout is the architecture: a layer imports only what stands above it, and start-up loads only what it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evermat

ROOT = Path(evermat.__file__).parent

# From the ground up: a floor imports only floors before it.
LAYERS = {
    "core": {"core"},
    "language": {"language", "program"},
    "plan": {"plan"},
    "algebra": {"algebra"},
    "reasoning": {"reasoning"},
    "engine": {"engine"},
    "columns": {"columns"},
    "io": {"io", "files"},
    "owl": {"owl", "rdf"},
    "store": {"store"},
    "spark": {"spark"},
    "api": {
        "runtime",
        "answer_writer",
        "api",
        "change",
        "clustered",
        "directory",
        "durable",
        "durable_clustered",
        "facts",
        "following",
        "assembly",
        "forbidden",
        "graphs",
        "history",
        "materialisation",
        "placement",
        "query",
        "streaming",
        "tabular",
        "updating",
    },
    "cli": {"cli", "__main__"},
}
# What a layer may import although it stands above: nothing but itself.
ORDER = list(LAYERS)
# `reasoning` is written over the algebra alone; engines know no algorithm.
FORBIDDEN = {
    ("columns", "reasoning"),
    ("io", "columns"),
    ("io", "reasoning"),
    ("io", "algebra"),
    ("io", "plan"),
    ("store", "columns"),
    ("store", "reasoning"),
    ("store", "plan"),
}
FORBIDDEN_PACKAGES = {
    "language": {"numpy", "numba", "pyspark"},
    "plan": {"numpy", "numba", "pyarrow", "pyspark"},
    "algebra": {"numpy", "numba", "pyarrow", "pyspark"},
    "reasoning": {"numpy", "numba", "pyarrow", "pyspark"},
    "columns": {"pyspark"},
    "io": {"pyspark"},
    "store": {"pyspark"},
}


def layer_of(module: str) -> str:
    """The layer of `evermat.x.y`."""
    parts = module.split(".")
    if len(parts) == 1:
        return "api"
    (found,) = [layer for layer, members in LAYERS.items() if parts[1] in members] or [None]
    assert found, f"{module} belongs to no layer"
    return found


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [
                f"{node.module}.{alias.name}" if node.module == "evermat" else node.module for alias in node.names
            ]
    return names


@pytest.mark.parametrize(("module", "path"), [m for m in modules() if m[0] != "evermat"])
def test_imports_point_upwards(module: str, path: Path) -> None:
    own = layer_of(module)
    for name in imports(path):
        package = name.split(".", maxsplit=1)[0]
        assert package not in FORBIDDEN_PACKAGES.get(own, ()) or (own, package) == ("language", "pyarrow"), (
            f"{module} imports {name}"
        )
        if package == "evermat" and name not in ("evermat", "evermat.__version__"):
            other = layer_of(name)
            assert ORDER.index(other) <= ORDER.index(own), f"{module} imports {name}, which stands below it"
            assert (own, other) not in FORBIDDEN, f"{module} must not know {name}"


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_library() -> None:
    heavy = {"numpy", "numba", "pyarrow", "pandas", "polars", "pyspark", "lark", "typer", "rich"}
    assert not heavy & loaded_by("import evermat; evermat.__version__")


def test_compiling_a_program_loads_no_engine() -> None:
    loaded = loaded_by("import evermat; evermat.Program.parse('.decl a(x:number) a(1).')")
    assert not {"numpy", "numba", "pyarrow", "pyspark"} & loaded
