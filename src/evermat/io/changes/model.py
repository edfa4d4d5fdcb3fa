"""What the readers of changes share: the changes of one relation, and messages about signs and relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.io.blocks import Block
from evermat.io.error_report import Findings
from evermat.io.schema import nullary, table_from_values
from evermat.language.model import Relation
from evermat.language.terms import Value

INSERT, DELETE = "+", "-"
SIGNS = {INSERT: True, DELETE: False}


class ChangedRows(NamedTuple):
    """Facts of one relation in the order of the file, and whether each is inserted.

    The table of a relation without columns cannot say how often its fact is there: the signs do.
    """

    relation: Relation
    table: pa.Table
    signs: npt.NDArray[np.bool_]


Reader = Callable[[Block, Mapping[str, Relation], Findings], Iterable[ChangedRows]]


class Grouped:
    """Changes that were read one by one, by relation."""

    def __init__(self) -> None:
        self._rows: dict[str, list[list[Value]]] = {}
        self._signs: dict[str, list[bool]] = {}

    def add(self, relation: Relation, values: list[Value], *, insert: bool) -> None:
        """Adds the values of one fact."""
        self._rows.setdefault(relation.name, []).append(values)
        self._signs.setdefault(relation.name, []).append(insert)

    def facts(self, relations: Mapping[str, Relation]) -> Iterator[ChangedRows]:
        """All of them."""
        for name, rows in self._rows.items():
            relation = relations[name]
            table = (
                table_from_values(relation, list(zip(*rows, strict=True)))
                if relation.columns
                else nullary(present=True)
            )
            yield ChangedRows(relation, table, np.array(self._signs[name], np.bool_))
