"""Plans over columns: batches of bindings are extended literal by literal.

A pipeline has one *level* for the start and one for each `Match`. A level owns a buffer with a row for every variable that is still
needed there; filters and computations work in place on it, a join fills the buffer of the next level in chunks.
So memory is bounded by the buffers however large a join, and every step is a few kernel calls per chunk. The last
level's buffer is laid out like the head: what arrives there is handed to the sink as it is.

A join sees its table as it was when the pipeline was started, although heads are appended to tables while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import proxy

from evermat.columns.evaluation.buffers import WEIGHT, EvaluationContext, Layout, Level, opens_level
from evermat.columns.evaluation.operators import (
    Absent,
    ComputeColumn,
    Emit,
    Exists,
    Facts,
    FilterRows,
    Join,
    Operation,
    Scan,
    Sink,
    TableFacts,
)
from evermat.columns.evaluation.scheme_operators import JoinWithScheme, SchemeFacts
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.selection import Selection
from evermat.language import Relation, Variable, variables_of
from evermat.plan import STARTING, Check, Compute, Filter, Match, Plan, Role, Step

Select = Callable[[Role, Relation], Selection]


class Pipeline:
    """A compiled plan.

    With `counted`, every instance is reported: an atom that binds nothing multiplies the weight of a binding by the number
    of facts that agree. Without, one such fact is enough.
    """

    def __init__(self, plan: Plan, context: EvaluationContext, *, counted: bool) -> None:
        tables = context.tables
        self.plan = plan
        self.matches = 0  # facts that were looked at
        self.undefined = 0  # bindings dropped because something had no value
        self.sink: Sink  # where the output goes, while it runs
        counted = counted and any(_multiplies(step, tables) for step in plan.steps)  # else every weight is 1
        needed = _needed_after(plan, counted=counted)
        layout = Layout(plan.output, context.dictionary)
        self._steps: list[Operation] = []
        own = proxy(self)  # tables are freed at once when no caller holds their pipelines
        last = max((i for i, step in enumerate(plan.steps) if opens_level(step)), default=-1)
        start = {WEIGHT} if counted else set()
        level = Level(layout if last == -1 else None, start, plan.steps, context, 0)
        self._start = level
        for i, step in enumerate(plan.steps):
            live = needed[i]
            if opens_level(step):
                assert isinstance(step, Match)
                rest = plan.steps[i + 1 :]
                inner = Level(layout if i == last else None, live, rest, context, level.depth + 1)
                table = tables[step.relation.name]
                if table.scheme is not None and step.role is not Role.ASKED:
                    self._steps.append(JoinWithScheme(step, level, inner, table.scheme, own, first=i == 0))
                elif step.key and not (i == 0 and step.role in STARTING):
                    self._steps.append(Join(step, level, inner, table, own))
                else:
                    self._steps.append(Scan(step, level, inner, table, own, first=i == 0))
                level = inner
            elif isinstance(step, Match):
                self._steps.append(Exists(step, level, _facts(step, tables), counted=counted, live=live))
            elif isinstance(step, Check):
                self._steps.append(Absent(step, level, _facts(step, tables), live))
            elif isinstance(step, Compute):
                self._steps.append(ComputeColumn(step, level, live, own))
            else:
                self._steps.append(FilterRows(step, level, live, own))
        self._steps.append(Emit(level, layout, own))
        for operation, following in zip(self._steps, self._steps[1:], strict=False):
            operation.next = following
        self._readers = [(operation.role, operation) for operation in self._steps if operation.role is not None]

    def run(self, select: Select, sink: Sink) -> None:
        """Sends the output of every binding to the sink."""
        for role, operation in self._readers:
            operation.selection = selection = select(role, operation.relation)
            if operation.required and selection.hi <= selection.lo:
                return
        self.sink = sink
        self._start.reset()
        try:
            self._steps[0].push(1)
        finally:
            del self.sink


def _facts(step: Match | Check, tables: Mapping[str, ReadableTable]) -> Facts:
    table, columns = tables[step.relation.name], tuple(column for column, _ in step.key)
    return TableFacts(table, columns) if table.scheme is None else SchemeFacts(table.scheme, columns)


def _multiplies(step: Step, tables: Mapping[str, ReadableTable]) -> bool:
    """Whether several facts may agree with a binding that they do not extend."""
    return isinstance(step, Match) and not opens_level(step) and len(step.key) < tables[step.relation.name].arity


def _needed_after(plan: Plan, *, counted: bool) -> list[set[Variable]]:
    """The variables that are read after each step, or are output."""
    needed = set(variables_of(*plan.output))
    if counted:
        needed.add(WEIGHT)
    result: list[set[Variable]] = []
    for step in reversed(plan.steps):
        result.append(set(needed))
        match step:
            case Match() | Check():
                if isinstance(step, Match):
                    needed -= {variable for _, variable in step.binds}
                needed |= {known for _, known in step.key if isinstance(known, Variable)}
            case Compute():
                needed.discard(step.variable)
                needed |= set(variables_of(step.expression))
            case Filter():
                needed |= set(variables_of(step.test))
    return result[::-1]
