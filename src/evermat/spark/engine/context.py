"""The context of the sets and rules of one state on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evermat.engine import Jobs, Run
from evermat.spark.engine.job_runner import Cluster, Found, Job, Stage, total_rows
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.serialization import FactFile, Shape
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files, most
from evermat.spark.engine.tasks.worker import Figures

if TYPE_CHECKING:
    from evermat.spark.engine.fact_sets import FactSet


class EngineContext:
    """The cluster that runs jobs, the shapes of facts, and the run that records figures.

    Invariant: `shapes` has every relation that a set or a rule of the state mentions; a file stays in its bucket.
    One thread uses it at a time: a reader has a context of its own, see `beside`.
    """

    def __init__(self, cluster: Cluster, shapes: dict[str, Shape], jobs: Jobs) -> None:
        self.cluster, self.shapes, self.jobs = cluster, shapes, jobs
        self.undefined: Counter[int] = Counter()  # bindings dropped, by the position of the rule
        self.sizes: FactSet | None = None  # the set whose counts are the sizes of relations
        self.sent = self.sent_bytes = 0  # facts that tasks have sent to other tasks

    def beside(self, run: Run, sizes: FactSet) -> EngineContext:
        """A context for reading beside this one: with a run and figures of its own, on the same cluster."""
        made = EngineContext(self.cluster, dict(self.shapes), Jobs(run))
        made.sizes = sizes
        return made

    def size(self, name: str) -> int:
        """Estimated number of facts of a relation."""
        return 0 if self.sizes is None else self.sizes.count(name)

    def run(self, job: Job, kind: str | None = None) -> list[Found]:
        """Runs a job, and reports its figures to the run; `kind` is the question to rules."""
        found, figures = self._noted(*self.cluster.run(job, self.jobs.run.look))
        if kind is not None:
            for sign in {target.sign for target in job.targets} - {0}:
                self.jobs.run.record("count up" if sign > 0 else "count down", 0, 0)
            self.report(figures, kind)
        return found

    def execute(self, what: str, tasks: int, stages: Sequence[Stage], targets: int) -> tuple[list[Found], Figures]:
        """Runs stages that have so many targets."""
        return self._noted(*self.cluster.gather(self.cluster.execute(what, tasks, stages, self.jobs.run.look), targets))

    def _noted(self, found: list[Found], figures: Figures) -> tuple[list[Found], Figures]:
        self.sent += figures.sent
        self.sent_bytes += figures.sent_bytes
        return found, figures

    def report(self, figures: Figures, kind: str) -> None:
        run = self.jobs.run
        self.undefined += figures.undefined
        run.record(kind, figures.matches, figures.instances)
        run.derived(figures.instances)

    def compact(self, name: str, files: Sequence[FactFile]) -> list[FactFile]:
        """The facts of many files of a relation in few."""
        job = Job("compact files", [Target(name, self.shapes[name], Files(tuple(files)))])
        (found,) = self.run(job)
        assert found.rows == total_rows(files), f"{found.rows} facts of {total_rows(files)}"
        return found.facts

    def sum_up(self, name: str, files: Sequence[FactFile]) -> list[FactFile]:
        """The amounts of a relation in few files, each fact once."""
        target = Target(name, self.shapes[name], None, sums=Counted(tuple(files)))
        return self.run(Job("sum up amounts", [target]))[0].amounts

    def evaluate(
        self,
        what: str,
        expressions: Mapping[str, Expression | None],
        *,
        write: bool = True,
        touched: Mapping[str, Expression] | None = None,
        sign: int = 0,
    ) -> dict[str, Found]:
        """The results of some expressions, by relation; empty ones may be missing. Expressions that are files need no job."""
        if not touched:
            files = {name: e.files for name, e in expressions.items() if isinstance(e, Files)}
            if files:
                known = {name: Found(list(found), rows=total_rows(found)) for name, found in files.items()}
                rest = {name: e for name, e in expressions.items() if name not in files}
                return known | self.evaluate(what, rest, write=write)
        touched = touched or {}
        names = [n for n, e in expressions.items() if most(e) or n in touched]
        if not names:
            return {}
        targets = [
            Target(n, self.shapes[n], expressions[n], write, sign if n in touched else 0, touched.get(n)) for n in names
        ]
        return dict(zip(names, self.run(Job(what, targets)), strict=True))
