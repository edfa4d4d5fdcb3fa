"""Functions over state directories: open, list versions, compare, query, vacuum."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evermat.api.program import check_engine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.api.materialisation import Materialisation
    from evermat.runtime import Answer
    from evermat.store import Version


def open(  # noqa: A001
    path: str | PathLike[str],
    version: int | None = None,
    *,
    write: bool = False,
    keep: int | str | None = None,
    engine: Literal["memory"] | SparkSession = "memory",
    scratch: str | PathLike[str] | None = None,
) -> Materialisation:
    """Opens a version of a state directory without deriving anything.

    Reading needs no lock. The first update takes the lock, and fails if another process has written meanwhile. Only the newest version can be updated.

    Args:
        path: the state directory.
        version: the number of the version; by default the newest.
        write: whether to take the lock now, so that no other process can write while the materialisation is open.
        keep: how many versions the state keeps from the next one on: a number, or an age such as `12h` or `30d`. By default what it did,
            or 1,000.
        engine: `memory`, or your own SparkSession. Its executors then hold the facts, and must see the state directory. If the state has
            relations with storage schemes, this process holds the facts with either engine.
        scratch: with Spark only, a directory for temporary files; on a cluster, one that all machines share.

    Raises:
        StateError: the state or version does not exist or is damaged, or another process writes to it.
        ResourceError: Spark failed, the scratch directory is full, or executors do not see the state directory.
        ProgramError: there is no such engine, or `scratch` was given without Spark.
        TypeError: the engine is neither a name nor a SparkSession.
    """
    from evermat.api.materialisation import Materialisation
    from evermat.runtime import open_state

    check_engine(engine, scratch=scratch is not None)
    opened, binding, stats = open_state(
        Path(path),
        version,
        write=write,
        keep=keep,
        session=None if isinstance(engine, str) else engine,
        scratch=None if scratch is None else Path(scratch),
    )
    return Materialisation(opened, binding, stats)


def query(path: str | PathLike[str], text: str, version: int | None = None, *, representatives: bool = False) -> Answer:
    """Answers a query about a state directory, and loads only the relations that the query reads.

    Reading the answer computes its rows, once; see `Materialisation.query` for the form of queries.

    Args:
        path: the state directory.
        text: the query.
        version: the number of the version; by default the newest.
        representatives: whether to return only the representative of equal terms.

    Raises:
        ProgramError: the query has errors; all of them are reported at once.
        StateError: the state or version does not exist or is damaged.
    """
    from evermat.runtime import query_version

    return query_version(Path(path), version, text, representatives=representatives)


def versions(path: str | PathLike[str]) -> list[Version]:
    """Returns the versions that a state directory keeps, oldest first.

    Raises:
        StateError: the state does not exist or is damaged.
    """
    from evermat.store import open_reader

    with open_reader(path) as reader:
        return reader.versions()


def changes(path: str | PathLike[str], first: int | None = None, last: int | None = None) -> dict[str, pa.Table]:
    """Returns the changes of the versions `first` to `last` of a state directory, by relation; by default of all kept versions.

    The tables have the columns of the relation, `_op` (`+` or `-`) and `_version`.

    Raises:
        StateError: the state or version does not exist or is damaged.
    """
    from evermat.runtime import changes_between

    return changes_between(Path(path), first, last)


def vacuum(path: str | PathLike[str], keep: int | str) -> tuple[int, int]:
    """Removes old versions of a state directory, and all files that the others do not need.

    Args:
        path: the state directory.
        keep: the number of versions to keep, at least 1, or an age such as `12h` or `30d`: a version is kept while the one after it is
            younger, and the newest always.

    Returns:
        The number of removed files, and their bytes.

    Raises:
        ProgramError: `keep` is neither a number nor an age.
        StateError: the state does not exist or is damaged, or another process writes to it.
        ResourceError: the disk is full or not writable; the versions are what they were.
    """
    from evermat.store import Keep, Store

    kept = Keep.of(keep)
    with Store.open_to_write(path) as store:
        return store.vacuum(kept)


def migrate(path: str | PathLike[str]) -> int:
    """Rewrites a state directory in the newest format, with all versions that it keeps; returns the number of the format.

    The first write to a state does the same. A state of the newest format stays as it is.

    Raises:
        StateError: the state does not exist or is damaged, or another process writes to it.
        ResourceError: the disk is full or not writable; the state is what it was.
    """
    from evermat.store import Store, read_format

    with Store.open_to_write(path) as store:
        return read_format(store.path)
