"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from tools.generate_error_page import error_page
from tools.generate_map import with_map

ROOT = Path(__file__).parent.parent


def test_the_error_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == error_page(), "run `make docs`"


def test_the_map_is_up_to_date() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert with_map(page) == page, "run `make docs`"
    named = set(re.findall(r"^ *- `(\w+)`: ", page, re.MULTILINE))
    assert {p.stem for p in (ROOT / "src").rglob("*.py")} - {"__init__"} <= named


def test_files_that_are_named_exist() -> None:
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        *(p.relative_to(ROOT) for p in (ROOT / "docs").glob("*.md")),
    ]:
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:src|tests|bench|docs|examples)/[\w./-]+)`", text):
            assert (ROOT / name).exists(), f"{page} names {name}"
        for link in re.findall(r"\]\((?!http)([^)#]+)", re.sub(r"`[^`]*`", "", text)):
            assert ((ROOT / page).parent / link).exists(), f"{page} links to {link}"
