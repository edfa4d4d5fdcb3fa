"""Facts that the driver has, into files of their buckets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.table import Batch
from evermat.spark.engine.job_runner import Cluster
from evermat.spark.engine.tasks.serialization import (
    Amounts,
    FactFile,
    Shape,
    buckets_of,
    by_bucket,
    to_arrow,
    write_file,
)


def written(
    cluster: Cluster, shape: Shape, facts: Batch, dictionary: Dictionary, amounts: Amounts | None = None
) -> Iterator[FactFile]:
    """Files of facts, of which none is there twice; with amounts if there are any."""
    for bucket, places in by_bucket(buckets_of(facts, shape, cluster.buckets, dictionary)):
        own = None if amounts is None else amounts[places]
        table = to_arrow(np.ascontiguousarray(facts[:, places]), shape, dictionary, own)
        yield cluster.adopt(write_file(table, Path(cluster.folder), bucket))
