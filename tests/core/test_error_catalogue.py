"""The catalogue of errors is in order."""

from __future__ import annotations

import re
from pathlib import Path

from evermat.core import error_catalogue
from evermat.core.error_catalogue import KINDS
from tools.generate_error_page import _FAMILIES


def test_numbers_of_errors_are_used_once() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(codes) == len(set(codes))


def test_errors_stand_in_the_section_of_their_hundred_in_order() -> None:
    text = Path(error_catalogue.__file__).read_text(encoding="utf-8")
    found = re.findall(r"^# --- (\d)00-(\d)99: (.*?) -+$|^[A-Z0-9_]+ = _kind\(\s*(\d+)", text, re.MULTILINE)
    titles, codes, section = [], [], 0
    for first, last, title, code in found:
        if title:
            assert first == last
            section = int(first)
            titles.append((section, title))
        else:
            assert int(code) // 100 == section
            codes.append(int(code))
    assert codes == sorted(kind.code for kind in KINDS)
    assert titles == [(digit, name[0].lower() + name[1:]) for digit, (name, _) in sorted(_FAMILIES.items())]
