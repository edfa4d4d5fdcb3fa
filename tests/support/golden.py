"""Programs in files, and what is said about them.

`EVERMAT_UPDATE_GOLDEN=1 python -m pytest tests/language` writes the expected texts again: read the difference as a user
would before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

from evermat.core.errors import Problem, ProgramError
from evermat.core.source import Source
from evermat.language.compile import compile_program
from evermat.language.model import Program

CASES = Path(__file__).parents[1] / "language" / "cases"


def cases(folder: str) -> list[Path]:
    """The programs of a folder of cases."""
    found = sorted((CASES / folder).glob("*.dl"))
    assert found or folder == "fuzz", f"no cases in {folder}"
    return found


def compile_file(path: Path) -> Program:
    """The program of a case; its name in messages is the file's name alone."""
    return compile_program(Source(path.name, path.read_bytes().decode()))


def compile_text(text: str) -> Program:
    return compile_program(Source("test.dl", text))


def problems_of(source: Source) -> tuple[Problem, ...]:
    """What is wrong with a text, or else what it is warned about."""
    try:
        return compile_program(source).warnings
    except ProgramError as error:
        return error.problems


def check_golden(path: Path, text: str) -> None:
    """Compares with the text beside a case, or writes it."""
    golden = path.with_suffix(".txt")
    if os.environ.get("EVERMAT_UPDATE_GOLDEN"):
        golden.write_text(text + "\n", encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text + "\n"
