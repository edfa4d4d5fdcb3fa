"""The layout is the architecture: a floor imports only floors before it, and start-up loads only what it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evermat

ROOT = Path(evermat.__file__).parent

# From the ground up: a floor imports only floors before it.
FLOORS = {
    "core": {"core"},
    "language": {"language"},
    "plan": {"plan"},
    "algebra": {"algebra"},
    "reasoning": {"reasoning"},
    "engine": {"engine"},
    "columns": {"columns"},
    "io": {"io"},
    "owl": {"owl"},
    "store": {"store"},
    "spark": {"spark"},
    "runtime": {"runtime"},
    "api": {"api", "directory", "testing"},
    "cli": {"cli", "__main__"},
}
ORDER = list(FLOORS)
# What a floor must not know although it stands on it: `reasoning` is written over the algebra alone, and engines know no algorithm.
FORBIDDEN = {
    "algebra": {"plan"},
    "reasoning": {"plan"},
    "engine": {"reasoning"},
    "columns": {"reasoning"},
    "io": {"plan", "algebra", "reasoning", "engine", "columns"},
    "owl": {"plan", "algebra", "reasoning", "engine", "columns"},
    "store": set(ORDER) - {"core", "store"},
}
FORBIDDEN_PACKAGES = {
    "core": {"numpy", "numba", "pyarrow", "pyspark"},
    "language": {"numpy", "numba", "pyspark"},
    "plan": {"numpy", "numba", "pyarrow", "pyspark"},
    "algebra": {"numpy", "numba", "pyarrow", "pyspark"},
    "reasoning": {"numpy", "numba", "pyarrow", "pyspark"},
    "engine": {"numba", "pyarrow", "pyspark"},
    "columns": {"pyspark"},
    "io": {"pyspark"},
    "owl": {"pyspark"},
    "store": {"pyspark"},
}


def floor_of(module: str) -> str:
    """The floor of `evermat.x.y`."""
    parts = module.split(".")
    if len(parts) == 1:
        return "api"
    (found,) = [floor for floor, members in FLOORS.items() if parts[1] in members] or [None]
    assert found, f"{module} belongs to no floor"
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
def test_imports_point_to_the_ground(module: str, path: Path) -> None:
    own = floor_of(module)
    for name in imports(path):
        package = name.split(".", maxsplit=1)[0]
        assert package not in FORBIDDEN_PACKAGES.get(own, ()), f"{module} imports {name}"
        if package == "evermat" and name not in ("evermat", "evermat.__version__"):
            other = floor_of(name)
            assert ORDER.index(other) <= ORDER.index(own), f"{module} imports {name}, a higher floor"
            assert other not in FORBIDDEN.get(own, ()), f"{module} must not know {name}"


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
