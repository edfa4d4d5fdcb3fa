"""What the readers of changes share: the changes of one relation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.io.blocks import Block, blocks
from evermat.io.error_report import Findings
from evermat.io.formats.registry import UpdateFiles
from evermat.io.locate import file_ref
from evermat.io.open import failing, open_text
from evermat.io.schema import nullary, table_from_values
from evermat.language import Relation, RelationNames, Value

INSERT, DELETE = "+", "-"
SIGNS = {INSERT: True, DELETE: False}


class ChangedRows(NamedTuple):
    """Facts of one relation in the order of the file, and whether each is inserted.

    The table of a relation without columns cannot say how often its fact is there: the signs do.
    """

    relation: Relation
    table: pa.Table
    signs: npt.NDArray[np.bool_]


class WrittenRows(NamedTuple):
    """Facts of one relation, sorted, that an update inserted (`+`) or deleted (`-`)."""

    sign: str
    relation: Relation
    batches: Iterable[pa.RecordBatch]


Reader = Callable[[Block, RelationNames, Findings], Iterable[ChangedRows]]


def read_text_changes(update: UpdateFiles, read: Callable[..., Iterable[ChangedRows]]) -> list[ChangedRows]:
    """The changes of a file that is read by blocks, by a `Reader` that can also leave out to `check_terms`."""
    (path,) = update.paths
    read = partial(read, check_terms=update.checks_terms)
    with failing(path, "changes are"), open_text(file_ref(path)) as stream:
        return read_block_changes(blocks(stream, size=update.size), update.relations, Findings(str(path)), read)


def read_block_changes(
    text: Iterable[Block], relations: RelationNames, findings: Findings, read: Reader
) -> list[ChangedRows]:
    """The changes of all blocks, in their order."""
    found: list[ChangedRows] = []
    with findings:
        for block in text:
            part = list(read(block, relations, findings))
            if not findings.problems:
                found += part
    return found


class Grouped:
    """Changes that were read one by one, by relation."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[list[list[Value]], list[bool]]] = {}

    def add(self, relation: Relation, values: list[Value], *, insert: bool) -> None:
        rows, signs = self._found.setdefault(relation.name, ([], []))
        rows.append(values)
        signs.append(insert)

    def facts(self, relations: RelationNames) -> Iterator[ChangedRows]:
        for name, (rows, signs) in self._found.items():
            relation = relations[name]
            table = (
                table_from_values(relation, list(zip(*rows, strict=True)))
                if relation.columns
                else nullary(present=True)
            )
            yield ChangedRows(relation, table, np.array(signs, np.bool_))
