"""Access of closures to facts on a cluster: the graph is in the driver, and tasks expand it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns import Batch, Connections, Dictionary, Table
from evermat.language import Closure
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import Counting, FactSet, View
from evermat.spark.engine.job_runner import Found, Job
from evermat.spark.engine.scan import facts_of
from evermat.spark.engine.tasks.expand_closure import ExpandClosureTask, ExpandLocallyTask, GraphFile
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.engine.tasks.set_expressions import ARRIVED, combined
from evermat.spark.engine.tasks.worker import Channel
from evermat.spark.scratch_files import remove_files
from evermat.store import Location, location_of


class ClusterAccess:
    """The facts of the Spark engine; see `Access` of `columns.graph.closure_module`. Requested facts come to the driver."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._dictionary = Dictionary()

    def facts(self, view: View, relation: str) -> Batch:
        return np.concatenate([np.empty((2, 0), np.int64), *facts_of(view, relation, self._dictionary)], axis=1)

    below = facts

    def listed(self, facts: Mapping[str, list[Batch]]) -> FactSet:
        found = FactSet("listed", self._context)
        for name, batches in facts.items():
            table = Table(2)
            for batch in batches:
                table.add_new(np.ascontiguousarray(batch), 0)
            if table.count:
                rows = table.take(np.arange(table.count, dtype=np.int32))
                shape = self._context.shapes[name]
                found.append(name, list(self._context.cluster.write(shape, rows, self._dictionary)))
        return found

    def mask(self, view: View, relation: str, facts: Batch) -> npt.NDArray[np.bool_]:
        if not facts.shape[1]:
            return np.zeros(0, np.bool_)
        known = Table(2)
        known.add_new(self.facts((self.listed({relation: [facts]}) & view).listed(), relation), 0)
        return known.contains(np.ascontiguousarray(facts))

    def pairs(self, closure: Closure, connections: Connections) -> Pairs:
        return Pairs(closure, connections, self._context, self._dictionary)


class Pairs:
    """Facts of the members of a closure, which tasks expand when the facts are added to a set."""

    def __init__(
        self, closure: Closure, connections: Connections, context: EngineContext, dictionary: Dictionary
    ) -> None:
        self._closure, self._connections = closure, connections
        self._context, self._dictionary = context, dictionary

    def derive(self, into: FactSet, counting: Counting | None) -> Mapping[str, Found]:
        """The facts that are new to a set, in files."""
        assert counting is None, "closures do not count derivations"
        if not self._connections:
            return {}
        context, cluster = self._context, self._context.cluster
        members = self._closure.members
        names = [member.relation for member in members]
        shapes = [context.shapes[name] for name in names]
        targets = [
            Target(name, shape, combined("-", ARRIVED, into.expression(name)))
            for name, shape in zip(names, shapes, strict=True)
        ]
        what = f"close {', '.join(names)[:60]}"
        with cluster.results() as folder:
            path = location_of(folder) / "graph.npz"
            graph = self._written(path, shapes[0])
            stays = all(shape.home == (int(member.flipped),) for shape, member in zip(shapes, members, strict=True))
            if stays:  # facts are in the bucket of their source
                home = Shape((shapes[0].texts[int(members[0].flipped)],), (0,))
                here = ExpandLocallyTask(graph, tuple(targets), home, folder, cluster.buckets)
                found, figures = context.execute(what, cluster.buckets, [here], len(targets))
                context.report(figures, "closure")
            else:
                channels = [Channel(shape, number) for number, shape in enumerate(shapes)]
                first = ExpandClosureTask(tuple(channels), cluster.buckets, cluster.buckets, graph)
                found = context.run(Job(what, targets, channels, tasks=cluster.buckets, first=first), "closure")
            remove_files([path])
        return dict(zip(names, found, strict=True))

    def _written(self, path: Location, shape: Shape) -> GraphFile:
        """The connections in a file, with the texts of nodes that have some."""
        first, second = shape.texts[::-1] if self._closure.members[0].flipped else shape.texts
        connections = self._connections
        is_text = np.full(len(connections.values), second)
        if first != second:  # a linear closure, whose sources are values of another type
            is_text[connections.sources] = first
        ids = connections.values[is_text].astype(np.int32)
        texts = self._dictionary.decode_compactly(ids) if len(ids) else pa.array([], pa.string())
        return GraphFile.write(path, connections, texts, is_text, [member.flipped for member in self._closure.members])
