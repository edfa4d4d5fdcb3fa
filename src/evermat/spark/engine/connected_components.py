"""Connected components over DataFrames, where edges do not fit the driver: alternating large-star and small-star.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii: *Connected Components in MapReduce and Beyond* (2014). An edge has a high and a low end;
a loop has the same node at both. Each operation replaces every edge by one, which may be the same:

    large-star    (h, l) becomes (h, m), where m is the least of l and its neighbours
    small-star    (h, l) becomes (l, m), where m is the least neighbour of h; (h, m) itself stays

What was connected stays connected, and no end of an edge ever rises: so edges do not move for ever. When none has moved in a large-star
and in the small-star after it, every node has at most one lower neighbour, and that has none: a star around the least node of each
component. So sets of edges need not be compared. Loops are edges like any other; of a node without other edges its loop is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.engine import Run
from evermat.language import Atom, Closure, Column, Relation, Rule, Type, Variable
from evermat.spark.dataframes import frame_files
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.job_runner import Cluster
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import frame_of
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.engine.transfer import load_files
from evermat.spark.jobs import configured, run_named
from evermat.spark.row_files import RowFiles
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import remove_folder
from evermat.store import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

_Result = TypeVar("_Result")

# Other than for the engine's other jobs, whose rows are few and large: here Spark's own operators do the work, a row at a time.
_SETTINGS = {
    # In the end all edges of a component have the same low end: skewed joins must be divided among tasks.
    "spark.sql.adaptive.enabled": "true",
    # A plan that is known to be empty would not run, and its observation would never have a result.
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.files.maxPartitionBytes": "16m",  # of edges that become facts, a task holds as many
}


def components_relation(members: Sequence[Relation]) -> Relation:
    """The relation of nodes and the roots of their components, where facts of some binary relations are edges."""
    name = f"'components of {', '.join(member.name for member in members)}"
    node = members[0].columns[0]
    columns = tuple(Column(end, node.type, node.declared) for end in ("node", "root"))
    return Relation(name, columns, hidden=True)


def close_by_stars(closure: Closure, state: State, run: Run) -> None:
    """Adds to I all consequences of a symmetric closure; no other rules may derive its members."""
    names = [member.relation for member in closure.members]
    found = components(state.materialised, names, state, run)
    relations = [state.program.relations[name] for name in names]
    same = components_relation(relations)
    x, y, root = (Variable(name, same.types[0]) for name in ("x", "y", "root"))
    body = (Atom(same, (x, root)), Atom(same, (y, root)))
    rules = [Rule(Atom(relation, (x, y)), body, closure.rules[0].span) for relation in relations]
    state.materialised.add(Rules(rules, frozenset(), state.context).consequences(found))


def components(view: View, members: Sequence[str], state: State, run: Run) -> FactSet:
    """The connected components of the graph whose edges are the facts of some binary relations in a view.

    All columns are of one type. The driver sees no facts.

    Returns:
        A fact (node, root) of `components_relation` for each node that occurs. The root is a node of the component, the same for
        all of its nodes, which are in one bucket.

    Raises:
        LimitError: a limit of the run was reached.
        ResourceError: Spark failed, the scratch folder is full, or the driver does not see the executors' files.
    """
    relations = [state.program.relations[name] for name in members]
    found = components_relation(relations)
    shape = state.context.shapes[found.name] = Shape.of(found.types, (1,))
    assert all(state.context.shapes[name].texts == shape.texts for name in members)
    if not any(map(view.most, members)):
        return FactSet(found.name, state.context)
    # Numbers of all types are the integers that stand for them: these are equal if the numbers are, and any order will do.
    type_ = Type.SYMBOL if shape.texts[0] else Type.NUMBER
    session, buckets = state.cluster.session, str(state.cluster.buckets)
    with Scratch(state.cluster.scratch.path) as scratch:
        stars = _Stars(state.cluster, scratch, run, found.name.removeprefix("'")[:60])
        with configured(session, {**_SETTINGS, "spark.sql.shuffle.partitions": buckets}):
            edges = [frame_of(view, _with_columns(relation, type_), session) for relation in relations]
            files = stars.find(edges, _with_columns(found, type_))
        return load_files(state.context, {found.name: _with_columns(found, type_)}, {found.name: files}, found.name)


class _Stars:
    """One computation. Edges are in files between iterations, so that no plan grows."""

    def __init__(self, cluster: Cluster, scratch: Scratch, run: Run, what: str) -> None:
        self._cluster, self._scratch, self._run, self._what = cluster, scratch, run, what

    def find(self, edges: Sequence[DataFrame], found: Relation) -> Sequence[Location]:
        """Files with the facts (node, root), of which some may occur twice."""
        stored, _ = self._small_star(_edges(edges))
        moved = 1
        while moved:
            following, moved = self._iterate(stored)
            remove_folder(stored.folder)
            stored = following
        stars = stored.frame(self._cluster.session)
        nodes = stars.union(stars.select("low", "low").distinct())  # a root is its own
        return self._run_watched(lambda: frame_files(nodes, found, self._scratch, self._what).files)

    def _iterate(self, edges: RowFiles) -> tuple[RowFiles, int]:
        """Runs a large-star and a small-star; returns the edges after them, and how many have moved."""
        from pyspark.sql import Observation  # noqa: PLC0415

        large = Observation()
        following, moved = self._small_star(_large_star(edges.frame(self._cluster.session), large))
        # A task that runs twice may count twice; but a count of 0 is exact.
        return following, moved + int(large.get["moved"])

    def _small_star(self, edges: DataFrame) -> tuple[RowFiles, int]:
        """Runs a small-star over distinct edges; returns the edges after it, and how many have moved."""
        from pyspark.sql import Observation  # noqa: PLC0415

        small, folder = Observation(), self._scratch.folder("edges")
        found = self._run_watched(lambda: RowFiles.of(_small_star(edges, small), folder))
        if found.rows != small.get["rows"]:
            raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": self._cluster.scratch.path}))
        return found, int(small.get["moved"])

    def _run_watched(self, action: Callable[[], _Result]) -> _Result:
        cluster = self._cluster
        cluster.count_job()
        check, what = cluster.checking(self._run.look), f"find {self._what}"
        return run_named(cluster.session, what, action, cluster.scratch.path, progress=cluster.progress, check=check)


def _edges(frames: Sequence[DataFrame]) -> DataFrame:
    """All edges, with their ends in order."""
    from pyspark.sql.functions import greatest, least  # noqa: PLC0415

    pairs = reduce(lambda left, right: left.union(right), frames)
    return pairs.select(greatest("node", "root").alias("high"), least("node", "root").alias("low"))


def _large_star(edges: DataFrame, observation: Observation) -> DataFrame:
    """The edges after a large-star. Higher neighbours of a low end are not compared: they are not the least."""
    from pyspark.sql.functions import coalesce, col, count_if, min  # noqa: A004, PLC0415

    least = edges.groupBy(col("high").alias("node")).agg(min("low").alias("least"))
    joined = edges.join(least, col("low") == col("node"), "left")
    moved = count_if(col("least") < col("low")).alias("moved")
    return joined.observe(observation, moved).select("high", coalesce("least", "low").alias("low"))


def _small_star(edges: DataFrame, observation: Observation) -> DataFrame:
    """The edges after a small-star. Duplicates are removed before it; after it there may be duplicates again."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql.functions import col, count, count_if, lit, min, when  # noqa: A004, PLC0415

    once = edges.repartition("high").distinct()  # one shuffle is enough for all that follows
    once = once.select("*", min("low").over(Window.partitionBy("high")).alias("least"))
    moves = col("least") < col("low")
    observed = once.observe(observation, count(lit(1)).alias("rows"), count_if(moves).alias("moved"))
    return observed.select(when(moves, col("low")).otherwise(col("high")).alias("high"), col("least").alias("low"))


def _with_columns(relation: Relation, type_: Type) -> Relation:
    """A binary relation with the columns and the type that these jobs use."""
    return Relation(relation.name, tuple(Column(end, type_, str(type_)) for end in ("node", "root")), hidden=True)
