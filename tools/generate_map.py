"""The map in CONTRIBUTING: every package and module with the first line of its docstring. `python -m tools.generate_map PAGE`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "evermat"
BEGIN, END = "<!-- map: made by `make docs` -->\n", "<!-- end of the map -->\n"

# From top to bottom: a floor imports only those above it, and only what their faces export; `tests/test_layers.py` checks it.
FLOORS = (
    *("core", "language", "plan", "algebra", "reasoning", "engine", "kernels", "columns"),
    *("io", "owl", "store", "spark", "runtime", "api", "cli"),
)


def map_of_floors() -> str:
    """Returns a table of the floors, and below it, folded, the modules of each."""
    lines = ["| floor | what lives there |", "| --- | --- |"]
    lines += [f"| `{name}/` | {_first_line(ROOT / name / '__init__.py')} |" for name in FLOORS]
    for name in FLOORS:
        lines += [
            "",
            f"<details><summary><code>{name}/</code></summary>",
            "",
            *_modules(ROOT / name, ""),
            "",
            "</details>",
        ]
    lines += ["", *_modules(ROOT, "", deep=False)]
    return "\n".join(lines) + "\n"


def _modules(folder: Path, indent: str, *, deep: bool = True) -> list[str]:
    lines = [
        f"{indent}- `{path.stem}`: {_first_line(path)}"
        for path in sorted(folder.glob("*.py"))
        if path.name != "__init__.py"
    ]
    for room in sorted(p.parent for p in folder.glob("*/__init__.py")) if deep else ():
        lines += [f"{indent}- `{room.name}/`: {_first_line(room / '__init__.py')}", *_modules(room, indent + "  ")]
    return lines


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise SystemExit(f"{path}: a module without a docstring")
    return text.partition("\n")[0].replace("|", "\\|")


def with_map(page: str) -> str:
    """Returns a page with the map between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{map_of_floors()}\n{END}{after}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_map(target.read_text(encoding="utf-8")), encoding="utf-8")
