"""Errors have no frames of Evermat where somebody types, and all of them elsewhere."""

from __future__ import annotations

import doctest
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.api import materialisation, program
from evermat.core import EvermatError, public_class, without_internals

OWN = str(Path(evermat.__file__).parent)


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody types, and nobody debugs; measuring coverage looks like it."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.delenv("EVERMAT_TRACEBACK", raising=False)
    monkeypatch.setattr(sys, "gettrace", lambda: None)


def raised_by(call: Callable[[], Any]) -> EvermatError:
    with pytest.raises(EvermatError) as raised:
        call()
    return raised.value


def files(error: BaseException | None) -> list[str]:
    return [] if error is None else [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def own_frames(error: BaseException) -> int:
    return sum(name.startswith(OWN) for name in files(error))


def made() -> evermat.Materialisation:
    return evermat.Program.parse(".decl a(x:number) .output a").materialise()


CALLS: dict[str, Callable[[Path], Any]] = {
    "parse": lambda _: evermat.Program.parse("a("),
    "read": lambda path: evermat.Program.read(path / "none.dl"),
    "inputs": lambda path: evermat.Program.parse(".decl a(x:number) .input a").materialise(inputs=path),
    "rdf": lambda path: evermat.Program.parse().materialise(rdf=path / "none.nt"),
    "ontology": lambda path: evermat.translate(path / "none.owl"),
    "parquet": lambda path: evermat.Program.parse('.decl a(x:number) .input a(filename="x.parquet")').materialise(inputs=path),
    "facts": lambda _: made().update({"a": [("text",)]}),
    "query": lambda _: made().query("a("),
    "snapshot": lambda _: made().snapshot().query("b(x)"),
    "stream": lambda _: list(made().stream([{"insert": {"b": [(1,)]}}])),
    "files": lambda path: list(made().update_files(path / "none.tsv")),
    "write": lambda path: made().write_outputs(path / "x.parquet" / "x"),
    "open": lambda path: evermat.open(path / "none"),
    "versions": lambda path: evermat.versions(path / "none"),
    "vacuum": lambda path: evermat.vacuum(path, "often"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.parquet").write_text("no Parquet")
    return tmp_path


@pytest.mark.parametrize("name", CALLS)
def test_frames_where_somebody_types(name: str, folder: Path, typing: None) -> None:
    error: BaseException | None = raised_by(lambda: CALLS[name](folder))
    assert set(files(error)) == {__file__}
    while error is not None:  # causes stay, without their way through Evermat
        assert not own_frames(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("name", CALLS)
def test_frames_in_a_script(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "ps1", raising=False)
    assert own_frames(raised_by(lambda: CALLS[name](folder)))


def test_frames_for_those_who_look_for_a_flaw(folder: Path, typing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    call = lambda: CALLS["inputs"](folder)  # noqa: E731
    monkeypatch.setenv("EVERMAT_TRACEBACK", "full")
    assert own_frames(raised_by(call)) > 3
    monkeypatch.setenv("EVERMAT_TRACEBACK", "")
    assert not own_frames(raised_by(call))
    monkeypatch.setattr(sys, "gettrace", lambda: print)
    assert own_frames(raised_by(call)) > 3


def test_frames_of_functions_that_are_called_back(typing: None) -> None:
    m = made()

    def rows() -> Iterator[tuple[int]]:
        yield (1,)
        m.update({"a": [(2,)]})

    error = raised_by(lambda: m.update({"a": rows()}))
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert (names[-1], own_frames(error)) == ("rows", 0)


def test_causes_and_other_errors_stay(typing: None, tmp_path: Path) -> None:
    error = raised_by(lambda: evermat.Program.parse().materialise(rdf=tmp_path / "none.nt"))
    assert isinstance(error.__cause__ or error.__context__, FileNotFoundError | EvermatError | type(None))

    def fail() -> None:
        raise RuntimeError("flaw") from ValueError("cause")

    with pytest.raises(RuntimeError) as raised:
        without_internals(fail)()
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(TypeError) as wrong:
        evermat.Program.parse(3)  # type: ignore[arg-type]
    assert own_frames(wrong.value)


def test_a_function_stays_what_it_is() -> None:
    @public_class
    class Example:
        @classmethod
        def made(cls) -> type:
            return cls

        @staticmethod
        def twice(x: int, *, y: int = 2) -> int:
            """Documented."""
            return x * y

        def items(self) -> Iterator[int]:
            yield from (1, 2)

        @property
        def one(self) -> int:
            return 1

    assert (Example.made(), Example.twice(3), Example.twice(3, y=1)) == (Example, 6, 3)
    assert (list(Example().items()), Example().one) == ([1, 2], 1)
    assert str(inspect.signature(Example.twice)) == "(x: 'int', *, y: 'int' = 2) -> 'int'"
    assert (Example.twice.__doc__, Example.twice.__module__) == ("Documented.", __name__)


def test_a_generator_can_be_sent_to_and_closed(typing: None) -> None:
    closed = []

    @without_internals
    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    items: Any = numbers()
    assert next(items) == 1
    items.close()
    assert closed == [True]


def test_examples_of_public_methods_are_still_found() -> None:
    found = {
        test.name.rpartition(".")[2] for module in (materialisation, program) for test in doctest.DocTestFinder().find(module)
        if test.examples
    }  # fmt: skip
    assert "stream" in found
