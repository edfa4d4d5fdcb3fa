"""Writes the dependency graph of the installed Python packages as facts: facts.py FOLDER."""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions
from pathlib import Path


def normal(name: str) -> str:
    """The canonical spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(folder: Path) -> None:
    """Reads what is installed beside this Python."""
    found = {normal(d.metadata["Name"]): d.requires or [] for d in distributions() if d.metadata["Name"]}
    edges = set()
    for package, requirements in found.items():
        for requirement in requirements:
            name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
            if name and "extra ==" not in requirement and normal(name.group()) in found:
                edges.add((package, normal(name.group())))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "installed.facts").write_text("".join(f"{p}\n" for p in sorted(found)), encoding="utf-8")
    (folder / "requires.facts").write_text("".join(f"{p}\t{q}\n" for p, q in sorted(edges)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
