"""A materialisation: what `Program.materialise` and `evermat.open` return.

What can be read of it, `runtime.snapshot` has; here is what changes it. The module is long because the class is the public interface: most of
its lines are the docstrings of which `docs/api.md` is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from evermat.core import (
    SAVED_POSITIONS,
    Guard,
    SavedPositions,
    UpdateAlgorithm,
    check_facts,
    check_position,
    documented,
    path_arguments,
    public_class,
    sandboxed,
    watched,
    wrong_argument,
)
from evermat.engine import Limits, Run
from evermat.runtime import Engine, Pin, Readable, VersionedEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from evermat.runtime import AnyUpdate, Change, Opened, StateBinding, StreamedUpdate


@final
@public_class
class Materialisation(Readable):
    """All consequences of a program and its explicit facts, by relation, kept true by updates.

    It may be used from any threads. Each call reads the newest version, and only that; it never waits for an update. Updates, and whatever else
    changes something, take turns. What they read or call may read the materialisation, and sees it as it was before; it cannot change it.

    >>> import evermat
    >>> program = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x + 1) :- a(x).")
    >>> m = program.materialise({"a": [(1,), (2,)]})
    >>> sorted(m["b"])
    [(2,), (3,)]
    """

    def __init__(
        self,
        engine: Engine,
        binding: StateBinding | None = None,
        opened: dict[str, Any] | None = None,
        skipped: Mapping[str, int] | None = None,
        open_again: Callable[[], Opened] | None = None,
        *,
        live: bool = False,
        sandbox: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._versions = VersionedEngine(engine, binding, opened, skipped, open_again, live=live)
        #: held while a batch of a stream is processed: several streams take turns, and so does a batch whose query was stopped
        self._turn = threading.Lock()

    def _pin(self) -> Pin:
        return self._versions.pin()

    def create_views(self, spark: SparkSession, prefix: str = "") -> dict[str, str]:
        return self._versions.views.create(self._pin(), spark, prefix)

    # --- updates ---------------------------------------------------------------------------------------------
    @documented
    def update(
        self,
        insert: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        algorithm: UpdateAlgorithm = "auto",
        *,
        add_rules: str = "",
        remove_rules: str = "",
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
        position: tuple[str, str] | None = None,
    ) -> Change:
        """Inserts and deletes explicit facts, and updates everything that follows from them.

        If the materialisation has a state directory, because it was saved or opened, the update is its next version; it is durable when this
        returns. A fact that is both inserted and deleted is inserted; what changes nothing is ignored. If anything goes wrong, or a limit is
        reached, or Ctrl-C is pressed, all is as it was before.

        Args:
            insert: explicit facts to insert, by relation; rows, Arrow, pandas, polars or a Spark DataFrame.
            delete: explicit facts to delete.
            algorithm: how to maintain. {update_algorithm}. A change of rules is always
                done by DRed, and by rematerialisation where rules close a relation.
            add_rules: rules to add, as text; may contain declarations and facts.
            remove_rules: rules to remove, as text; the names of variables do not matter.
            limit_rounds: stop after so many rounds of rule application.
            limit_facts: stop when there are more facts.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes; also a text such as `4g`.
            position: the name of a stream that is followed, and how far it is with this update: see `positions`.

        Raises:
            DataError: facts do not fit their relations, or forbidden facts would follow.
            ProgramError: there is no such algorithm, or it cannot maintain this program, or rules or limits are wrong.
            TypeError: an argument is of another type.
            LimitError: a limit was reached.
            StateError: another writes to the state directory, or it holds a newer version.
            ResourceError: the update could not be written, for example because the disk is full.
        """
        from evermat.reasoning import check_algorithm

        run = Run(Limits.checked(limit_rounds, limit_facts, limit_seconds, memory))
        check_algorithm(algorithm, ())
        for name, given in (("insert", insert), ("delete", delete)):
            check_facts(name, {} if given is None else given)
        check_position("position", position)
        changes = [[({} if insert is None else insert, {} if delete is None else delete)]]
        change, _ = self._versions.update(changes, algorithm, run, rules=(add_rules, remove_rules), position=position)
        return change

    @documented
    def update_files(
        self,
        files: str | PathLike[str] | Sequence[str | PathLike[str]],
        algorithm: UpdateAlgorithm = "auto",
        *,
        base: str | None = None,
        skip_malformed: bool = False,
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
    ) -> Iterator[Change]:
        """Carries out the updates in change files, and yields what each of them changes.

        A file is one update; `x.add.nt` and `x.del.nt` side by side are one. All files are read before the first update: an error in one of
        them changes nothing. `stats` of a change has the `files` of the update, the `version` that it made, and malformed statements that were `skipped`.

        Args:
            files: one change file or several: text, `.jsonl`, `.parquet`, or RDF named `x.add.nt` and `x.del.nt`; `-` is standard input.
            algorithm: as for `update`.
            base: what relative IRIs in RDF are relative to.
            skip_malformed: whether to leave out malformed statements of RDF.
            limit_rounds: as for `update`, for each of them.
            limit_facts: likewise.
            limit_seconds: likewise.
            memory: likewise.

        Raises:
            DataError: with everything that is wrong with any of the files; as for `update`, as all others.
            ProgramError: as for `update`, also if there are no files.
            TypeError: an argument is of another type.
        """
        from evermat.io import RdfOptions, updates_of
        from evermat.reasoning import check_algorithm
        from evermat.runtime import read_change_files

        limits = Limits.checked(limit_rounds, limit_facts, limit_seconds, memory)
        check_algorithm(algorithm, self.program.strata)
        updates, skipped = updates_of(map(Path, path_arguments("files", files))), dict[str, int]()
        options = RdfOptions(base=base, skip=skip_malformed)
        named = [path for update in updates for path in update if str(path) != "-"]
        with sandboxed(named, on=self._sandbox), watched(Guard(limits.seconds, limits.memory)):
            found = read_change_files(updates, self.program, options, skipped)

        def carry_out_all() -> Iterator[Change]:
            for paths, update in zip(updates, found, strict=True):
                changes = [[(update.insert, update.delete)]]
                change, version = self._versions.update(changes, algorithm, Run(limits))
                names = list(map(str, paths))
                change.stats.update(
                    version=version,
                    files=names,
                    skipped={name: skipped[name] for name in names if name in skipped},
                )
                yield change

        return carry_out_all()

    @documented
    def stream(
        self,
        updates: Iterable[AnyUpdate],
        *,
        algorithm: UpdateAlgorithm = "auto",
        marking: bool | None = None,
        coalesce: bool = False,
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
    ) -> Iterator[Change]:
        """Carries out updates one after the other, and yields what each of them changes.

        While an update is processed, the next one, if it has arrived, is looked at: what it will delete again is inserted last, and is then removed
        without evaluating a rule. The result is the same as that of `update` for each of them. A thread reads updates, unless
        they are in a sequence; a few dozen at most are read ahead.

        If an update goes wrong its error is raised, and those before it are done.

        >>> import evermat
        >>> program = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x + 1) :- a(x).")
        >>> m = program.materialise()
        >>> for change in m.stream([{"insert": {"a": [(1,)]}}, {"insert": {"a": [(2,)]}, "delete": {"a": [(1,)]}}]):
        ...     print(change)
        <Change: 2 inserted, 0 deleted>
        <Change: 2 inserted, 2 deleted>

        Args:
            updates: each a mapping with `insert` and `delete`, both by relation as for `update`; or both as a pair; or an `evermat.StreamedUpdate`.
            algorithm: as for `update`.
            marking: whether to look ahead: True, wherever that saves rule applications; False, never; None, the default, where it saves time:
                where this update inserts nearly all that the next one deletes.
            coalesce: whether updates that have arrived when one is to be processed become one with it: a fact that is inserted and deleted meanwhile
                costs nothing, and there is one change for all of them.
            limit_rounds: as for `update`, for each of them.
            limit_facts: likewise.
            limit_seconds: likewise.
            memory: likewise.

        Raises:
            TypeError: something is not an update, or an argument is of another type.
            DataError: as for `update`, as all others.
            ProgramError: as for `update`, at once.
        """
        from evermat.reasoning import FASTER, FEWER, check_algorithm
        from evermat.runtime import follow_updates

        limits = Limits.checked(limit_rounds, limit_facts, limit_seconds, memory)
        check_algorithm(algorithm, self.program.strata)

        def process(taken: Sequence[StreamedUpdate], ahead: Sequence[StreamedUpdate]) -> Change:
            position = next((one.position for one in reversed(taken) if one.position is not None), None)
            changes, upcoming = ([[(one.insert, one.delete)] for one in updates] for updates in (taken, ahead))
            look = None if marking is False else (upcoming, FEWER if marking else FASTER)
            change, _ = self._versions.update(changes, algorithm, Run(limits), position=position, look=look)
            change.stats["updates"] = len(taken)
            return change

        return follow_updates(updates, process, coalesce=coalesce)

    def follow(
        self,
        frame: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        relation: str | None = None,
        available_now: bool = False,
        interval: str | float | None = None,
        algorithm: UpdateAlgorithm = "auto",
        marking: bool | None = None,
        coalesce: bool = False,
    ) -> StreamingQuery:
        """Starts a query of Structured Streaming that updates this with a streaming DataFrame: a micro-batch is one update.

        The stream has a column `op`, which is `+` or `insert` for a fact to insert and `-` or `delete` for one to delete, or `_change_type` as in a
        change data feed of Delta; and either the columns of `relation`, in any order, or `relation` and `values`, an array of texts as in a change
        file. If a row of a batch inserts a fact and another deletes it, the greatest `sequence` or `_commit_version` decides, where within one
        commit the insertion counts; without such a column the batch is refused.

        With a state directory, each batch changes it exactly once, whatever crashes: open the state again and follow the same
        stream with the same checkpoint. Without one that holds as long as this process lives; another process has to begin with a new checkpoint.
        A batch that is wrong changes nothing and ends the query with its error; it comes again when the query is started again.

        Batches are processed in this process, by a thread of Spark's, and the rows of a small batch come here; executors check those of a
        large one. Several queries may follow streams for one
        materialisation: their batches take turns, and their updates with all others.

        Args:
            frame: a streaming DataFrame, of `spark.readStream`.
            checkpoint: the directory in which Spark records how far it is. It belongs to this stream and this materialisation.
            relation: the relation that changes; None if the stream says so in each row.
            available_now: whether to process what has arrived, in as many batches as the source makes of it, and end.
            interval: how often to look for more, in seconds or as Spark spells it, `"1 minute"`; as soon as a batch is done if left out.
            algorithm: as for `update`.
            marking: as for `stream`; a batch is not known before the one ahead of it is done.
            coalesce: likewise.

        Returns:
            Spark's query: `awaitTermination`, `stop`, `lastProgress`, `exception`.

        Raises:
            DataError: the DataFrame is not a stream, or its columns do not fit; there is no such relation.
            ProgramError: there is no such algorithm, or it cannot maintain this program.
        """
        from evermat.runtime import BatchProcessing, follow_frame

        processing = BatchProcessing(self._turn, checkpoint, available_now, interval, algorithm, marking, coalesce)
        return follow_frame(self, frame, relation, processing)

    def follow_files(
        self,
        spark: SparkSession,
        folder: str | PathLike[str],
        *,
        checkpoint: str | PathLike[str],
        files_per_batch: int | None = None,
        base: str | None = None,
        available_now: bool = False,
        interval: str | float | None = None,
        algorithm: UpdateAlgorithm = "auto",
        marking: bool | None = None,
        coalesce: bool = False,
    ) -> StreamingQuery:
        """Starts a query of Structured Streaming that updates this with the change files that appear in a directory.

        The files are those of `update_files`, each one update, in the order of their names within a batch. A file must be whole when it
        appears: write it elsewhere and move it into the directory. Names that begin with `.` or `_` are ignored. A file is read once.
        All files of a batch are read before the first of them changes anything. Each update is done exactly once, as for `follow`.

        Args:
            spark: the session that looks for files.
            folder: the directory, which this process and all executors see.
            checkpoint: as for `follow`.
            files_per_batch: at most so many files, the oldest first, are taken at a time; all if left out.
            base: what relative IRIs in RDF are relative to.
            available_now: whether to process what has arrived, and end.
            interval: as for `follow`.
            algorithm: as for `update`.
            marking: as for `stream`: whether to look at the next file of the batch.
            coalesce: as for `stream`: whether the files of a batch become one update, or a few if there are many.

        Returns:
            Spark's query.

        Raises:
            DataError: there is no such directory.
            ProgramError: there is no such algorithm, or it cannot maintain this program.
        """
        from evermat.runtime import BatchProcessing, follow_files

        if self._sandbox:
            raise wrong_argument("files are not followed by Spark in a sandbox: use an `evermat.FolderStream`")
        processing = BatchProcessing(self._turn, checkpoint, available_now, interval, algorithm, marking, coalesce)
        return follow_files(self, spark, folder, processing, files_per_batch=files_per_batch, base=base)

    # --- the state directory -------------------------------------------------------------------------------
    @documented
    def save(
        self,
        path: str | PathLike[str],
        *,
        keep: int | str | None = None,
        positions: SavedPositions = "refuse",
    ) -> None:
        """Writes all facts to a state directory, which belongs to this materialisation from then on: every update is a version of it.

        If the directory is a state already, this becomes its next version, whatever it held before. The state directory that this
        materialisation already has, because it was saved there or opened from there, holds every update: nothing is written, and `version` stays.
        Only the lock is taken, so that no other process can write, and `keep` holds from the next version on.

        Args:
            path: the state directory, or its URI such as `s3://bucket/folder`.
            keep: how many versions the state keeps: a number, or an age such as `12h` or `30d`. By default what it did, or 1,000.
            positions: what to do if the state knows how far streams have been followed. {positions}.

        Raises:
            StateError: another writes to it, the directory is not a state, or it has positions of streams.
            ArgumentError: `keep` is neither a number nor an age, or `positions` is not known.
            TypeError: an argument is of another type.
            ResourceError: it could not be written; nothing has changed.
        """
        from evermat.store import Keep, state_location

        target = state_location("path", path)
        kept = None if keep is None else Keep.of(keep)
        SAVED_POSITIONS.check(positions)
        with sandboxed(on=self._sandbox):
            self._versions.save(target, keep=kept, positions=positions)

    def refresh(self) -> bool:
        """Takes over the newest version of the state directory, if others have committed one.

        Readers get the version before, or the new one, meanwhile. If the new one cannot be read, this stays as it is. A materialisation that
        writes to its state directory is always at its newest version, so there is nothing to take over.

        Returns:
            Whether there was a newer version.

        Raises:
            ProgramError: there is no state directory.
            StateError: the newest version is damaged, or the state is no longer there.
            ResourceError: as for `evermat.open`.
        """
        return self._versions.refresh()

    def close(self) -> None:
        """Releases the state directory, so that others may write to it, and the files of facts on a cluster.

        Facts in memory stay, and are not kept in the directory any more. Of facts on a cluster, only snapshots and iterations that have begun
        can be read any more. If an update is running, this waits for it. In a forked child it does nothing: all is the parent's.
        """
        self._versions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
