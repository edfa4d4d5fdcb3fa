"""All that can be read of a materialisation: of one version, or of the one that there is at each call.

`Readable` has it, once for both. A `Snapshot` holds one version until it is closed; a materialisation pins its newest one for each call.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, final

from evermat.core import (
    WHICH,
    Problem,
    ProgramError,
    Which,
    documented,
    local_path,
    public_class,
    sandboxed,
    this_process,
    watched,
    within_limits,
)
from evermat.core import error_catalogue as errors
from evermat.engine import Limits, Run
from evermat.language import Program, partial_expressions, relation_names
from evermat.runtime.pin import Pin
from evermat.runtime.query import answer_query, stream_answer
from evermat.runtime.relation import Relation
from evermat.runtime.results.answer import Answer
from evermat.runtime.statistics import materialisation_stats

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.io import Written

#: a text, or what the compiler adds to the name of a variable of which there are several
_RENAMED = re.compile(r"""("(?:[^"\\]|\\.)*")|'[0-9]+""")


@public_class
class Readable(Mapping[str, Relation]):
    """Relations by name, and all that can be asked of them."""

    _sandbox: bool = False  # whether others made the program

    @abstractmethod
    def _pin(self) -> Pin:
        """The version that one call reads."""

    def snapshot(self) -> Snapshot:
        """One version, for several reads; it stays what it is, whatever happens to the materialisation meanwhile.

        Making one takes some microseconds. As long as it is open, updates keep what they would replace otherwise.

        >>> import evermat
        >>> m = evermat.Program.parse(".decl a(x:number)").materialise({"a": [(1,)]})
        >>> with m.snapshot() as s:
        ...     len(s["a"]), (1,) in s["a"]
        (1, True)
        """
        return Snapshot(self._pin(), sandbox=self._sandbox)

    @property
    def program(self) -> Program:
        """The compiled program, after all changes of rules."""
        return self._pin().program

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that names of relations and queries may use, with what they abbreviate.

        They are those of the program, of its ontologies and of the RDF files that it read; a state directory keeps them.
        """
        return dict(relation_names(self._pin().program).prefixes)

    @property
    def version(self) -> int | None:
        """The version of the state directory that this is; None if it has none."""
        return self._pin().published.version

    @property
    def positions(self) -> dict[str, str]:
        """How far streams have been followed, by their names; a state directory keeps them with its versions."""
        return dict(self._pin().published.positions)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Malformed statements of RDF files that were left out, by file."""
        return self._pin().published.skipped

    @property
    def on_cluster(self) -> bool:
        """Whether the facts are in files of a cluster rather than in this process."""
        return self._pin().engine.distributed

    def __getitem__(self, name: str) -> Relation:
        return Relation(relation_names(self._pin().program)[name].name, self._pin)

    def __iter__(self) -> Iterator[str]:
        return self._pin().names()

    def __len__(self) -> int:
        return sum(1 for _ in self._pin().names())

    def representative(self, term: str) -> str:
        """The representative of a term: of all terms that are equal to it, the smallest by its text."""
        union_find = self._pin().reading.union_find
        return term if union_find is None else union_find.normal(term)

    def names(self, term: str) -> list[str]:
        """All terms that are equal to a term, itself included, sorted."""
        union_find = self._pin().reading.union_find
        return [term] if union_find is None else union_find.names_of(term)

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
        pin = self._pin()
        with watched(run):
            query = pin.engine.queries.compile(text)
        return answer_query(query, pin.reading, run, representatives=representatives)

    def query_batches(
        self, text: str, *, limit_seconds: float | None = None, memory: int | str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Answers a query in Arrow batches, as they are computed: however many rows there are, only some are in memory.

        The rows come in no order, each once. Where variables are not asked for, all rows have to be remembered lest one comes twice. All
        of them are of the version that there was at the call.

        Args:
            text: the query; `?-` before it and `.` behind it may be left out.
            limit_seconds: stop when it takes longer.
            memory: stop when the process uses more bytes; also a text such as `4g`.

        Raises:
            ProgramError: the query has errors, all of which are reported at once; or a limit cannot be one.
            LimitError: a limit was reached.
        """
        run = Run(Limits.checked(limit_seconds=limit_seconds, memory=memory))
        pin = self._pin()
        return stream_answer(pin.engine.queries.compile(text), pin.reading, run).batches()

    # --- files, RDF and Spark ----------------------------------------------------------------------------------
    @documented
    def write_outputs(
        self,
        directory: str | PathLike[str] = ".",
        *,
        spark: SparkSession | None = None,
        export: str | PathLike[str] | None = None,
        facts: Which = "all",
        representatives: bool = False,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
        before_commit: Callable[[], None] = lambda: None,
        after_commit: Callable[[], None] = lambda: None,
    ) -> dict[str, int]:
        """Writes the program's outputs, all or none: every `.output` to its file, and every `.printsize` to standard output.

        All of them are of one version. Files of this machine get their names last, when everything else is written. What is written elsewhere,
        to URIs, tables and databases, stays if a later one of these fails.

        Args:
            directory: where outputs go; below a URI that Spark knows, such as `s3a://bucket/folder`, Spark writes them.
            spark: the session that writes `IO=spark`, `IO=table` and `IO=jdbc`, and below a URI. If facts are on a cluster, by default theirs.
            export: an RDF file that gets the triples as well; see `export`.
            facts: which triples it gets. {facts}.
            representatives: whether, of equal terms, only the representative is wanted.
            limit_seconds: stop when it takes longer; nothing has changed then.
            memory: stop when the process uses more bytes; also a text such as `4g`.
            before_commit: called when all files of this machine are written but none has its name yet, and nothing is written elsewhere; what it
                raises undoes everything.
            after_commit: called when all files have their names, before anything is printed.

        Returns:
            For each file how many facts were left out because they are not RDF.

        Raises:
            DataError: facts cannot be written in a format, or something exists and its mode is `error`, or has other columns.
            ProgramError: an output needs Spark.
            ResourceError: something could not be written; no file of this machine has changed.
        """
        from evermat.runtime.results.outputs import output_directory, write_outputs

        WHICH.check(facts)
        folder = output_directory(directory)
        with within_limits(limit_seconds, memory), sandboxed(writes=[folder], on=self._sandbox):
            return write_outputs(
                self._pin(),
                folder,
                spark=spark,
                export=export,
                facts=facts,
                representatives=representatives,
                before_commit=before_commit,
                after_commit=after_commit,
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
        from evermat.runtime.results.rdf_export import triples_of

        WHICH.check(facts)
        return triples_of(self._pin(), facts, representatives=representatives)

    @documented
    def export(
        self,
        path: str | PathLike[str],
        facts: Which = "all",
        *,
        representatives: bool = False,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
    ) -> Written:
        """Writes the facts of classes, properties and relations of triples as RDF, in the format that the name of the file says.

        What is not RDF, such as a fact with a literal as its subject, is left out and counted in the result.

        Args:
            path: the file: `.nt`, `.nq`, `.ttl`, `.trig`, `.jsonld`, `.rdf`, perhaps followed by `.gz`.
            facts: which facts. {facts}.
            representatives: whether, of equal terms, only the representative is wanted.
            limit_seconds: stop when it takes longer; nothing has changed then.
            memory: stop when the process uses more bytes; also a text such as `4g`.

        Raises:
            DataError: the name is not that of an RDF file.
            ResourceError: it could not be written.
        """
        from evermat.io import Outputs

        file = local_path("an RDF file", "path", path)
        with within_limits(limit_seconds, memory), Outputs() as outputs:
            written = outputs.write_graph(file, self.triples(facts, representatives=representatives))
            outputs.commit()
        return written

    def create_views(self, spark: SparkSession, prefix: str = "") -> dict[str, str]:
        """Makes every relation a temporary view for Spark SQL; returns the names of the views by relation.

        A view is called like its relation, after `prefix`; names that are not plain words stand in backticks in SQL. Views of a materialisation show
        its newest version, until it is closed: each update makes those of changed relations again. Views of a snapshot never change.
        """
        from evermat.runtime.results.views import make_views

        return make_views(self._pin(), spark, prefix)

    # --- figures -----------------------------------------------------------------------------------------------
    @property
    def stats(self) -> dict[str, Any]:
        """What was done and what it took, as one JSON object; of a version that was opened, what it took then."""
        return materialisation_stats(self._pin())

    def undefined(self) -> Iterator[tuple[str, int]]:
        """Rules in which an expression had no value, with the number of bindings that were dropped for it."""
        pin = self._pin()
        counts, source = pin.published.undefined, pin.program.source
        return ((source.where(start), counts[start]) for start in sorted(counts))

    def undefined_expressions(self, position: str) -> tuple[str, ...]:
        """The expressions that may have had no value in the rule at a position that `undefined` names, as they are evaluated."""
        program = self._pin().program
        texts = [
            str(expression)
            for rule in program.rules
            if program.source.where(rule.span.start) == position
            for expression in partial_expressions(*rule.body, rule.aggregate)
        ]
        plain = [_RENAMED.sub(lambda found: found[1] or "", text) for text in texts]
        return tuple(dict.fromkeys(text[1:-1] if text.startswith("(") else text for text in plain))

    # Comparing facts would read all of them, and fail where they cannot be read any more.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        try:
            pin = self._pin()
        except ProgramError:
            return f"<{type(self).__name__}: not readable any more>"
        shown = ", ".join(f"{name} {pin.reading.count(name):,}" for name in pin.names())
        return f"<{type(self).__name__}: {shown}>"


@final
class Snapshot(Readable):
    """One version of a materialisation, for any number of reads by any threads: `Materialisation.snapshot` makes it.

    It is closed at the end of a `with` block, by `close`, or when it is not referred to any more. What was read of it stays valid; an iteration
    that has begun goes on.
    """

    def __init__(self, pin: Pin, *, sandbox: bool = False) -> None:
        self._sandbox = sandbox
        self._pinned: Pin | None = pin
        self._process = this_process()

    def _pin(self) -> Pin:
        self._process.check()
        pin = self._pinned
        if pin is None:
            details = {"what": "snapshot", "why": "take another one: `m.snapshot()`"}
            raise ProgramError(Problem(errors.CLOSED, details))
        return pin

    def close(self) -> None:
        """Lets the version go."""
        self._pinned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
