"""The state on a cluster: E, I and counters in files, and the rules of the strata over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.columns import Dictionary, closure_modules
from evermat.engine import BaseState, BaseStratumRules, Run
from evermat.language import Program, Rule, Stratum, changed_rules, shared_relations
from evermat.plan import pivots
from evermat.spark.engine.closure_access import ClusterAccess
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.equality_state import Representatives
from evermat.spark.engine.expansion import Expansion
from evermat.spark.engine.fact_sets import CountedFacts, FactSet, View
from evermat.spark.engine.job_runner import Cluster
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.snapshot import Version
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.scratch_files import sizes
from evermat.store import location_of

if TYPE_CHECKING:
    from evermat.spark.engine.equality import Materialised


class StratumRules(BaseStratumRules[Rules]):
    """The rules of one stratum."""

    def __init__(
        self, stratum: Stratum, context: EngineContext, representatives: Representatives | None = None
    ) -> None:
        self._context = context
        super().__init__(stratum, None if representatives is None else representatives.union_find.normal)
        self.closures = closure_modules(stratum.closures, ClusterAccess(context), self.plain.heads)
        self.stores = ()  # on a cluster every fact is in a file

    def _rules(self, rules: Sequence[Rule]) -> Rules:
        return Rules(rules, frozenset(self.stratum.relations), self._context)

    def give_up_closures(self) -> None:
        """Has all recursive rules evaluated instance by instance from now on: a graph would be too large for the driver."""
        self.plain, self.closures = self.recursive, []
        self._normal[2:] = self._normal[1:2]  # if terms have representatives: `plain` follows `recursive`

    # ── Storage schemes: on a cluster every fact is in a file ────────────────────────────────────────────────────

    def settle_storage(self, state: State) -> None:
        """Does nothing."""

    def hold_back_copies(self, state: State) -> None:
        """Does nothing."""

    def give_back_copies(self) -> Rules:
        return self._rules(())

    def store_closure(self, state: State, external: View) -> bool:
        del state, external
        return False


class State(BaseState[FactSet, CountedFacts, StratumRules, Representatives]):
    """All facts of a program, in files.

    Invariant: a file is written once and never changed; it is deleted when no set, counter, expression or version refers to it any more.
    Readers take `version` and nothing else of it, beside an update too, whose commit replaces that by one assignment.
    """

    context: EngineContext
    version: Version
    schemes = "plain"
    sums_counts = True
    checks_equality = False  # each step of a search for proofs would be a job, or several: recomputing takes less
    stored_by_schemes: frozenset[str] = frozenset()
    copied_by_schemes: Mapping[str, list[str]] = MappingProxyType({})

    def __init__(self, program: Program, run: Run, cluster: Cluster, kept: State | None = None) -> None:
        """An empty state, or one that shares the facts of `kept`: the state of the program before a change of rules."""
        super().__init__(program, run)
        self.cluster = cluster
        shared = [] if kept is None else shared_relations(program, kept.program)
        shapes = _shapes(program)
        if kept is not None:
            shapes |= {name: kept.context.shapes[name] for name in shared}  # files stay in their buckets
        self.context = EngineContext(cluster, shapes, self.jobs)
        # Of facts that the driver reads, and of terms that are equal to others.
        self.dictionary: Dictionary = Dictionary() if kept is None else kept.dictionary
        self.representatives = None
        self.given = self.explicit = FactSet("E", self.context)
        if program.rewriting:
            self.representatives = Representatives(program, self.context, self.dictionary)
            self.given = FactSet("given", self.context)
            if kept is not None and kept.representatives is not None:
                self.representatives.share(kept.representatives)
        self.materialised = self.context.sizes = FactSet("I", self.context)
        self.nonrecursive_counter = CountedFacts("C_nr", self.context)
        self.recursive_counter = CountedFacts("C_r", self.context)
        self.strata = [StratumRules(stratum, self.context, self.representatives) for stratum in program.strata]
        if kept is not None:
            self._take_over(kept, shared)
        self.publish()

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
        self.share_counters(kept)

    def publish(self, change: tuple[Expansion, View, View] | None = None) -> None:
        """Makes the facts as they are now the version that is read from now on, by one assignment.

        `change` has the expansion before an update, and what the update has deleted from expanded facts and inserted.
        """
        explicit = self.explicit.copy()
        given = explicit if self.given is self.explicit else self.given.copy()
        materialised = self.materialised.copy()
        names = self.representatives
        expansion = None if names is None else names.expansion(materialised, frozen=True)
        if expansion is not None and change is not None:
            expansion.count_on(*change)
        undefined = Counter(self.context.undefined)
        self.version = Version(
            self.program, self.context, self.dictionary, given, explicit, materialised, expansion, undefined
        )
        self.cluster.frame_pins.release()

    def changed_rules(self, kept: State) -> tuple[Rules, Rules]:
        """The rules of `kept` that were removed from the program, and those that were added."""
        removed, added = changed_rules(kept.program, self.program)
        # The same name may be another hidden relation: removed rules mean the old one.
        before = EngineContext(self.cluster, {**self.context.shapes, **kept.context.shapes}, self.jobs)
        before.sizes = kept.materialised
        return Rules(removed, frozenset(), before), Rules(added, frozenset(), self.context)

    def load(self, given: FactSet) -> None:
        """Loads the explicit facts, before the first run; with the names of all terms, if rules read them."""
        self.given.take_over(given)
        if self.representatives is not None:
            self.given.add(self.representatives.names_of(given, self.program.rules))
            self.explicit.take_over(self.given)

    def grown(self, stratum: StratumRules) -> Materialised:
        from evermat.spark.engine.equality import Materialised  # noqa: PLC0415  (it is made of states)

        return Materialised(self, stratum)

    @property
    def nbytes(self) -> int:
        """Bytes of all files of facts and amounts."""
        now = self.version  # whose files exist as long as this refers to them
        sets = [files for s in (now.given, now.explicit, now.materialised) for n in s.names for files in s.files(n)]
        counts = [*self.nonrecursive_counter.files.values(), *self.recursive_counter.files.values()]
        files_ = (location_of(file.path) for files in [*sets, *counts] for file in files)
        return sizes(files_, self.cluster.folder)

    @property
    def row_count(self) -> int:
        return sum(map(self.materialised.count, self.program.relations))


def _shapes(program: Program) -> dict[str, Shape]:
    """The shapes of all relations. A column that all recursive rules keep decides on the bucket: heads stay in the bucket of their task.

    So does the column of a closure's sources.
    """
    homes: dict[str, int] = {}
    for stratum in program.strata:
        homes |= pivots(stratum) or {}
        homes |= {m.relation: int(m.flipped) for closure in stratum.closures for m in closure.members}
    return {
        name: Shape.of(relation.types, (homes[name],) if name in homes else None)
        for name, relation in program.relations.items()
    }
