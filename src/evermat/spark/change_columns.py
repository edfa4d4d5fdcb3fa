"""The columns of changes that are not columns of facts: what a row does, and which row is the last.

Changes come from many producers: our own change feed has `_op` and `_version`, that of a Delta table `_change_type`, `_commit_version` and
`_commit_timestamp`, anything else a column `op` and perhaps `sequence`. A name that is a column of the relation is never one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import error_catalogue as errors
from evermat.io import Findings, shown

OP, SEQUENCE = "op", "sequence"
SIGN_COLUMNS = (OP, "_change_type", "_op")
COMMIT_COLUMNS = ("_commit_version", "_version", "_commit_timestamp")
ORDER_COLUMNS = (SEQUENCE, *COMMIT_COLUMNS)  # the first of them that is present decides
INSERTIONS = ("+", "i", "insert", "update_postimage")
DELETIONS = ("-", "d", "delete", "update_preimage")

Signs = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int64]


def row_name(row: int) -> str:
    """A row of a batch, as errors name it."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class ChangeColumns:
    """Which columns of a stream say what its rows do.

    Attributes:
        sign: The column that says whether a row is inserted or deleted; None if all are inserted.
        order: The column of which the greatest value comes last; None if rows have no order.
    """

    sign: str | None
    order: str | None

    @classmethod
    def among(cls, names: Collection[str], facts: Collection[str], findings: Findings) -> ChangeColumns:
        """The columns of that kind among some names, of which those of facts are not; two that compete are a finding."""
        free = [name for name in names if name not in facts]
        signs = [name for name in SIGN_COLUMNS if name in free]
        if len(signs) > 1:
            both = " and ".join(f"`{name}`" for name in signs)
            findings.whole(errors.STREAM_COLUMNS, what=f"there are several columns for what a row does: {both}")
        order = next((name for name in ORDER_COLUMNS if name in free), None)
        return cls(signs[0] if signs else None, order)

    @property
    def deletes_first(self) -> bool:
        """Whether, of a deletion and an insertion that are equally late, the insertion counts: both belong to one commit, which says what is left."""
        return self.order in COMMIT_COLUMNS

    def others(self, names: Collection[str], facts: Collection[str]) -> list[str]:
        """The names that are neither columns of facts nor known here."""
        known = {*facts, *ORDER_COLUMNS, *SIGN_COLUMNS}
        return [name for name in names if name not in known]

    def signs(self, rows: pa.Table, findings: Findings, name_of: Callable[[int], str] = row_name) -> Signs:
        """Whether each row is inserted; what is neither an insertion nor a deletion is a finding, for which `name_of` names the row."""
        if self.sign is None:
            return np.ones(rows.num_rows, np.bool_)
        column = pc.cast(rows[self.sign], pa.large_string())
        folded = pc.utf8_lower(column)
        inserted, deleted = (
            pc.is_in(folded, pa.array(words, pa.large_string())).to_numpy() for words in (INSERTIONS, DELETIONS)
        )
        for row in np.flatnonzero(~(inserted | deleted)).tolist():
            position, value = f"{name_of(row)}, column `{self.sign}`", column[row].as_py()
            if value is None:
                findings.whole(errors.NULL_VALUE, where=position)
            else:
                findings.whole(errors.STREAM_SIGN, value=f"{shown(value)} in {position},")
        signs: Signs = inserted
        return signs

    def check_order(self, rows: pa.Table, findings: Findings, name_of: Callable[[int], str] = row_name) -> None:
        """Notes a row that has no position in the order of the rows."""
        if self.order is not None and (column := rows[self.order]).null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            findings.whole(errors.NULL_VALUE, where=f"{name_of(row)}, column `{self.order}`")

    def ranks(self, rows: pa.Table) -> Ranks:
        """The rank of each row in the order of the rows, all of which have one; equal values have equal ranks."""
        if self.order is None:
            return np.zeros(rows.num_rows, np.int64)
        coded = rows[self.order].combine_chunks().dictionary_encode()
        of_values = np.empty(len(coded.dictionary), np.int64)
        of_values[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(of_values))
        found: Ranks = of_values[coded.indices.to_numpy()]
        return found
