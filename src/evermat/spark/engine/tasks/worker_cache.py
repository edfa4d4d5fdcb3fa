"""Facts that a worker process keeps from job to job: what does not change is read once, and of what grows only what is new.

Whether something is kept makes no difference but time: what a task asks for is decided by the names of files, which are never written twice.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from evermat.columns import Dictionary
from evermat.spark.engine.tasks.serialization import Part, Shape
from evermat.spark.engine.tasks.set_expressions import Files
from evermat.spark.engine.tasks.task_table import TaskTable

MOST_CACHED = 16_000_000  # facts

_cache: OrderedDict[tuple[str, Shape, Part], _Entry] = OrderedDict()


@dataclass
class _Entry:
    table: TaskTable
    dictionary: Dictionary
    paths: set[str]


def cached(name: str, shape: Shape, leaf: Files, part: Part, dictionary: Dictionary) -> TaskTable:
    """What is in some files, in a part of all facts; only to be read."""
    key = (name, shape, part)
    files = [file for file in leaf.files if file.bucket in part]
    paths = {file.path for file in files}
    found = _cache.pop(key, None)
    if found is None or found.dictionary is not dictionary or not found.paths <= paths:
        found = _Entry(TaskTable(name, shape, dictionary), dictionary, set())
    found.table.append(leaf, [file for file in files if file.path not in found.paths], part)
    found.paths = paths
    _cache[key] = found  # the last one that is let go of
    while sum(one.table.table.count for one in _cache.values()) > MOST_CACHED and len(_cache) > 1:
        _cache.popitem(last=False)
    if found.table.table.count > MOST_CACHED:
        del _cache[key]
    return found.table
