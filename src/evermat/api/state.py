"""Functions over state directories: open, list versions, compare, query, vacuum."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Literal

from evermat.api.program import NO_SANDBOX, check_cluster, check_engine
from evermat.core import (
    check_type,
    integer_argument,
    sandboxed,
    within_limits,
    without_internals,
    wrong_argument,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.api.materialisation import Materialisation
    from evermat.runtime import Answer, Opened
    from evermat.store import Version


@without_internals
def open(  # noqa: A001
    path: str | PathLike[str],
    version: int | None = None,
    *,
    write: bool = False,
    live: bool = False,
    keep: int | str | None = None,
    engine: Literal["memory"] | SparkSession = "memory",
    scratch: str | PathLike[str] | None = None,
    buckets: int | None = None,
    broadcast: int | None = None,
    sandbox: bool = False,
) -> Materialisation:
    """Opens a version of a state directory without deriving anything.

    Reading needs no lock. The first update takes the lock, and fails if another writer, in this process or in another, has it or has committed
    meanwhile. Only the newest version can be updated. `Materialisation.refresh` takes over what others commit; with `live`, each call does.

    Args:
        path: the state directory, or its URI such as `s3://bucket/folder`.
        version: the number of the version; by default the newest.
        write: whether to take the lock now, so that no other writer can write while the materialisation is open.
        live: whether each call looks for a newer version first, and takes it over. Without one that takes some microseconds.
        keep: how many versions the state keeps from the next one on: a number, or an age such as `12h` or `30d`. By default what it did,
            or 1,000.
        engine: `memory`, or your own SparkSession. Its executors then hold the facts, and must see the state directory. If the state has
            relations with storage schemes, this process holds the facts with either engine.
        scratch: with Spark only, a directory for temporary files, or `s3://BUCKET/FOLDER`; on a cluster, one that all machines share.
        buckets: with Spark only, how many parts facts are divided into; by default twice as many as there are or will be cores.
        broadcast: with Spark only, how many facts of one relation each task may read whole; larger ones are read in pieces.
        sandbox: whether others made the state: it must have no links, and what its program and change files name is read and written only below
            the paths that calls name.

    Raises:
        StateError: the state or version does not exist or is damaged, or another writer has it.
        ResourceError: Spark failed, the scratch directory is full, or executors do not see the state directory.
        ProgramError: there is no such engine, `keep` is neither a number nor an age, `scratch`, `buckets` or `broadcast` was given without Spark, or `version` with `live`.
        TypeError: the engine is neither a name nor a SparkSession, or another argument is of another type.
    """
    from evermat.api.materialisation import Materialisation
    from evermat.runtime import locate_scratch, open_state
    from evermat.store import state_location

    check_engine(engine, scratch=scratch is not None, buckets=buckets is not None, broadcast=broadcast is not None)
    check_cluster("auto", buckets=buckets, broadcast=broadcast)
    version = _version("version", version)
    if live and version is not None:
        raise wrong_argument("a `live` materialisation is always at the newest version: it has no `version`")
    session, folder = None if isinstance(engine, str) else engine, state_location("path", path)
    if sandbox and session is not None:
        raise wrong_argument(NO_SANDBOX)
    place = None if scratch is None else locate_scratch(scratch)

    def open_version(number: int | None = None, *, write: bool = False) -> Opened:
        with sandboxed(on=sandbox):
            return open_state(
                folder,
                number,
                write=write,
                keep=keep,
                session=session,
                scratch=place,
                buckets=buckets,
                broadcast=broadcast,
            )

    opened, binding, stats = open_version(version, write=write)
    return Materialisation(opened, binding, stats, open_again=open_version, live=live, sandbox=sandbox)


@without_internals
def query(
    path: str | PathLike[str],
    text: str,
    version: int | None = None,
    *,
    representatives: bool = False,
    sandbox: bool = False,
    limit_seconds: float | None = None,
    memory: int | str | None = None,
) -> Answer:
    """Answers a query about a state directory, and loads only the relations that the query reads.

    Reading the answer computes its rows, once; see `Materialisation.query` for the form of queries.

    Args:
        path: the state directory, or its URI such as `s3://bucket/folder`.
        text: the query.
        version: the number of the version; by default the newest.
        representatives: whether to return only the representative of equal terms.
        sandbox: whether others made the state: it must have no links.
        limit_seconds: stop when it takes longer.
        memory: stop when the process uses more bytes; also a text such as `4g`.

    Raises:
        ProgramError: the query has errors; all of them are reported at once.
        StateError: the state or version does not exist or is damaged.
        LimitError: a limit was reached.
        TypeError: an argument is of another type.
    """
    from evermat.engine import Limits, Run
    from evermat.runtime import query_version
    from evermat.store import state_location

    run = Run(Limits.checked(limit_seconds=limit_seconds, memory=memory))

    check_type("text", text, str, "a str")
    number = _version("version", version)
    folder = state_location("path", path)
    with sandboxed(on=sandbox):
        return query_version(folder, number, text, run, representatives=representatives)


@without_internals
def versions(
    path: str | PathLike[str],
    *,
    sandbox: bool = False,
    limit_seconds: float | None = None,
    memory: int | str | None = None,
) -> list[Version]:
    """Returns the versions that a state directory keeps, oldest first.

    `sandbox` is as for `open`, `limit_seconds` and `memory` are as for `query`.

    Raises:
        StateError: the state does not exist or is damaged.
    """
    from evermat.store import read_state, state_location

    folder = state_location("path", path)
    with within_limits(limit_seconds, memory), sandboxed(on=sandbox):
        return read_state(folder, lambda reader: reader.versions())


@without_internals
def changes(
    path: str | PathLike[str], first: int | None = None, last: int | None = None, *, sandbox: bool = False
) -> dict[str, pa.Table]:
    """Returns the changes of the versions `first` to `last` of a state directory, by relation; by default of all kept versions.

    The tables have the columns of the relation, `_op` (`+` or `-`) and `_version`. `sandbox` is as for `open`.

    Raises:
        StateError: the state or version does not exist or is damaged.
        ArgumentError: `last` is before `first`.
        TypeError: an argument is of another type.
    """
    from evermat.runtime import changes_between
    from evermat.store import state_location

    begin, end = _version("first", first), _version("last", last)
    if begin is not None and end is not None and begin > end:
        raise wrong_argument(f"`last` is {end}: use a version that is not before `first`, which is {begin}")
    folder = state_location("path", path)
    with sandboxed(on=sandbox):
        return changes_between(folder, begin, end)


@without_internals
def vacuum(path: str | PathLike[str], keep: int | str, *, sandbox: bool = False) -> tuple[int, int]:
    """Removes old versions of a state directory, and all files that the others do not need.

    Args:
        path: the state directory, or its URI such as `s3://bucket/folder`.
        keep: the number of versions to keep, at least 1, or an age such as `12h` or `30d`: a version is kept while the one after it is
            younger, and the newest always.
        sandbox: as for `open`.

    Returns:
        The number of removed files, and their bytes.

    Raises:
        ArgumentError: `keep` is neither a number nor an age.
        TypeError: an argument is of another type.
        StateError: the state does not exist or is damaged, or another process writes to it.
        ResourceError: the disk is full or not writable; the versions are what they were.
    """
    from evermat.store import Keep, Store, state_location

    kept, folder = Keep.of(keep), state_location("path", path)
    with sandboxed(on=sandbox), Store.open_to_write(folder) as store:
        return store.vacuum(kept)


@without_internals
def migrate(path: str | PathLike[str], *, sandbox: bool = False) -> int:
    """Rewrites a state directory in the newest format, with all versions that it keeps; returns the number of the format.

    The first write to a state does the same. A state of the newest format stays as it is. `sandbox` is as for `open`.

    Raises:
        StateError: the state does not exist or is damaged, or another process writes to it.
        ResourceError: the disk is full or not writable; the state is what it was.
    """
    from evermat.store import Store, read_format, state_location

    folder = state_location("path", path)
    with sandboxed(on=sandbox), Store.open_to_write(folder) as store:
        return read_format(store.path)


def _version(name: str, given: int | None) -> int | None:
    return None if given is None else integer_argument(name, given)
