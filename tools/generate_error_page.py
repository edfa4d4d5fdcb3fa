"""Pages of the documentation that are made from the code: `python -m tools.generate_error_page FOLDER`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from evermat.core.error_catalogue import KINDS
from evermat.core.errors import Kind

_FAMILIES = {
    2: ("The program or the command line is wrong", "2"),
    3: ("The data is wrong", "3"),
    4: ("A limit was reached", "4"),
    5: ("The state is locked or damaged", "5"),
    6: ("Disk, memory or cluster failed", "6"),
}


def error_page() -> str:
    """The list of all errors and warnings."""
    lines = [
        "# Errors and warnings",
        "",
        "Made from `src/evermat/core/error_catalogue.py` by `make docs`. Words in braces stand for what a message names.",
        "The first digit of a number is the exit code of the command line; warnings change no exit code.",
    ]
    for digit, (title, code) in _FAMILIES.items():
        family = sorted((k for k in KINDS if k.code // 100 == digit), key=lambda k: k.code)
        if family:
            lines += ["", f"## {title} (exit code {code})", "", "| number | message | note |", "| --- | --- | --- |"]
            lines += [_row(kind) for kind in family]
    return "\n".join(lines) + "\n"


def _row(kind: Kind) -> str:
    return f"| {kind.label} | {_cell(kind.sentence)} | {_cell(kind.note)} |"


def _cell(text: str) -> str:
    """A template as Markdown: placeholders in italics, a bar that does not end the cell."""
    plain = re.sub(r"`\{(\w+)\}`|\{(\w+)\}", lambda m: f"*{m.group(1) or m.group(2)}*", text)
    return plain.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    Path(sys.argv[1], "errors.md").write_text(error_page(), encoding="utf-8")
