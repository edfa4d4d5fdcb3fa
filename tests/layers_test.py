"""The layout is the architecture: a floor imports only floors before it, and start-up loads only what it needs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from functools import cache
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


# Floors with a public face: from outside, only what the face exports is imported.
FACES = ["core", "language", "plan", "io", "owl", "store"]


@cache
def exported_by(face: str) -> dict[str, str]:
    """The names that type checkers see in a face, and the modules that they come from."""
    tree = ast.parse((ROOT / face / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = [node for node in (*tree.body, *block.body) if isinstance(node, ast.ImportFrom)]
    inside = [node for node in seen if (node.module or "").startswith(f"evermat.{face}")]
    return {alias.name: node.module or "" for node in inside for alias in node.names}


@pytest.mark.parametrize("face", FACES)
def test_a_face_exports_what_type_checkers_see(face: str) -> None:
    package = importlib.import_module(f"evermat.{face}")
    names = exported_by(face)
    assert sorted(names) == package.__all__
    assert set(package.__all__) <= set(dir(package))
    for name, home in names.items():
        module = importlib.import_module(home)
        assert (
            getattr(package, name) is getattr(module, name, None) or getattr(package, name).__name__ == f"{home}.{name}"
        )
        assert vars(package)[name] is getattr(package, name)  # found at once the next time


@pytest.mark.parametrize("face", FACES)
def test_no_name_of_a_face_is_hidden_by_a_module(face: str) -> None:
    modules = {path.stem for path in (ROOT / face).iterdir() if path.suffix in ("", ".py")}
    assert not modules & {name for name, home in exported_by(face).items() if home != f"evermat.{face}"}


@pytest.mark.parametrize("face", FACES)
def test_an_unknown_name_of_a_face_is_an_error(face: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'evermat.{face}' has no attribute 'nothing'"):
        importlib.import_module(f"evermat.{face}").nothing  # noqa: B018


@pytest.mark.parametrize(("module", "path"), modules())
def test_floors_are_entered_by_their_faces(module: str, path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            _, floor, *inside = [*node.module.split("."), "", ""][:3]
            if node.module.startswith("evermat.") and floor in FACES and module.split(".")[1:2] != [floor]:
                assert inside == [""], f"{module} imports {node.module}, not evermat.{floor}"
                strange = {alias.name for alias in node.names} - exported_by(floor).keys()
                assert not strange, f"evermat.{floor} does not export {strange}, which {module} imports"


FILES = {
    "facts": ("1\t2\n", {"csv_exact", "csv_fast", "csv_writer"}),
    "jsonl": ("[1, 2]\n", {"csv_exact", "jsonl_reader", "jsonl_writer"}),  # JSON lines and text name bad UTF-8 alike
}


@pytest.mark.parametrize("ending", FILES)
def test_a_run_loads_the_formats_of_its_files_only(ending: str, tmp_path: Path) -> None:
    text, expected = FILES[ending]
    (tmp_path / f"e.{ending}").write_text(text)
    output = "csv" if ending == "facts" else ending
    (tmp_path / "p.dl").write_text(
        f'.decl e(x:number, y:number) .input e(filename="e.{ending}") .output e(filename="out.{output}")'
    )
    command = f"['evermat', 'run', '{tmp_path}/p.dl', '-F', '{tmp_path}', '-D', '{tmp_path}', '--engine', 'memory']"
    loaded = loaded_by(
        f"sys.argv = {command}\nfrom evermat.cli.main import script\ntry: script()\nexcept SystemExit: pass"
    )
    assert (tmp_path / f"out.{output}").exists()
    assert {name.rpartition(".")[2] for name in loaded if name.startswith("evermat.io.formats.")} == expected | {
        "registry"
    }
    assert not [name for name in loaded if name.startswith(("evermat.io.rdf", "evermat.io.changes", "evermat.owl"))]
    assert not {"pyoxigraph", "pyspark", "deltalake"} & loaded
