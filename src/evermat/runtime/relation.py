"""The facts of one relation of a materialisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from evermat.columns import Batch, Dictionary
from evermat.language import Relation as RelationSchema
from evermat.runtime.engine import Engine
from evermat.runtime.rows import Tabular

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@final
class Relation(Tabular):
    """The facts of one relation, explicit and derived, as they are when they are read. Iteration is in no particular order.

    Where equal terms have a representative, these are the expanded facts, over all equal terms.
    """

    def __init__(self, relation: RelationSchema, engine: Engine, *, expanded: bool = True) -> None:
        super().__init__(relation)
        self._engine, self._expanded = engine, expanded

    @property
    def _dictionary(self) -> Dictionary:
        return self._engine.snapshot().dictionary

    @property
    def representatives(self) -> Relation:
        """The facts over representatives only, one for each class of equal terms."""
        return Relation(self._relation, self._engine, expanded=False)

    def _knows(self, symbol: str) -> bool:
        return self._engine.distributed or super()._knows(symbol)

    def _chunks(self) -> tuple[Dictionary, Iterator[Batch]]:
        reading = self._engine.snapshot()
        return reading.dictionary, reading.scan(self._relation.name, expanded=self._expanded)

    def _found(self, row: Batch) -> bool:
        return self._engine.snapshot().contains(self._relation.name, row, expanded=self._expanded)

    def __len__(self) -> int:
        return self._engine.snapshot().count(self._relation.name, expanded=self._expanded)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The facts as a DataFrame of the caller's SparkSession; tasks expand what is stored compactly, and read what is in files."""
        return self._engine.dataframe(self._relation.name, spark, expanded=self._expanded)

    def __repr__(self) -> str:
        return f"<Relation {self._relation.name}({', '.join(self.columns)}): {len(self):,} facts>"
