"""A program's consequences, in memory: what `Program.materialise` hands back."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evermat.algebra import Counters
from evermat.columns.equality.expansion import expand
from evermat.columns.kernels.warm_up import prepare as prepare_kernels
from evermat.columns.schemes.policy import AUTO as AUTO_SCHEMES
from evermat.columns.state.state import State
from evermat.columns.state.views import facts_in
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.selection import Selection, contains
from evermat.columns.storage.table import Batch
from evermat.core import DataError, PhaseTimer, peak_bytes
from evermat.engine.run import Limits, Progress, Run
from evermat.language import Program, Relation, Stratum, revise
from evermat.reasoning.maintain import check_algorithm
from evermat.reasoning.marking import FASTER, FEWER, Passing
from evermat.reasoning.materialise import AUTO, MODULAR, SEMINAIVE, algorithm_for, materialise
from evermat.runtime.change import Change
from evermat.runtime.ingest import encode_facts
from evermat.runtime.query import Answer, Queries
from evermat.runtime.rdf_export import ALL, ASSERTED, INFERRED, WHICH, decoded, in_order, rdf_relations, triples_of
from evermat.runtime.rows import Tabular
from evermat.runtime.stream import AnyUpdate, StreamedUpdate, follow
from evermat.runtime.update import Ahead, Changed, refuse_forbidden, update_state

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from evermat.io import Written
    from evermat.runtime.persistence import Keeper


_SORTED = 5_000_000  # triples on a cluster that are sorted


class Materialisation(Mapping[str, "Facts"]):
    """All consequences of a program and its explicit facts, by relation.

    >>> import evermat
    >>> program = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x + 1) :- a(x).")
    >>> m = program.materialise({"a": [(1,), (2,)]})
    >>> sorted(m["b"])
    [(2,), (3,)]
    """

    def __init__(
        self,
        program: Program,
        state: State,
        run: Run,
        phases: PhaseTimer,
        keeper: Keeper | None = None,
        engine: str = "memory",
        algorithm: str = AUTO,
    ) -> None:
        self._program, self._state, self._run, self._phases, self._engine = program, state, run, phases, engine
        self._algorithm = algorithm
        self._queries: Queries | None = None
        self._keeper = keeper
        #: held while a batch of a stream is processed: several streams take turns, and so does a batch whose query was stopped
        self.turn = threading.Lock()
        self._passing: Passing | None = None  # what the last update has inserted last, because the next one deletes it
        self._positions: dict[str, str] = {}  # as long as no state directory keeps them
        self._opened: dict[str, Any] | None = None  # the stats of the version that was opened
        #: malformed statements of RDF files that were left out, by file
        self.skipped: Mapping[str, int] = {}

    @property
    def on_cluster(self) -> bool:
        """Whether the facts are in files of a cluster rather than in this process."""
        return False

    @property
    def program(self) -> Program:
        """The compiled program, as it is after all changes of rules."""
        return self._program

    def __getitem__(self, name: str) -> Facts:
        relation = self._program.relations.get(name)
        if relation is None or relation.hidden:
            raise KeyError(name)
        return Facts(relation, self._state)

    def __iter__(self) -> Iterator[str]:
        return (name for name, relation in self._program.relations.items() if not relation.hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def representative(self, term: str) -> str:
        """The term that stands for a term and all that are equal to it: the smallest of them by its text."""
        return self._renaming.normal(term) if self._renaming is not None else term

    def names(self, term: str) -> list[str]:
        """All terms that are equal to a term, itself included, sorted."""
        return self._renaming.names_of(term) if self._renaming is not None else [term]

    @property
    def _renaming(self) -> Any:
        """Who stands for whom; None if equal terms are not represented by one."""
        representatives = self._state.representatives
        return None if representatives is None else representatives.renaming

    def update(
        self,
        insert: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        *,
        add_rules: str = "",
        remove_rules: str = "",
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | None = None,
        position: tuple[str, str] | None = None,
    ) -> Change:
        """Inserts and deletes explicit facts, and makes everything that follows from them true again.

        If the materialisation has a state directory, because it was saved or opened, the update is its next version; it is durable when this
        returns. A fact that is both inserted and deleted is inserted; what changes nothing is ignored. If anything goes wrong, or a limit is
        reached, or Ctrl-C is pressed, all is as it was before.

        Args:
            insert: explicit facts to insert, by relation; rows, Arrow, pandas, polars or a Spark DataFrame.
            delete: explicit facts to delete.
            algorithm: `auto`, `counting`, `dred`, `dred-c`, `bf`, `bf-c`, `dred-c-mod`, `bf-c-mod` or `remat`. A change of rules is always
                done by DRed, and rematerialisation where rules close a relation.
            add_rules: rules to add, as text; may contain declarations and facts.
            remove_rules: rules to remove, as text; the names of variables do not matter.
            limit_rounds: stop after so many rounds of rule application.
            limit_facts: stop when there are more facts.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes.
            position: the name of a stream that is followed, and how far it is with this update: see `positions`.

        Raises:
            DataError: facts do not fit their relations.
            ProgramError: there is no such algorithm, or it cannot maintain this program, or rules are wrong.
            LimitError: a limit was reached.
            StateError: another writes to the state directory, or it holds a newer version.
            ResourceError: the update could not be written, for example because the disk is full.
        """
        run = Run(Limits(limit_rounds, limit_facts, limit_seconds, memory))
        changes = [(insert or {}, delete or {})]
        with self._writing(position):
            if not add_rules and not remove_rules:
                change = self._carry_out(self._program, self._state, [changes], algorithm, run)
                self._passing = None
                return change
            check_algorithm(algorithm, ())
            revision = revise(self._program, add_rules, remove_rules)
            state = self._revised(revision.program, run)
            changes.append((revision.inserted, revision.deleted))
            change = self._carry_out(revision.program, state, [changes], "dred", run, kept=self._state)
            self._passing = None
            self._program, self._state = revision.program, state
            self._run.leave()
            return change

    @contextmanager
    def _writing(self, position: tuple[str, str] | None) -> Iterator[None]:
        """An update, which becomes a version of the state directory if there is one."""
        if self._keeper is None:
            yield
            self._positions |= dict([] if position is None else [position])
            return
        self._keeper.become_writer()
        with self._keeper.at(position):
            yield
        self._keeper.tidy(self._state)

    @property
    def positions(self) -> dict[str, str]:
        """How far streams have been followed, by their names; of a state directory, with its version."""
        return dict(self._positions if self._keeper is None else self._keeper.positions)

    def stream(
        self,
        updates: Iterable[AnyUpdate],
        *,
        algorithm: str = "auto",
        marking: bool | None = None,
        coalesce: bool = False,
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | None = None,
    ) -> Iterator[Change]:
        """Carries out updates one after the other, and yields what each of them changes.

        While an update is processed the next one, if it is there, is looked at: what it will delete again is inserted last, and is then taken back
        without a rule being evaluated. The result is the same as that of `update` for each of them. Updates are read by a thread of its own, unless
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
            marking: whether to look ahead: always where that saves rule applications, never, or where it saves time, which is the default: where
                nearly all that the next update deletes comes by this one.
            coalesce: updates that are there when one is to be processed become one with it: a fact that comes and goes meanwhile
                costs nothing, and there is one change for all of them.
            limit_rounds: as for `update`, for each of them.
            limit_facts: likewise.
            limit_seconds: likewise.
            memory: likewise.

        Raises:
            TypeError: something is no update.
            DataError: as for `update`, as all others.
        """
        limits = Limits(limit_rounds, limit_facts, limit_seconds, memory)
        check_algorithm(algorithm, self._program.strata)

        def process(taken: Sequence[StreamedUpdate], ahead: Sequence[StreamedUpdate]) -> Change:
            position = next((one.position for one in reversed(taken) if one.position is not None), None)
            changes = [[(one.insert, one.delete)] for one in taken]
            look = None
            if marking is not False:
                following = [[(one.insert, one.delete)] for one in ahead]
                look = Ahead(self._passing, following, FEWER if marking else FASTER)
            with self._writing(position):
                change = self._carry_out(self._program, self._state, changes, algorithm, Run(limits), ahead=look)
                self._passing = None if look is None else look.found
            change.stats["updates"] = len(taken)
            return change

        return follow(updates, process, coalesce=coalesce)

    def follow(self, frame: DataFrame, *, checkpoint: str | PathLike[str], **options: Any) -> StreamingQuery:
        """Starts a query of Structured Streaming that updates this with a streaming DataFrame, a batch at a time.

        Args:
            frame: of `spark.readStream`, with a column `op`.
            checkpoint: the folder in which Spark notes how far it is.
            **options: see `evermat.runtime.structured_streaming.follow_frame`: `relation`, `available_now`, `interval` and others.
        """
        from evermat.runtime.structured_streaming import follow_frame  # noqa: PLC0415

        return follow_frame(self, frame, checkpoint=checkpoint, **options)

    def follow_files(
        self, spark: SparkSession, folder: str | PathLike[str], *, checkpoint: str | PathLike[str], **options: Any
    ) -> StreamingQuery:
        """Starts a query of Structured Streaming that updates this with the files of changes in a folder.

        Args:
            spark: who looks for files.
            folder: where they appear.
            checkpoint: the folder in which Spark notes how far it is.
            **options: see `evermat.runtime.structured_streaming.follow_files`: `files_per_batch`, `available_now`, `interval` and others.
        """
        from evermat.runtime.structured_streaming import follow_files  # noqa: PLC0415

        return follow_files(self, spark, folder, checkpoint=checkpoint, **options)

    def _carry_out(
        self,
        program: Program,
        state: State,
        changes: Changed,
        algorithm: str,
        run: Run,
        kept: State | None = None,
        ahead: Ahead | None = None,
    ) -> Change:
        """Carries out an update; `kept` is the state before a change of rules, with which `state` shares its facts."""
        return update_state(program, state, changes, algorithm, run, kept=kept, keeper=self._keeper, ahead=ahead)

    def _revised(self, program: Program, run: Run) -> State:
        """A state for a program with other rules that shares the facts."""
        return State(program, run, kept=self._state)

    def refuse_forbidden(self) -> None:
        """Raises `DataError` if there are facts that the program forbids."""
        materialised = self._state.materialised
        refuse_forbidden(self._state, materialised, materialised, self._run)

    # --- the state directory -------------------------------------------------------------------------------
    def save(self, path: str | PathLike[str]) -> None:
        """Writes all facts to a state directory, which belongs to this materialisation from then on: every update is a version of it.

        Where a state is already, this becomes its next version, whatever it held before.

        Raises:
            StateError: another writes to it, or what is there is no state.
            ResourceError: it could not be written; nothing has changed.
        """
        from evermat.runtime.persistence import save_new, save_over  # noqa: PLC0415

        place = Path(path)
        if self._keeper is not None and os.path.realpath(place) == os.path.realpath(self._keeper.path):
            self._keeper.become_writer()  # every update is there already
            return
        is_state = place.is_dir() and any(place.iterdir())
        keeper = (save_over if is_state else save_new)(self._state, place, self.stats)
        self.close()
        self._keeper = keeper

    @property
    def version(self) -> int | None:
        """The version of the state directory that this is; None if it has none."""
        return None if self._keeper is None else self._keeper.version

    def close(self) -> None:
        """Lets go of the state directory, so that others may write to it. The facts stay here, and are not kept there any more."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def query(
        self,
        text: str,
        *,
        representatives: bool = False,
        limit_seconds: float | None = None,
        memory: int | None = None,
    ) -> Answer:
        """Answers a query: a conjunction of atoms and comparisons, or whatever else the body of a rule may be.

        The answer is a set of rows, with one column for each named variable in the order of their first appearance; `_` and names
        that begin with `_` are not asked for. Without columns it is true or false. Nothing changes by asking.

        >>> import evermat
        >>> program = evermat.Program.parse(".decl edge(x:symbol, y:symbol)")
        >>> m = program.materialise({"edge": [("a", "b"), ("b", "c"), ("c", "d")]})
        >>> m.query('edge("a", x), edge(x, y), y != "d"')
        <Answer (x, y): 1 row>
        >>> bool(m.query('edge("a", "c")'))
        False

        Args:
            text: the query; `?-` before it and `.` behind it may be left out.
            representatives: of terms that are equal, only the one that stands for all is wanted.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes.

        Raises:
            ProgramError: with all errors of the query at once.
            LimitError: a limit was reached.
        """
        if self._queries is None or self._queries.program is not self._program:
            self._queries = Queries(self._program)
        run = Run(Limits(seconds=limit_seconds, memory=memory))
        return self._queries.answer(text, self._state, run, representatives=representatives)

    def query_batches(
        self, text: str, *, limit_seconds: float | None = None, memory: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Answers a query in Arrow batches, as they are found: however many rows there are, only some are in memory.

        The rows come in no order, each once. Where variables are not asked for, all rows have to be remembered lest one comes twice. Nothing may
        change until the last batch was read.

        Args:
            text: the query; `?-` before it and `.` behind it may be left out.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes.

        Raises:
            ProgramError: with all errors of the query at once.
            LimitError: a limit was reached.
        """
        if self.on_cluster:
            return self.query(text, limit_seconds=limit_seconds, memory=memory).batches()
        if self._queries is None or self._queries.program is not self._program:
            self._queries = Queries(self._program)
        run = Run(Limits(seconds=limit_seconds, memory=memory))
        return self._queries.stream(text, self._state, run).batches()

    # --- RDF -----------------------------------------------------------------------------------------------
    def triples(self, facts: str = ALL, *, representatives: bool = False) -> Iterator[pa.Table]:
        """The facts of classes, properties and relations of triples, as Arrow tables with the columns `s`, `p` and `o`.

        They are sorted, and each is there once; only of more than a few million on a cluster they come in no order. Terms are in
        their N-Triples form; subjects may be literals, if rules have derived that.

        Args:
            facts: `asserted`, `inferred`, or `all`.
            representatives: of terms that are equal, only the one that stands for all is wanted.
        """
        if facts not in WHICH:
            raise ValueError(f"facts {facts!r} are not known: use {', '.join(map(repr, WHICH))}")
        relations = rdf_relations(self._program.relations)
        dictionary = self._rdf_dictionary
        batches = triples_of(
            relations.values(), lambda name: self._batches(name, facts, named=not representatives), dictionary
        )
        if not self.on_cluster or sum(len(self[name]) for name in relations) <= _SORTED:
            batches = in_order(batches, dictionary)
        return decoded(batches, dictionary)

    def export(self, path: str | PathLike[str], facts: str = ALL, *, representatives: bool = False) -> Written:
        """Writes the facts of classes, properties and relations of triples as RDF, in the format that the name of the file says.

        What is no RDF, such as a fact with a literal as its subject, is left out and counted: see what is handed back.

        Args:
            path: the file: `.nt`, `.nq`, `.ttl`, `.trig`, `.rdf`, perhaps with `.gz` behind it.
            facts: `asserted`, `inferred`, or `all`.
            representatives: of terms that are equal, only the one that stands for all is wanted.

        Raises:
            DataError: the name is that of no RDF file.
            ResourceError: it could not be written.
        """
        from evermat.io import Outputs  # noqa: PLC0415

        with Outputs() as outputs:
            written = outputs.write_graph(Path(path), self.triples(facts, representatives=representatives))
            outputs.commit()
        return written

    @property
    def _rdf_dictionary(self) -> Dictionary:
        """What the terms of `_batches` are encoded with."""
        return self._state.dictionary

    def _batches(self, name: str, which: str, *, named: bool = True) -> Iterator[Batch]:
        """The facts of a relation that were given, that follow, or all; in all names unless it is said otherwise."""
        state, table = self._state, self._state.tables[name]
        names = state.representatives
        if names is not None and named and (columns := names.schema.columns.get(name)) is not None:
            if which == ASSERTED:
                yield table.take(state.given.rows(name))
                return
            for batch in expand(table.take(state.materialised.rows(name)), columns, names.renaming):
                if which == INFERRED:
                    batch = batch[:, ~contains(table, batch, batch.shape[1], state.given.select(name))]  # noqa: PLW2901
                yield np.ascontiguousarray(batch)
            return
        explicit, materialised = state.explicit, state.materialised
        if which == ASSERTED:
            yield table.take(explicit.rows(name))
            return
        for batch in facts_in(materialised, name):
            if which == INFERRED:
                batch = batch[:, ~contains(table, batch, batch.shape[1], explicit.select(name))]  # noqa: PLW2901
            yield np.ascontiguousarray(batch)

    def create_views(self, spark: SparkSession, prefix: str = "") -> dict[str, str]:
        """Makes every relation a temporary view for Spark SQL, as it is now; the names of the views by relation.

        A view is called like its relation, after `prefix`; names that are not plain words stand in backticks in SQL.
        """
        from evermat.spark.dataframes import create_views  # noqa: PLC0415

        return create_views({name: self[name].to_spark(spark) for name in self}, prefix)

    @property
    def stats(self) -> dict[str, Any]:
        """What was done and what it took, as one JSON object; of a version that was opened, what it took then."""
        if self._opened is not None:
            return self._opened
        state, run = self._state, self._run
        facts = {name: len(self[name]) for name in self}
        explicit = sum(state.given.count(name) for name in self)
        return {
            "engine": self._engine,
            "algorithm": MODULAR if MODULAR in map(self._algorithm_of, state.strata) else SEMINAIVE,
            "strata": [
                {
                    "relations": [name for name in stratum.relations if name in facts],
                    "algorithm": self._algorithm_of(rules),
                    "place": place,
                    "counters": state.counters[stratum].name.lower(),
                    "reason": reason,
                }
                for rules in state.strata
                for stratum in [rules.stratum]
                for place, reason in [self._place(stratum)]
            ],
            "seconds": self._phases.wall,
            "cpu_seconds": self._phases.cpu,
            "rounds": run.rounds,
            "facts": facts,
            "explicit": explicit,
            "derived": sum(facts.values()) - explicit,
            "derivations": run.derivations,
            "undefined": sum(count for _, count in self.undefined()),
            "skipped": dict(self.skipped),
            "schemes": self._schemes(),
            "stored_bytes": state.nbytes,
            "peak_rss_mb": round(peak_bytes() / 2**20, 1),
        }

    def _schemes(self) -> dict[str, Any]:
        """How the relations are stored for which there is a storage scheme."""
        return {
            name: {
                "scheme": "plain" if table.scheme is None else table.scheme.name,
                "estimated": made.estimated,
                "facts": len(self[name]),
                "bytes": table.nbytes + (0 if table.scheme is None else table.scheme.nbytes),
                "scheme_bytes": 0 if table.scheme is None else table.scheme.nbytes,  # the rest is rows
                "reason": made.reason,
            }
            for rules in self._state.strata
            for name, made in rules.decisions.items()
            if name in self
            for table in [self._state.tables[name]]
        }

    def _place(self, stratum: Stratum) -> tuple[str, str]:
        """Where a stratum was computed, and why it was done so."""
        del stratum
        return "memory" if self._engine == "memory" else "driver", "materialisation from scratch"

    def _algorithm_of(self, stratum: Any) -> str:
        """How a stratum was computed."""
        return algorithm_for(stratum, self._algorithm)

    def undefined(self) -> Iterator[tuple[str, int]]:
        """Rules whose body computed something that has no value, with the number of bindings dropped for it."""
        counts = self._undefined()
        for start in sorted(counts):
            yield self._program.source.where(start), counts[start]

    def _undefined(self) -> Counter[int]:
        """Bindings dropped, by the place of the rule, which may have become several."""
        counts: Counter[int] = Counter()
        for stratum in self._state.strata:
            for rules in (stratum.nonrecursive, stratum.recursive):
                for rule, count in rules.undefined():
                    counts[rule.span.start] += count
        return counts

    def __repr__(self) -> str:
        return f"<Materialisation: {', '.join(f'{name} {len(self[name]):,}' for name in self)}>"


class Facts(Tabular):
    """The facts of one relation, explicit and derived, in all names. Iteration is in no particular order."""

    def __init__(self, relation: Relation, state: State, *, named: bool = True) -> None:
        super().__init__(relation, state.tables[relation.name], state.dictionary)
        self._state, self._materialised = state, state.materialised
        self._names = state.representatives if named else None

    @property
    def representatives(self) -> Facts:
        """The facts over representatives only: of terms that are equal, one stands for all."""
        return Facts(self._relation, self._state, named=False)

    def _selection(self) -> Selection:
        return self._materialised.select(self._relation.name)

    def _chunks(self) -> Iterator[Batch]:
        if self._table.scheme is not None:
            yield from facts_in(self._materialised, self._relation.name)
            return
        columns = None if self._names is None else self._names.schema.columns.get(self._relation.name)
        for chunk in super()._chunks():
            if self._names is None or columns is None:
                yield chunk
            else:
                yield from expand(chunk, columns, self._names.renaming)

    def _found(self, fact: Batch) -> bool:
        if self._names is not None and (columns := self._names.schema.columns.get(self._relation.name)) is not None:
            self._names.renaming.rename(fact, columns)
        if (scheme := self._table.scheme) is not None:
            return scheme.holds(fact)
        return super()._found(fact)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """A DataFrame of the caller's SparkSession; what is stored compactly here is expanded there, by tasks."""
        if self._table.scheme is None:
            return super().to_spark(spark)
        from evermat.spark.closure_dataframe import expanded  # noqa: PLC0415

        return expanded(spark, self._relation, self._table, self._dictionary)

    def __len__(self) -> int:
        if self._names is not None:
            return self._names.naming.count(self._materialised, self._relation.name)
        return self._materialised.count(self._relation.name)

    def _title(self) -> str:
        return f"{self._relation.name}: {len(self):,} facts"

    def __repr__(self) -> str:
        return f"<Facts {self._relation.name}({', '.join(self.columns)}): {len(self):,}>"


def materialise_program(
    program: Program,
    facts: Mapping[str, Any],
    *,
    limits: Limits = Limits(),  # noqa: B008
    counters: Counters = Counters.NONE,
    progress: Progress | None = None,
    phases: PhaseTimer | None = None,
    engine: str = "memory",
    algorithm: str = AUTO,
    schemes: str = AUTO_SCHEMES,
) -> Materialisation:
    """Computes all consequences in the memory of this process; `engine` says whose facts they are.

    Raises:
        DataError: the facts do not fit their relations.
        LimitError: a limit was reached.
    """
    phases = phases or PhaseTimer()
    run = Run(limits, progress)
    state = load_state(program, facts, run, phases, schemes)
    with phases.during("reason"):
        materialise(state, run, counters, algorithm)
        made = Materialisation(program, state, run, phases, engine=engine, algorithm=algorithm)
        made.refuse_forbidden()
    return made


def load_state(
    program: Program, facts: Mapping[str, Any], run: Run, phases: PhaseTimer, schemes: str = AUTO_SCHEMES
) -> State:
    """A state with explicit facts, from which nothing is derived yet.

    Raises:
        DataError: the facts do not fit their relations.
    """
    state = State(program, run, schemes=schemes)
    with phases.during("encode"):
        prepare_kernels(closures=any(stratum.closures for stratum in program.strata))
        problems: list[Any] = []
        for name in {**facts, **program.facts}:
            try:
                for batch in encode_facts(name, facts.get(name), program, state.dictionary):
                    state.load(name, batch)
            except DataError as error:
                problems += error.problems
        if problems:
            raise DataError(problems)
        state.load_names()
    return state
