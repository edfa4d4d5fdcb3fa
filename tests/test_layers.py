"""The layout is the architecture: floors in an order, faces by which they are entered, and a start-up that loads only what it needs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import evermat
from tools.generate_map import FLOORS

ROOT = Path(evermat.__file__).parent

FACES = FLOORS[:-1]
# Modules beside the packages, and the floors that they belong to.
LOOSE = {"": "api", "directory": "api", "testing": "api", "__main__": "cli"}
# What a floor must not know although it stands on it: `reasoning` is written over the algebra alone, and engines know no algorithm.
FORBIDDEN = {
    "algebra": {"plan"},
    "reasoning": {"plan"},
    "engine": {"reasoning"},
    "kernels": {"plan", "algebra", "reasoning", "engine"},
    "columns": {"reasoning"},
    "io": {"plan", "algebra", "reasoning", "engine", "columns"},
    "owl": {"plan", "algebra", "reasoning", "engine", "columns"},
    "store": {*FLOORS} - {"core", "store"},
    "cli": {*FLOORS} - {"core", "runtime", "api", "cli"},
}
FORBIDDEN_PACKAGES = {
    "core": {"numpy", "numba", "pyarrow", "pyspark"},
    "language": {"numpy", "numba", "pyspark"},
    "plan": {"numpy", "numba", "pyarrow", "pyspark"},
    "algebra": {"numpy", "numba", "pyarrow", "pyspark"},
    "reasoning": {"numpy", "numba", "pyarrow", "pyspark"},
    "engine": {"numba", "pyarrow", "pyspark"},
    "kernels": {"pyspark"},
    "columns": {"pyspark"},
    "io": {"pyspark"},
    "owl": {"pyspark"},
    "store": {"pyspark"},
    "cli": {"numpy", "numba", "pyarrow"},
}


def floor_of(module: str) -> str:
    """The floor of `evermat.x.y`."""
    name = [*module.split("."), ""][1]
    assert name in FLOORS or name in LOOSE, f"{module} belongs to no floor"
    return LOOSE.get(name, name)


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


every_module = pytest.mark.parametrize(("module", "path"), modules(), ids=[name for name, _ in modules()])
every_face = pytest.mark.parametrize("face", FACES)


@cache
def imports(path: Path) -> list[tuple[str, str]]:
    """What a module imports: the names of modules, each with the name that is imported from it, if one is."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
    return found


@every_module
def test_imports_point_to_the_ground(module: str, path: Path) -> None:
    own = floor_of(module)
    for name, imported in imports(path):
        package = name.split(".", maxsplit=1)[0]
        assert package not in FORBIDDEN_PACKAGES.get(own, ()), f"{module} imports {name}"
        if package == "evermat" and module != "evermat" and (name != "evermat" or imported in FLOORS):
            other = floor_of(f"evermat.{imported}" if name == "evermat" else name)
            assert FLOORS.index(other) <= FLOORS.index(own), f"{module} imports {name}, a higher floor"
            assert other not in FORBIDDEN.get(own, ()), f"{module} must not know {name}"


@every_module
def test_floors_are_entered_by_their_faces(module: str, path: Path) -> None:
    for name, imported in imports(path):
        _, floor, inside = [*name.split("."), "", ""][:3]
        if name.startswith("evermat.") and floor in FACES and module.split(".")[1:2] != [floor]:
            assert not inside or module == "evermat", f"{module} imports {name}, not evermat.{floor}"
            if not inside and imported:
                assert imported in exported_by(floor), f"evermat.{floor} does not export {imported}"


def test_of_spark_only_the_fixpoint_in_one_job_knows_algorithms() -> None:
    known = {
        module
        for module, path in modules()
        if module.startswith("evermat.spark") and "evermat.reasoning" in dict(imports(path))
    }
    assert known == {"evermat.spark.engine.tasks.pivot_fixpoint"}


