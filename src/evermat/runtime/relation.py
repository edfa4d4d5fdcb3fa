"""The facts of one relation of a materialisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, final

from evermat.columns import Batch
from evermat.core import check_session
from evermat.language import Relation as RelationSchema
from evermat.runtime.engine import EngineSnapshot
from evermat.runtime.pin import Pin
from evermat.runtime.rows import EncodedRows, Tabular

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class PinnedFacts(EncodedRows):
    """The facts of a relation in one version; the dictionary of `distributed` facts has few of their symbols."""

    def __init__(
        self, relation: RelationSchema, reading: EngineSnapshot, *, expanded: bool = True, distributed: bool = False
    ) -> None:
        super().__init__(relation, reading.dictionary)
        self._reading, self._expanded, self._distributed = reading, expanded, distributed

    def count(self) -> int:
        return self._reading.count(self.relation.name, expanded=self._expanded)

    def chunks(self) -> Iterator[Batch]:
        return self._reading.scan(self.relation.name, expanded=self._expanded)

    def found(self, row: Batch) -> bool:
        return self._reading.contains(self.relation.name, row, expanded=self._expanded)

    def knows(self, symbol: str) -> bool:
        return self._distributed or super().knows(symbol)


@final
class AssertedFacts(PinnedFacts):
    """The explicit facts of a relation in one version, as they were asserted."""

    def count(self) -> int:
        return self._reading.count_explicit(self.relation.name)

    def chunks(self) -> Iterator[Batch]:
        return self._reading.scan(self.relation.name, "asserted")


@final
class Relation(Tabular):
    """The facts of one relation, explicit and derived. Iteration is in no particular order.

    Of a materialisation, these are the facts as they are when they are read: each call reads one version, and an iteration reads the one in
    which it begins. Of an `evermat.Snapshot` they never change.

    Where equal terms have a representative, these are the expanded facts, over all equal terms.
    """

    def __init__(self, name: str, pin: Callable[[], Pin], *, expanded: bool = True) -> None:
        self._name, self._pin, self._expanded = name, pin, expanded

    def _rows(self) -> EncodedRows:
        pin = self._pin()
        relation, distributed = pin.relation(self._name), pin.engine.distributed
        return PinnedFacts(relation, pin.reading, expanded=self._expanded, distributed=distributed)

    @property
    def representatives(self) -> Relation:
        """The facts over representatives only, one for each class of equal terms."""
        return Relation(self._name, self._pin, expanded=False)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The facts of one version as a lazy DataFrame of the caller's SparkSession, of which Spark knows the size.

        Tasks expand what is stored compactly. Of what is in files, they read the columns and, by pushed filters, the rows that a query needs;
        the files exist as long as the DataFrame, also if the materialisation is updated or closed.
        """
        check_session("spark", spark)
        pin = self._pin()
        relation, lease = pin.relation(self._name), pin.published.lease
        return pin.engine.dataframe(pin.reading, relation, spark, expanded=self._expanded, kept=lease)

    def __repr__(self) -> str:
        rows = self._rows()
        columns = ", ".join(column.name for column in rows.relation.columns)
        return f"<Relation {self._name}({columns}): {rows.count():,} facts>"
