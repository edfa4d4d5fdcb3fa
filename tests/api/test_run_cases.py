"""Every case gives exactly what stands beside it: on the command line, in Python, and by the oracle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evermat
from evermat.io import read_relation
from tests.support import oracle
from tests.support.commands import Evermat
from tests.support.run_cases import CASES, cases, expected_rows, name_of, pack, unpack

SOUFFLE = Path(__file__).parents[1] / "language" / "cases" / "souffle"
IN_A_PROCESS_OF_THEIR_OWN = ["recursion/reachability", "files/standard_output", "aggregates/groups"]

every_case = pytest.mark.parametrize("path", cases(), ids=name_of)


def expected(path: Path) -> dict[str, str]:
    return unpack(path.with_suffix("") / "expected")


@every_case
def test_on_the_command_line(path: Path, tmp_path: Path, evermat_command: Evermat) -> None:
    pack(path.with_suffix("") / "facts", tmp_path / "facts")
    done = evermat_command("run", path, "-F", tmp_path / "facts", "-D", tmp_path / "out")
    assert done.code == 0, done.err
    assert "error" not in done.err
    found = unpack(tmp_path / "out") if (tmp_path / "out").exists() else {}
    assert found | ({"stdout.txt": done.out} if done.out else {}) == expected(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_A_PROCESS_OF_THEIR_OWN)
def test_in_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    path = CASES / f"{name}.dl"
    pack(path.with_suffix("") / "facts", tmp_path / "facts")
    arguments = ["run", path, "-F", tmp_path / "facts", "-D", tmp_path / "out"]
    done = subprocess.run([sys.executable, "-m", "evermat", *arguments], capture_output=True, check=True)
    found = unpack(tmp_path / "out") if (tmp_path / "out").exists() else {}
    assert found | ({"stdout.txt": done.stdout.decode()} if done.stdout else {}) == expected(path)


@every_case
def test_in_python_and_by_the_oracle(path: Path, tmp_path: Path) -> None:
    pack(path.with_suffix("") / "facts", tmp_path)
    program = evermat.Program.read(path)
    rows = expected_rows(path.with_suffix("") / "expected", program.compiled)

    materialised = program.materialise(inputs=tmp_path)
    for name, facts in rows.items():
        assert len(materialised[name]) == len(facts), name
        assert set(materialised[name]) == facts, name
        assert all(row in materialised[name] for row in facts)

    written = oracle.read(path.read_text(encoding="utf-8"))
    explicit: dict[str, set[tuple]] = {}
    for io in written.inputs:
        table = read_relation(io, tmp_path)
        found = (
            zip(*(column.to_pylist() for column in table.columns), strict=True)
            if io.relation.columns
            else [()] * len(table)
        )
        explicit.setdefault(io.relation.name, set()).update(found)
    by_oracle = oracle.materialise(written, explicit)
    for name in written.relations:
        assert set(materialised[name]) == by_oracle[name], name
    for name, facts in rows.items():
        assert facts == by_oracle[name], name


@pytest.mark.parametrize("path", sorted(SOUFFLE.glob("*.dl")), ids=lambda path: path.stem)
def test_programs_for_souffle_give_what_the_oracle_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    materialised = evermat.Program.parse(text).materialise()
    for name, facts in oracle.materialise(oracle.read(text), {}).items():
        assert set(materialised[name]) == facts, name


def test_every_case_has_results() -> None:
    for path in cases():
        assert list((path.with_suffix("") / "expected").iterdir()), path
    folders = {path for path in CASES.glob("*/*") if path.is_dir()}
    assert folders == {path.with_suffix("") for path in cases()}
