"""The data source `evermat` of Spark: reads what a relation of a state was and how it changed, and writes changes into a state."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from evermat.core import check_session, did_you_mean, wrong_argument
from evermat.runtime.streams.change_source import (
    ENDING,
    READING_OPTIONS,
    RELATION,
    STATE,
    ChangeReader,
    ChangeStreamReader,
    StateFeed,
    schema_of,
)
from evermat.store import state_location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from evermat.runtime.streams.state_sink import StateWriter, StreamStateWriter

# Spark's Python workers load this module again and again: what only some of them need is imported where it is used.


def register_source(spark: SparkSession) -> None:
    """Makes state directories a data source of a session: `format("evermat")` of `spark.read`, `readStream`, `write` and `writeStream`.

    Executors must have Evermat installed, and to read must see the state directory.

        evermat.register_source(spark)
        spark.readStream.format("evermat").option("state", "state/").option("relation", "path").load()
        frame.write.format("evermat").option("state", "state/").option("relation", "edge").mode("append").save()

    What is read are changes: rows have the columns of a relation, `_op` (`+` or `-`) and `_version`. Options are `state`, the directory;
    `relation`; `startingVersion`: the first version whose changes are wanted, or `earliest`: all facts of the oldest version that is kept, as `+`,
    and then the changes, which is the default, or `latest`: what changes from now on; and without a stream `endingVersion`. A stream that falls so
    far behind that a version it needs is no longer kept ends with an error; with `failOnDataLoss=false` it goes on with the first version that is
    kept. With `maxVersionsPerTrigger` a batch has the changes of so many versions at most.

    What is written are changes or facts: rows have the columns of a relation, and perhaps one such as `op` or `_change_type` for what a row does, as for
    `Materialisation.follow`; without it all rows are inserted. Options are `state`; `relation`, or none if rows have `relation` and `values`;
    `algorithm` as for `Materialisation.update`; and `scratch`, a directory that all machines share, for rows that are too many for a message.
    The mode `append` makes the changes, as one version; `overwrite`, and the output mode `complete` of a stream, replaces all explicit facts of the
    relation by the rows. A micro-batch is written exactly once. So is a batch with the options `txnAppId` and `txnVersion`, unless the state has
    that version of the application, or a newer one. The process of the driver's machine that commits opens the state, holds its lock meanwhile,
    and derives what follows; if another holds the lock, the write fails.
    """
    check_session("spark", spark)
    spark.dataSource.register(EvermatDataSource)


class EvermatDataSource(DataSource):  # type: ignore[misc]
    """The data source `evermat`; `register_source` lists its options."""

    @classmethod
    def name(cls) -> str:
        return "evermat"

    def feed(self) -> StateFeed:
        return StateFeed(state_location(STATE, self._required(STATE)), self._required(RELATION))

    def _required(self, option: str) -> str:
        if option not in self.options:
            raise ValueError(f'the option `{option}` is missing: .option("{option}", …)')
        return str(self.options[option])

    def _check_options(self, known: Collection[str]) -> None:
        """Raises an `ArgumentError` for an option that would not be honoured."""
        by_name = {name.lower(): name for name in known}
        for name in self.options:
            if name.lower() not in by_name:
                has = ", ".join(f"`{one}`" for one in known)
                hint = did_you_mean(name, by_name)
                what = (
                    f"the data source `evermat` has no option `{name}` here: it has {has}{'; ' if hint else ''}{hint}"
                )
                raise wrong_argument(what)

    def schema(self) -> StructType:
        return schema_of(self.feed().columns)

    def reader(self, schema: StructType) -> ChangeReader:
        self._check_options(READING_OPTIONS)
        return ChangeReader(self.feed(), schema, self.options)

    def streamReader(self, schema: StructType) -> ChangeStreamReader:  # noqa: N802
        self._check_options(READING_OPTIONS)
        if ENDING in self.options:
            raise ValueError(f"a stream has no `{ENDING}`: read the changes without `readStream`")
        return ChangeStreamReader(self.feed(), schema, self.options)

    def writer(self, schema: StructType, overwrite: bool) -> StateWriter:
        from evermat.runtime.streams.state_sink import BATCH_OPTIONS, StateWriter

        self._check_options(BATCH_OPTIONS)
        self._required(STATE)
        return StateWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamStateWriter:  # noqa: N802
        from evermat.runtime.streams.state_sink import STREAM_OPTIONS, StreamStateWriter

        self._check_options(STREAM_OPTIONS)
        self._required(STATE)
        return StreamStateWriter(self.options, schema, overwrite=overwrite)
