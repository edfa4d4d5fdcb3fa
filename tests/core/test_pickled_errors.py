"""Errors travel between processes and threads: what is pickled and read again says the same."""

from __future__ import annotations

import copy
import pickle
import string
from typing import Any

import pytest

import evermat
from evermat.core import EvermatError, Problem, Source, Span
from evermat.core.error_catalogue import KINDS


def subclasses(class_: type[EvermatError]) -> set[type[EvermatError]]:
    return {class_}.union(*(subclasses(one) for one in class_.__subclasses__()))


CLASSES = sorted(subclasses(EvermatError), key=lambda class_: class_.__name__)


def problem(kind: Any) -> Problem:
    """A problem of a kind, with a value for everything that its texts mention."""
    texts = string.Formatter()
    names = {name for text in (kind.sentence, kind.note) for _, name, _, _ in texts.parse(text) if name}
    source = Source("p.dl", "a(1).\nb(2).\n")
    return Problem(kind, {name.split(".")[0]: f"<{name}>" for name in names}, source, Span(6, 7), "do this")


def same(read: BaseException, error: EvermatError) -> bool:
    assert isinstance(read, EvermatError)
    rendered = [[one.render() for one in both.problems] for both in (read, error)]
    return (type(read), str(read), rendered[0], read.exit_code) == (
        type(error),
        str(error),
        rendered[1],
        error.exit_code,
    )


@pytest.mark.parametrize("class_", CLASSES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_kind_of_error_is_the_same_after_a_round_trip(class_: type[EvermatError], protocol: int) -> None:
    problems = [problem(kind) for kind in KINDS]
    for error in [*map(class_, problems), class_(problems), class_(iter(problems[:2])), class_([])]:
        assert same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert same(copy.copy(error), error)
    assert same(copy.deepcopy(error), error)


def test_what_was_added_to_an_error_is_kept() -> None:
    error = evermat.DataError(problem(KINDS[0]))
    error.add_note("while this was read")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while this was read"]


def test_errors_as_they_are_raised() -> None:
    m = evermat.Program.parse(".decl a(x:number)").materialise()
    for wrong in (
        lambda: evermat.Program.parse("a(1)."),
        lambda: m.update({"b": [(1,)]}),
        lambda: m.update({"a": [("x",)]}),
        lambda: evermat.open("/nonexistent"),
        lambda: m.update(limit_rounds=-1),
    ):
        with pytest.raises(EvermatError) as raised:
            wrong()
        assert same(pickle.loads(pickle.dumps(raised.value)), raised.value)
