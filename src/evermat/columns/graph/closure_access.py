"""How closures get at facts in memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evermat.columns.evaluation.buffers import EvaluationContext
from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.rules import Bag
from evermat.columns.graph.delta_reachability import Connections
from evermat.columns.state.datasets import facts_in
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import Batch, Mask
from evermat.columns.storage.table import Table
from evermat.engine import Jobs
from evermat.language import Closure


class TableAccess:
    """The facts of the in-memory engine; see `closures.Access`."""

    def __init__(self, context: EvaluationContext) -> None:
        self._tables: Mapping[str, Table] = context.tables
        self._jobs = context.jobs

    def facts(self, view: View, relation: str) -> Batch:
        return self._tables[relation].take(view.rows(relation))

    def below(self, view: View, relation: str) -> Batch:
        return np.concatenate([np.empty((2, 0), np.int64), *facts_in(view, relation)], axis=1)

    def listed(self, facts: Mapping[str, list[Batch]]) -> Listed:
        found = {
            name: [self._tables[name].find(np.ascontiguousarray(batch)) for batch in batches]
            for name, batches in facts.items()
        }
        return Listed(self._tables, found)

    def mask(self, view: View, relation: str, facts: Batch) -> Mask:
        return view.mask(relation, self._tables[relation].find(facts))

    def pairs(self, closure: Closure, connections: Connections) -> Pairs:
        return Pairs(closure, connections, self._jobs)


class Pairs(Bag):
    """Facts of the members of a closure: pairs that are connected."""

    def __init__(self, closure: Closure, connections: Connections, jobs: Jobs) -> None:
        self._members, self._connections, self._jobs = closure.members, connections, jobs

    @property
    def heads(self) -> dict[str, None]:
        return dict.fromkeys(member.relation for member in self._members) if self._connections else {}

    def announce(self, tables: Mapping[str, Table]) -> None:
        if self._connections:
            count, greatest = self._connections.count(), self._connections.greatest()
            for member in self._members:
                tables[member.relation].expect(count, greatest[::-1] if member.flipped else greatest)

    def read(self, sinks: Mapping[str, Sink], *, counted: bool) -> None:
        """Sends the pairs to the members' sinks; where the run has outgrown memory, only some of them."""
        assert not counted, "closures do not count derivations"
        run, found = self._jobs.run, 0
        for batch in self._connections.batches():
            found += batch.shape[1]
            for member in self._members:
                facts = np.ascontiguousarray(batch[::-1]) if member.flipped else batch
                sinks[member.relation](facts, facts.shape[1], None)
            if run.outgrown:
                break
        if self._connections:
            run.record("closure", len(self._connections.tails), found)
