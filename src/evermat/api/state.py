"""State directories: opened, listed, compared, asked and cleaned up."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

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
    engine: str | SparkSession = "memory",
    scratch: str | PathLike[str] | None = None,
) -> Materialisation:
    """Opens a state directory: all facts of a version are available again, and nothing is derived.

    Reading needs no lock. The first update takes it, and is refused if another process has written meanwhile; old versions cannot be
    updated at all.

    Args:
        path: the state directory.
        version: which version; the newest if left out.
        write: whether to take the lock now, so that no other process can write as long as the materialisation is open.
        engine: `memory`, or your own SparkSession, whose executors then hold the facts; they must see the state directory. A state of which
            relations are stored compactly is held by this process in any case.
        scratch: with Spark, a directory for temporary files; on a cluster, one that all machines share.

    Raises:
        StateError: there is no such state or version, it is damaged, or another writes to it.
        ResourceError: Spark gave up, the scratch directory is full, or executors do not see the state directory.
    """
    from evermat.api.materialisation import Materialisation
    from evermat.runtime import open_state

    check_engine(engine)
    opened, binding, stats = open_state(
        Path(path),
        version,
        write=write,
        session=None if isinstance(engine, str) else engine,
        scratch=None if scratch is None else Path(scratch),
    )
    return Materialisation(opened, binding, stats)


def query(path: str | PathLike[str], text: str, version: int | None = None, *, representatives: bool = False) -> Answer:
    """Answers a query about a state directory, of which only the relations that it reads are loaded.

    The rows of the answer are computed while they are read, once; see `Materialisation.query`.

    Args:
        path: the state directory.
        text: the query.
        version: which version; the newest if left out.
        representatives: whether, of equal terms, only the representative is wanted.

    Raises:
        ProgramError: with all errors of the query at once.
        StateError: there is no such state or version, or it is damaged.
    """
    from evermat.runtime import query_version

    return query_version(Path(path), version, text, representatives=representatives)


def versions(path: str | PathLike[str]) -> list[Version]:
    """The versions of a state directory that are kept, oldest first.

    Raises:
        StateError: there is no such state, or it is damaged.
    """
    from evermat.store import open_reader

    with open_reader(path) as reader:
        return reader.versions()


def changes(path: str | PathLike[str], first: int | None = None, last: int | None = None) -> dict[str, pa.Table]:
    """What the versions `first` to `last` of a state directory changed, by relation: all that are kept if left out.

    The tables have the columns of the relation, `_op` (`+` or `-`) and `_version`.

    Raises:
        StateError: there is no such state or version, or it is damaged.
    """
    from evermat.runtime import changes_between

    return changes_between(Path(path), first, last)


def vacuum(path: str | PathLike[str], keep: int) -> tuple[int, int]:
    """Keeps only the newest versions of a state directory, and removes the files that no other needs.

    Args:
        path: the state directory.
        keep: how many versions to keep, at least 1.

    Returns:
        How many files were removed, and how many bytes they had.
    """
    from evermat.store import Store

    with Store.open(path) as store:
        store.lock()
        store.refresh()
        return store.vacuum(keep)
