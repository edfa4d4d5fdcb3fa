"""The state on a cluster: E, I and counters in files, and the rules of the strata over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evermat.algebra import Counters
from evermat.columns.graph.closure_module import closure_modules
from evermat.columns.storage.dictionary import Dictionary
from evermat.engine.run import Jobs, Run
from evermat.language import NormalRules, Program, Stratum, changed_rules, shared_relations
from evermat.plan import pivots
from evermat.spark.engine.closure_access import OnCluster
from evermat.spark.engine.equality_state import Representatives
from evermat.spark.engine.fact_sets import CountedFacts, FactSet, evaluation
from evermat.spark.engine.job_runner import Cluster, Found, Job, total_rows
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.serialization import FactFile, Shape
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files
from evermat.spark.engine.tasks.worker import Figures


class Workshop:
    """What sets and rules of a state share: where jobs run, the shapes of facts, and whom figures are told to."""

    def __init__(self, cluster: Cluster, shapes: dict[str, Shape], jobs: Jobs) -> None:
        self.cluster, self.shapes, self.jobs = cluster, shapes, jobs
        self.undefined: Counter[int] = Counter()  # bindings dropped, by the place of the rule
        self.sizes: FactSet | None = None  # the set that says how large relations are
        self.sent = self.sent_bytes = 0  # facts that went from task to task

    def size(self, name: str) -> int:
        """How many facts of a relation there are, about."""
        return 0 if self.sizes is None else self.sizes.count(name)

    def run(self, job: Job, kind: str | None = None) -> list[Found]:
        """Runs a job, and tells the run what it took."""
        found, figures = self.cluster.run(job, self.jobs.run.look)
        self.sent += figures.sent
        self.sent_bytes += figures.sent_bytes
        if kind is not None:
            for sign in {target.sign for target in job.targets} - {0}:
                self.jobs.run.record("count up" if sign > 0 else "count down", 0, 0)
            self.report(figures, kind)
        return found

    def report(self, figures: Figures, kind: str) -> None:
        """Tells the run what an evaluation of rules came across."""
        run = self.jobs.run
        self.undefined.update(figures.undefined)
        run.record(kind, figures.matches, figures.instances)
        run.derived(figures.instances)

    def put_together(self, name: str, files: Sequence[FactFile]) -> list[FactFile]:
        """The facts of many files of a relation in few."""
        job = Job("put files together", [Target(name, self.shapes[name], Files(tuple(files)))])
        (found,) = self.run(job)
        assert found.rows == total_rows(files), f"{found.rows} facts of {total_rows(files)}"
        return found.facts

    def sum_up(self, name: str, files: Sequence[FactFile]) -> list[FactFile]:
        """Amounts of a relation in few files, each fact once."""
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
        """What there is of some expressions, by relation; of those that are empty there may be nothing.

        What is in files already is found without a job.
        """
        if not touched:
            files = {name: e.files for name, e in expressions.items() if isinstance(e, Files)}
            if files:
                known = {name: Found(list(found), rows=total_rows(found)) for name, found in files.items()}
                rest = {name: e for name, e in expressions.items() if name not in files}
                return known | self.evaluate(what, rest, write=write)
        job, names = evaluation(what, expressions, self.shapes, write=write, touched=touched, sign=sign)
        if not names:
            return {}
        return dict(zip(names, self.run(job), strict=True))


class StratumRules:
    """The rules of one stratum."""

    def __init__(self, stratum: Stratum, workshop: Workshop, representatives: Representatives | None = None) -> None:
        self.stratum = stratum
        own = frozenset(stratum.relations)
        self.written = Rules(stratum.rules, own, workshop)
        self.nonrecursive = Rules(stratum.nonrecursive, own, workshop)
        self.recursive = Rules(stratum.recursive, own, workshop)
        self.plain = Rules(stratum.plain, own, workshop)
        self.closures = closure_modules(stratum.closures, OnCluster(workshop), self.plain.heads)
        self.stores = ()  # on a cluster every fact is in a file
        self._normal: dict[str, NormalRules[Rules]] = {}
        if representatives is not None:
            normal = representatives.renaming.normal
            self.everything = NormalRules(self.written, normal)
            for kind in ("nonrecursive", "recursive", "plain"):
                self._normal[kind] = NormalRules(getattr(self, kind), normal)
                setattr(self, kind, self._normal[kind].rules)

    def refresh(self) -> bool:
        """Brings the rules into normal form, where terms have other representatives than before; whether any has changed."""
        changed = bool(self.everything.refresh())
        for kind, normal in self._normal.items():
            changed |= bool(normal.refresh())
            setattr(self, kind, normal.rules)
        return changed

    def give_up_closures(self) -> None:
        """From now on all recursive rules are evaluated instance by instance: a graph would be too large for the driver."""
        self.plain, self.closures = self.recursive, []
        if self._normal:
            self._normal["plain"] = self._normal["recursive"]


class State:
    """All facts of a program, in files."""

    workshop: Workshop

    def __init__(self, program: Program, run: Run, cluster: Cluster, kept: State | None = None) -> None:
        """An empty state, or one that shares the facts of `kept`: the state of the program before a change of rules."""
        self.program, self.cluster = program, cluster
        shared = [] if kept is None else shared_relations(program, kept.program)
        shapes = _shapes(program)
        if kept is not None:
            shapes |= {name: kept.workshop.shapes[name] for name in shared}  # files stay in their buckets
        self.jobs = Jobs(run)
        self.workshop = Workshop(cluster, shapes, self.jobs)
        # Of facts that somebody asks to see, and of terms that are equal to others.
        self.dictionary: Dictionary = Dictionary() if kept is None else kept.dictionary
        self.representatives: Representatives | None = None
        self.given = self.explicit = FactSet("E", self.workshop)
        if program.rewriting:
            self.representatives = Representatives(program, self.workshop, self.dictionary)
            self.given = FactSet("given", self.workshop)
            if kept is not None and kept.representatives is not None:
                self.representatives.share(kept.representatives)
        self.materialised = self.workshop.sizes = FactSet("I", self.workshop)
        self.nonrecursive_counter = CountedFacts("C_nr", self.workshop)
        self.recursive_counter = CountedFacts("C_r", self.workshop)
        self.strata: Sequence[StratumRules] = [
            StratumRules(stratum, self.workshop, self.representatives) for stratum in program.strata
        ]
        self.counters: dict[Stratum, Counters] = dict.fromkeys(program.strata, Counters.NONE)
        self._work: dict[Stratum, int] = {}
        if kept is not None:
            self._take_over(kept, shared)

    def _take_over(self, kept: State, shared: Sequence[str]) -> None:
        """Shares the facts and counters of a state; counters stay valid for strata that are the same."""
        for mine, other in (
            (self.given, kept.given),
            (self.explicit, kept.explicit),
            (self.materialised, kept.materialised),
        ):
            mine.share(other, shared)
        for counter, others in (
            (self.nonrecursive_counter, kept.nonrecursive_counter),
            (self.recursive_counter, kept.recursive_counter),
        ):
            counter.files = {name: files for name, files in others.files.items() if name in shared}
        self._work = dict(kept._work)
        valid = {stratum.signature: counters for stratum, counters in kept.counters.items()}
        for stratum in self.counters:
            self.counters[stratum] = valid.get(stratum.signature, Counters.NONE)

    def changed_rules(self, kept: State) -> tuple[Rules, Rules]:
        """The rules of `kept` that this state's program has no more, and those that it has in addition."""
        gone, come = changed_rules(kept.program, self.program)
        # Names of hidden relations may be used anew: rules that are gone mean the old ones.
        before = Workshop(self.cluster, {**self.workshop.shapes, **kept.workshop.shapes}, self.jobs)
        before.sizes = kept.materialised
        return Rules(gone, frozenset(), before), Rules(come, frozenset(), self.workshop)

    def load(self, given: FactSet) -> None:
        """Takes in the explicit facts, before the first run; every term has its own name, if rules ask for names."""
        self.given.take_over(given)
        if self.representatives is not None:
            self.given.add(self.representatives.names_of(given, self.program.rules))
            self.explicit.take_over(self.given)

    schemes = "plain"
    sums_counts = True
    stored_by_schemes: frozenset[str] = frozenset()
    copied_by_schemes: Mapping[str, list[str]] = MappingProxyType({})

    def settle_storage(self, stratum: Any) -> None:
        """On a cluster every fact is in a file."""

    def hold_back_copies(self, stratum: Any) -> None:
        """On a cluster every fact is in a file."""

    def give_back_copies(self, stratum: Any) -> Rules:
        """None were left out."""
        return Rules((), frozenset(stratum.stratum.relations), self.workshop)

    def store_closure(self, stratum: Any, external: Any) -> bool:
        """On a cluster every fact is in a file."""
        del stratum, external
        return False

    @property
    def equality(self) -> Any:
        """The state while terms become equal, from scratch."""
        from evermat.spark.engine.equality import StateEquality  # noqa: PLC0415  (it is made of states)

        return StateEquality(self)

    @property
    def checks_equality(self) -> bool:
        """Each step of a search for proofs would be a job, or several: it takes less to compute a stratum with equality again."""
        return False

    def refresh_rules(self) -> None:
        """Brings all rules into normal form, if terms have other representatives than before."""
        if self.representatives is not None:
            for stratum in self.strata:
                stratum.refresh()

    def count_facts_of(self, name: str) -> int:
        """How many facts of a relation there are, in all names."""
        if self.representatives is None:
            return self.materialised.count(name)
        return self.representatives.count(self.materialised, name)

    def record_counters(self, stratum: Stratum, valid: Counters) -> None:
        """Notes which counters of a stratum are valid from now on."""
        self.counters[stratum] = valid

    def valid_counters(self, stratum: Stratum) -> Counters:
        """Which counters of a stratum are valid."""
        return self.counters[stratum]

    def record_work(self, stratum: Stratum, instances: int) -> None:
        """Notes how many rule instances there were when a stratum was derived from scratch."""
        self._work[stratum] = instances

    def work(self, stratum: Stratum) -> int:
        """How many rule instances it takes, about, to derive a stratum from scratch; at least one for each fact."""
        return max(self._work.get(stratum, 0), sum(map(self.materialised.count, stratum.relations)))

    def reset_counters(self, stratum: Stratum) -> None:
        """Sets the counters of a stratum to 0; none is valid then."""
        self.counters[stratum] = Counters.NONE
        for counter in (self.nonrecursive_counter, self.recursive_counter):
            for name in stratum.relations:
                counter.drop(name)

    @property
    def nbytes(self) -> int:
        """Bytes of all files of facts and amounts."""
        sets = [files for s in (self.given, self.explicit, self.materialised) for n in s.names for files in s.files(n)]
        counts = [*self.nonrecursive_counter.files.values(), *self.recursive_counter.files.values()]
        paths = {file.path for files in [*sets, *counts] for file in files}
        return sum(Path(path).stat().st_size for path in paths)

    @property
    def row_count(self) -> int:
        """How many facts there are."""
        return sum(map(self.materialised.count, self.program.relations))


def _shapes(program: Program) -> dict[str, Shape]:
    """The shapes of all relations. Where recursive rules hand a column on, that decides on the bucket: heads stay where they are found.

    So they do if the sources of a closure decide.
    """
    homes: dict[str, int] = {}
    for stratum in program.strata:
        homes |= pivots(stratum) or {}
        homes |= {m.relation: int(m.flipped) for closure in stratum.closures for m in closure.members}
    return {
        name: Shape.of(relation.types, (homes[name],) if name in homes else None)
        for name, relation in program.relations.items()
    }
