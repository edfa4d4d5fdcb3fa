"""A materialisation: what `Program.materialise` and `evermat.open` return.

The module is long because the class is the public interface: most of its lines are the docstrings of which `docs/api.md` is made.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final

from evermat.core import WHICH, Guard, UpdateAlgorithm, Which, check_facts, documented, path_arguments, watched
from evermat.engine import Limits, Run
from evermat.language import Program, Queries, Query, revise
from evermat.runtime import Answer, Engine, Relation, answer_query, materialisation_stats, stream_answer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from evermat.io import Written
    from evermat.reasoning import Passing
    from evermat.runtime import AnyUpdate, Change, StateBinding, StreamedUpdate


@final
class Materialisation(Mapping[str, Relation]):
    """All consequences of a program and its explicit facts, by relation, kept true by updates.

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
    ) -> None:
        self._engine, self._binding = engine, binding
        self._queries: Queries | None = None  # of the program, once one was asked
        self._passing: Passing | None = None  # what the last update has inserted last, because the next one deletes it
        self._positions: dict[str, str] = {}  # as long as no state directory keeps them
        self._opened = opened  # the stats of the version that was opened
        #: held while a batch of a stream is processed: several streams take turns, and so does a batch whose query was stopped
        self._turn = threading.Lock()
        #: malformed statements of RDF files that were left out, by file
        self.skipped: Mapping[str, int] = dict(skipped or {})

    @property
    def on_cluster(self) -> bool:
        """Whether the facts are in files of a cluster rather than in this process."""
        return self._engine.distributed

    @property
    def program(self) -> Program:
        """The compiled program, after all changes of rules."""
        return self._engine.program

    def __getitem__(self, name: str) -> Relation:
        relation = self.program.relations.get(name)
        if relation is None or relation.hidden:
            raise KeyError(name)
        return Relation(relation, self._engine)

    def __iter__(self) -> Iterator[str]:
        return (name for name, relation in self.program.relations.items() if not relation.hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def representative(self, term: str) -> str:
        """The representative of a term: of all terms that are equal to it, the smallest by its text."""
        union_find = self._engine.snapshot().union_find
        return term if union_find is None else union_find.normal(term)

    def names(self, term: str) -> list[str]:
        """All terms that are equal to a term, itself included, sorted."""
        union_find = self._engine.snapshot().union_find
        return [term] if union_find is None else union_find.names_of(term)

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
        from evermat.runtime import carry_out

        run = Run(Limits.checked(limit_rounds, limit_facts, limit_seconds, memory))
        check_algorithm(algorithm, ())
        for name, given in (("insert", insert), ("delete", delete)):
            check_facts(name, {} if given is None else given)
        changes = [({} if insert is None else insert, {} if delete is None else delete)]
        with self._writing(position):
            engine, before = self._engine, None
            if add_rules or remove_rules:
                revision = revise(engine.program, add_rules, remove_rules)
                engine, before = engine.revised(revision.program, run), engine
                changes.append((revision.inserted, revision.deleted))
                algorithm = "dred"
            change = carry_out(engine, [changes], algorithm, run, before=before, binding=self._binding)
            self._engine, self._passing = engine, None
            if before is not None:
                engine.run.leave()
        return self._reclaimed(change, run)

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
        with watched(Guard(limits.seconds, limits.memory)):
            found = read_change_files(updates, self.program, options, skipped)

        def carry_out_all() -> Iterator[Change]:
            for paths, update in zip(updates, found, strict=True):
                change = self.update(
                    update.insert,
                    update.delete,
                    algorithm,
                    limit_rounds=limits.rounds,
                    limit_facts=limits.facts,
                    limit_seconds=limits.seconds,
                    memory=limits.memory,
                )
                names = list(map(str, paths))
                change.stats.update(
                    version=self.version,
                    files=names,
                    skipped={name: skipped[name] for name in names if name in skipped},
                )
                yield change

        return carry_out_all()

    @contextmanager
    def _writing(self, position: tuple[str, str] | None) -> Iterator[None]:
        """An update, which becomes a version of the state directory if there is one."""
        if self._binding is None:
            yield
            self._positions |= dict([] if position is None else [position])
            return
        self._binding.become_writer()
        with self._binding.at(position):
            yield
        self._binding.tidy(self._engine)

    def _reclaimed(self, change: Change, run: Run) -> Change:
        """A change that is committed; after it what deleted facts have left behind is freed, if that is due."""
        report = self._engine.reclaim(run)
        if report is not None:
            change.stats["reclaimed"] = report
            if "skipped" not in report:
                self._passing = None  # it is about rows that are not there any more
        return change

    @property
    def positions(self) -> dict[str, str]:
        """How far streams have been followed, by their names; a state directory keeps them with its versions."""
        return dict(self._positions if self._binding is None else self._binding.positions)

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
        from evermat.runtime import Ahead, carry_out, follow_updates

        limits = Limits.checked(limit_rounds, limit_facts, limit_seconds, memory)
        check_algorithm(algorithm, self.program.strata)

        def process(taken: Sequence[StreamedUpdate], ahead: Sequence[StreamedUpdate]) -> Change:
            position = next((one.position for one in reversed(taken) if one.position is not None), None)
            changes = [[(one.insert, one.delete)] for one in taken]
            look = None
            if marking is not False:
                upcoming = [[(one.insert, one.delete)] for one in ahead]
                look = Ahead(self._passing, upcoming, FEWER if marking else FASTER)
            run = Run(limits)
            with self._writing(position):
                change = carry_out(self._engine, changes, algorithm, run, binding=self._binding, ahead=look)
                self._passing = None if look is None else look.found
            change.stats["updates"] = len(taken)
            return self._reclaimed(change, run)

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

        The stream has a column `op`, which is `+` for a fact to insert and `-` for one to delete, and either the columns of `relation`, in any order,
        or `relation` and `values`, an array of texts as in a change file. The rows of a batch have no order. If one of them
        inserts a fact and another deletes it, the batch is refused, unless the stream has a column `sequence`: then the greatest decides.

        With a state directory, each batch changes it exactly once, whatever crashes: open the state again and follow the same
        stream with the same checkpoint. Without one that holds as long as this process lives; another process has to begin with a new checkpoint.
        A batch that is wrong changes nothing and ends the query with its error; it comes again when the query is started again.

        Batches are processed in this process, by a thread of Spark's, and all rows of a batch come here. Several queries may follow streams for one
        materialisation: their batches take turns. Do not use the materialisation otherwise while a batch is processed.

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

        processing = BatchProcessing(self._turn, checkpoint, available_now, interval, algorithm, marking, coalesce)
        return follow_files(self, spark, folder, processing, files_per_batch=files_per_batch, base=base)

    # --- the state directory -------------------------------------------------------------------------------
    def save(
        self,
        path: str | PathLike[str],
        *,
        keep: int | str | None = None,
        positions: Literal["refuse", "keep", "reset"] = "refuse",
    ) -> None:
        """Writes all facts to a state directory, which belongs to this materialisation from then on: every update is a version of it.

        If the directory is a state already, this becomes its next version, whatever it held before. The state directory that this
        materialisation already has, because it was saved there or opened from there, holds every update: nothing is written, and `version` stays.
        Only the lock is taken, so that no other process can write.

        Args:
            path: the state directory.
            keep: how many versions the state keeps: a number, or an age such as `12h` or `30d`. By default what it did, or 1,000.
            positions: what to do if the state knows how far streams have been followed. If these positions are reset, a stream takes its
                files again.

        Raises:
            StateError: another writes to it, the directory is not a state, or it has positions of streams.
            ProgramError: `keep` is neither a number nor an age.
            ResourceError: it could not be written; nothing has changed.
        """
        from evermat.runtime import save_state

        target = Path(path)
        if self._binding is not None and os.path.realpath(target) == os.path.realpath(self._binding.path):
            self._binding.become_writer()  # every update is there already
            return
        binding = save_state(self._engine, target, self.stats, keep=keep, positions=positions)
        self._release()
        self._binding = binding

    @property
    def version(self) -> int | None:
        """The version of the state directory that this is; None if it has none."""
        return None if self._binding is None else self._binding.version

    def close(self) -> None:
        """Releases the state directory, so that others may write to it, and the files of facts on a cluster.

        Facts in memory stay, and are not kept in the directory any more.
        """
        self._release()
        self._engine.close()

    def _release(self) -> None:
        if self._binding is not None:
            self._binding.close()
            self._binding = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # --- queries ---------------------------------------------------------------------------------------------
    def query(
        self,
        text: str,
        *,
        representatives: bool = False,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
    ) -> Answer:
        """Answers a query: a conjunction of atoms and comparisons, or whatever else the body of a rule may be.

        The answer is a set of rows, with one column for each named variable in the order of their first appearance; `_` and names
        that begin with `_` are not asked for. Without columns it is true or false. A query changes nothing.

        >>> import evermat
        >>> program = evermat.Program.parse(".decl edge(x:symbol, y:symbol)")
        >>> m = program.materialise({"edge": [("a", "b"), ("b", "c"), ("c", "d")]})
        >>> m.query('edge("a", x), edge(x, y), y != "d"')
        <Answer (x, y): 1 row>
        >>> bool(m.query('edge("a", "c")'))
        False

        Args:
            text: the query; `?-` before it and `.` behind it may be left out.
            representatives: whether, of equal terms, only the representative is wanted.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes; also a text such as `4g`.

        Raises:
            ProgramError: the query has errors, all of which are reported at once; or a limit cannot be one.
            LimitError: a limit was reached.
        """
        run = Run(Limits.checked(limit_seconds=limit_seconds, memory=memory))
        with watched(run):
            query = self._compiled(text)
        return answer_query(query, self._engine, run, representatives=representatives)

    def query_batches(
        self, text: str, *, limit_seconds: float | None = None, memory: int | str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Answers a query in Arrow batches, as they are computed: however many rows there are, only some are in memory.

        The rows come in no order, each once. Where variables are not asked for, all rows have to be remembered lest one comes twice. Nothing may
        change until the last batch was read.

        Args:
            text: the query; `?-` before it and `.` behind it may be left out.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes; also a text such as `4g`.

        Raises:
            ProgramError: the query has errors, all of which are reported at once; or a limit cannot be one.
            LimitError: a limit was reached.
        """
        run = Run(Limits.checked(limit_seconds=limit_seconds, memory=memory))
        return stream_answer(self._compiled(text), self._engine, run).batches()

    def _compiled(self, text: str) -> Query:
        if self._queries is None or self._queries.program is not self.program:
            self._queries = Queries(self.program)
        return self._queries.compile(text)

    # --- files, RDF and Spark ----------------------------------------------------------------------------------
    @documented
    def write_outputs(
        self,
        directory: str | PathLike[str] = ".",
        *,
        export: str | PathLike[str] | None = None,
        facts: Which = "all",
        representatives: bool = False,
        before_commit: Callable[[], None] = lambda: None,
    ) -> dict[str, int]:
        """Writes the program's outputs, all or none: every `.output` to its file, and every `.printsize` to standard output.

        Args:
            directory: where outputs go.
            export: an RDF file that gets the triples as well; see `export`.
            facts: which triples it gets. {facts}.
            representatives: whether, of equal terms, only the representative is wanted.
            before_commit: called when everything is written but no file has its name yet; what it raises undoes everything.

        Returns:
            For each file how many facts were left out because they are not RDF.

        Raises:
            DataError: facts cannot be written in a format.
            ResourceError: a file could not be written; none has changed.
        """
        from evermat.runtime import write_outputs

        WHICH.check(facts)
        return write_outputs(
            self._engine,
            Path(directory),
            export=export,
            facts=facts,
            representatives=representatives,
            before_commit=before_commit,
        )

    @documented
    def triples(self, facts: Which = "all", *, representatives: bool = False) -> Iterator[pa.Table]:
        """The facts of classes, properties and relations of triples, as Arrow tables with the columns `s`, `p` and `o`.

        They are sorted, and each is there once; only of more than a few million on a cluster they come in no order. Terms are in
        their N-Triples form; subjects may be literals, if rules have derived that.

        Args:
            facts: which facts. {facts}.
            representatives: whether, of equal terms, only the representative is wanted.
        """
        from evermat.runtime import triples_of

        WHICH.check(facts)
        return triples_of(self._engine, facts, representatives=representatives)

    @documented
    def export(self, path: str | PathLike[str], facts: Which = "all", *, representatives: bool = False) -> Written:
        """Writes the facts of classes, properties and relations of triples as RDF, in the format that the name of the file says.

        What is not RDF, such as a fact with a literal as its subject, is left out and counted in the result.

        Args:
            path: the file: `.nt`, `.nq`, `.ttl`, `.trig`, `.rdf`, perhaps followed by `.gz`.
            facts: which facts. {facts}.
            representatives: whether, of equal terms, only the representative is wanted.

        Raises:
            DataError: the name is not that of an RDF file.
            ResourceError: it could not be written.
        """
        from evermat.io import Outputs

        with Outputs() as outputs:
            written = outputs.write_graph(Path(path), self.triples(facts, representatives=representatives))
            outputs.commit()
        return written

    def create_views(self, spark: SparkSession, prefix: str = "") -> dict[str, str]:
        """Makes every relation a temporary view for Spark SQL, as it is now; returns the names of the views by relation.

        A view is called like its relation, after `prefix`; names that are not plain words stand in backticks in SQL.
        """
        from evermat.spark import create_views

        return create_views({name: self[name].to_spark(spark) for name in self}, prefix)

    # --- figures -----------------------------------------------------------------------------------------------
    @property
    def stats(self) -> dict[str, Any]:
        """What was done and what it took, as one JSON object; of a version that was opened, what it took then."""
        return self._opened if self._opened is not None else materialisation_stats(self._engine, self.skipped)

    def undefined(self) -> Iterator[tuple[str, int]]:
        """Rules in which an expression had no value, with the number of bindings that were dropped for it."""
        counts = self._engine.undefined()
        for start in sorted(counts):
            yield self.program.source.where(start), counts[start]

    def __repr__(self) -> str:
        return f"<Materialisation: {', '.join(f'{name} {len(self[name]):,}' for name in self)}>"
