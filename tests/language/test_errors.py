"""Every error and warning about a program, as the user reads it.

Each `cases/errors/NAME.dl` has a `NAME.txt` with the whole text of all its errors; `cases/warnings` likewise. To
write the texts again: `EVERMAT_UPDATE_GOLDEN=1 python -m pytest tests/language/test_errors.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evermat import language
from evermat.core import error_catalogue as errors
from evermat.core.error_catalogue import KINDS
from evermat.core.errors import Kind, ProgramError
from evermat.language.compile import compile_program, read_source
from tests.support.golden import cases, check_golden, compile_file, compile_text

ELSEWHERE = {
    errors.UNREADABLE: "about a file, see bad_input_test",
    errors.NOT_UTF8: "about a file, see bad_input_test",
    errors.MORE_ERRORS: "about a great many errors, see bad_input_test",
    errors.NO_SUCH_RULE: "raised where rules are removed from a program",
    errors.OTHER_EQUALITY: "raised where rules are added to a program, see equality_rules_test",
    errors.COMMAND_LINE: "about an argument of a function, see tests/language/test_term_syntax.py",
    errors.NO_SUCH_RELATION: "about a name from outside of a program, see tests/runtime/test_prefixes.py",
    errors.RELATION_TWICE: "likewise",
    errors.EMPTY_QUERY: "about a query, see query_test",
    errors.MORE_THAN_A_QUERY: "about a query, see query_test",
    errors.UNBOUND_ANSWER: "about a query, see query_test",
}


@pytest.mark.parametrize("path", cases("errors"), ids=lambda path: path.stem)
def test_errors_read_as_written(path: Path):
    with pytest.raises(ProgramError) as raised:
        compile_file(path)
    check_golden(path, str(raised.value))


@pytest.mark.parametrize("path", cases("warnings"), ids=lambda path: path.stem)
def test_warnings_read_as_written(path: Path):
    check_golden(path, "\n\n".join(problem.render() for problem in compile_file(path).warnings))


def test_every_kind_about_programs_has_a_case():
    texts = [path.with_suffix(".txt").read_text() for folder in ("errors", "warnings") for path in cases(folder)]
    shown = set(re.findall(r"\[([EW]\d+)\]", "\n".join(texts)))
    sources = "".join(path.read_text() for path in Path(language.__file__).parent.rglob("*.py"))
    raised = {getattr(errors, name) for name in re.findall(r"\berrors\.([A-Z][A-Z_]+)\b", sources)}
    assert shown == {kind.label for kind in raised - ELSEWHERE.keys()}


def test_numbers_are_unique():
    assert len({kind.code for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("path", cases("errors"), ids=lambda path: path.stem)
def test_no_names_of_ours_show(path: Path):
    text = path.with_suffix(".txt").read_text()
    told = "\n".join(re.findall(r"(?:error\[E\d+\]:|= note:|= help:)(.*)", text)).replace("```", "")
    for ours in (
        r"__ANON",
        r"``",
        r"variable `[^`]*'",
        r"`[a-z]+#\d",
        r"\.groups",
        r"\.rows",
        r"\w\[\w*\]",
        r"\bNone\b",
    ):
        assert not re.search(ours, told), ours


@pytest.mark.parametrize("path", cases("errors"), ids=lambda path: path.stem)
def test_places_are_in_order_and_within_the_text(path: Path):
    with pytest.raises(ProgramError) as raised:
        compile_file(path)
    starts = [problem.span.start for problem in raised.value.problems if problem.span]
    assert starts == sorted(starts)
    assert all(0 <= start < len(path.read_text(encoding="utf-8")) for start in starts)


def test_an_error_carries_its_problems():
    with pytest.raises(ProgramError) as raised:
        compile_text("a(1).\nb(2).\n")
    assert [problem.kind for problem in raised.value.problems] == [errors.UNKNOWN_RELATION] * 2
    assert raised.value.exit_code == 2


def test_the_source_is_named_by_its_path(tmp_path: Path):
    path = tmp_path / "wrong.dl"
    path.write_text("a(1).\n")
    with pytest.raises(ProgramError, match=re.escape(f"--> {path}:1:1")):
        compile_program(read_source(path))


def test_sentences_name_what_they_need():
    # A template that asks for a detail that nobody gives would fail only when it is shown.
    for kind in KINDS:
        assert isinstance(kind, Kind)
        assert re.fullmatch(r"(?:[^{}]|\{\w+\})*", kind.sentence + kind.note), kind