@pytest.mark.slow
def test_no_module_imports_itself_by_others() -> None:
    """There is no cycle among imports at module level; those for type checkers alone, and those in functions, do not count."""
    names = dict(modules())
    graph = {module: _imported_at_start(path, names) for module, path in names.items()}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"a cycle of imports: {' → '.join((*path, module))}"
        if module not in done:
            for other in sorted(graph[module]):
                visit(other, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def _imported_at_start(path: Path, names: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {name for alias in node.names for name in (node.module, f"{node.module}.{alias.name}")}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & names.keys() - {"evermat"}


# --- faces -------------------------------------------------------------------------------------------------------


@cache
def exported_by(face: str) -> dict[str, tuple[str, str]]:
    """The names that type checkers see in a face: the modules that they come from, and their names there."""
    tree = ast.parse((ROOT / face / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    inside = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (node.module or "", alias.name) for node in inside for alias in node.names}


@every_face
def test_a_face_exports_what_type_checkers_see(face: str) -> None:
    package = importlib.import_module(f"evermat.{face}")
    names = exported_by(face)
    assert sorted(names) == package.__all__
    assert set(package.__all__) <= set(dir(package))
    for name, (home, own) in names.items():
        assert home == f"evermat.{face}" or home.startswith(f"evermat.{face}.")
        found, module = getattr(package, name), importlib.import_module(home)
        assert found is getattr(module, own, None) or found.__name__ == f"{home}.{own}"
        assert vars(package)[name] is found  # at once the next time


@every_face
def test_no_name_of_a_face_is_hidden_by_a_module(face: str) -> None:
    inside = {path.stem for path in (ROOT / face).iterdir() if path.suffix in ("", ".py")}
    assert not inside & {name for name, (home, _) in exported_by(face).items() if home != f"evermat.{face}"}


# What is exported for those who read: protocols that engines implement without naming them, and a query for other programs.
FOR_READERS = {
    "algebra": {"Again", "Equality", "Grown", "NormalRules", "Stored", "UpdateCounter"},
    "store": {"CURRENT_FACTS"},
}


@every_face
def test_what_a_face_exports_is_used_outside(face: str) -> None:
    used = {
        imported
        for module, path in modules()
        if floor_of(module) != face
        for name, imported in imports(path)
        if name == f"evermat.{face}"
    }
    unused = exported_by(face).keys() - used - {*evermat.__all__} - FOR_READERS.get(face, set())
    assert not unused, f"evermat.{face} exports {sorted(unused)}, which no other floor imports"


@every_face
def test_an_unknown_name_of_a_face_is_an_error(face: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'evermat.{face}' has no attribute 'nothing'"):
        importlib.import_module(f"evermat.{face}").nothing  # noqa: B018


# --- start-up ----------------------------------------------------------------------------------------------------


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_library() -> None:
    heavy = {"numpy", "numba", "pyarrow", "pandas", "polars", "pyspark", "lark", "typer", "rich"}
    loaded = loaded_by("import evermat; evermat.__version__")
    assert not heavy & loaded
    assert {name for name in loaded if name.startswith("evermat")} == {"evermat"}


def test_compiling_a_program_loads_no_engine() -> None:
    loaded = loaded_by("import evermat; evermat.Program.parse('.decl a(x:number) a(1).')")
    assert not {"numpy", "numba", "pyarrow", "pyspark"} & loaded
    floors = {name.split(".")[1] for name in loaded if name.startswith("evermat.")}
    assert floors == {"core", "language", "runtime", "api"}


FILES = {
    "facts": ("1\t2\n", {"csv_exact", "csv_fast", "csv_writer"}),
    "jsonl": ("[1, 2]\n", {"csv_exact", "jsonl_reader", "jsonl_writer"}),  # JSON lines and text name bad UTF-8 alike
}


# What a run without RDF, ontologies, Spark, a state directory or an update has no use for.
NOT_FOR_A_RUN = (
    "evermat.io.rdf",
    "evermat.io.changes",
    "evermat.owl",
    "evermat.spark",
    "evermat.store",
    "evermat.columns.state.saved",
    "evermat.reasoning.maintain",
    "evermat.reasoning.marking",
    "evermat.reasoning.dred",
    "evermat.reasoning.backward_forward",
    "evermat.runtime.change",
    "evermat.runtime.streams.folder_stream",
    "evermat.runtime.engines.memory_update",
    "evermat.runtime.states.persistence",
    "evermat.runtime.states.saved_version",
    "evermat.runtime.engines.spark_engine",
    "evermat.runtime.streams.structured_streaming",
    "evermat.runtime.update",
)


@pytest.mark.slow
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
    assert not [name for name in loaded if name.startswith(NOT_FOR_A_RUN)]
    assert not {"pyoxigraph", "pyspark", "deltalake"} & loaded
