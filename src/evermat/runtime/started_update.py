"""The half of `EngineUpdate` that both engines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from evermat.columns import Batch, Dictionary, decode_rows
from evermat.engine import BaseUpdate, Run
from evermat.language import Row, Type

_U = TypeVar("_U", bound=BaseUpdate[Any, Any, Any, Any])


class StartedUpdate(ABC, Generic[_U]):
    """One update of an engine; its sets exist inside the context only."""

    sets: _U

    def __init__(self, state: Any, run: Run, before: Any) -> None:
        self._state, self._run, self._before = state, run, before

    @abstractmethod
    def _begin(self) -> _U:
        """The sets of the update, before anything is derived."""

    def __enter__(self) -> Self:
        self.sets = self._begin().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sets.__exit__(kind, error, trace)

    @property
    def rule_change(self) -> tuple[Any, Any, Any] | None:
        if self._before is None:
            return None
        return self._before.materialised, *self._state.changed_rules(self._before)

    @property
    def explicit(self) -> Mapping[str, int]:
        return {"inserted": self.sets.given_inserted.size, "deleted": self.sets.given_deleted.size}


def decoded_rows(batches: Iterable[Batch], types: Sequence[Type], dictionary: Dictionary) -> Iterator[Row]:
    """The rows of batches as values."""
    for batch in batches:
        yield from decode_rows(batch, types, dictionary)
