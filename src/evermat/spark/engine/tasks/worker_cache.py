"""Facts that a worker process keeps from job to job: what does not change is read once, and of what grows only what is new.

Whether something is kept makes no difference but time: what a task asks for is decided by the names of files, which are never written twice.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from evermat.columns.storage.dictionary import Dictionary
from evermat.spark.engine.tasks.serialization import Part, Shape
from evermat.spark.engine.tasks.set_expressions import Files
from evermat.spark.engine.tasks.task_table import Holding

MOST_KEPT = 16_000_000  # facts

_kept: OrderedDict[tuple[str, Shape, Part], _Kept] = OrderedDict()


@dataclass
class _Kept:
    holding: Holding
    dictionary: Dictionary
    paths: set[str]


def kept(name: str, shape: Shape, leaf: Files, part: Part, dictionary: Dictionary) -> Holding:
    """What is in some files, in a part of all facts; only to be read."""
    key = (name, shape, part)
    files = [file for file in leaf.files if file.bucket in part]
    paths = {file.path for file in files}
    found = _kept.pop(key, None)
    if found is None or found.dictionary is not dictionary or not found.paths <= paths:
        found = _Kept(Holding(name, shape, dictionary), dictionary, set())
    found.holding.append(leaf, [file for file in files if file.path not in found.paths], part)
    found.paths = paths
    _kept[key] = found  # the last one that is let go of
    while sum(one.holding.table.count for one in _kept.values()) > MOST_KEPT and len(_kept) > 1:
        _kept.popitem(last=False)
    if found.holding.table.count > MOST_KEPT:
        del _kept[key]
    return found.holding
