"""The algebra of fact sets: what algorithms are written in, and what an engine has to offer.

Protocols only. The names are those of the papers in words: I is the materialisation, E the explicit facts; a *view* is
what can be read, a *set* what can also grow, a *bag* the heads of rule instances with their multiplicities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

from evermat.language import Stratum

OwnView: TypeAlias = Any
"""A view of the same engine. Views of different engines do not mix, which types cannot say in a readable way."""

OwnFacts: TypeAlias = Any
"""A view or a bag of the same engine."""


class Counters(IntEnum):
    """Which derivation counters of a stratum are kept and valid.

    `MODULAR`: C_nr, and C_r of the recursive rules that are in no closure. `BOTH`: C_nr, and C_r of all recursive rules; where there
    are no closures the two are the same, and it is called `BOTH`.
    """

    NONE = 0
    NONRECURSIVE = 1
    MODULAR = 2
    BOTH = 3

    @property
    def recursive(self) -> bool:
        """Whether recursive derivations are counted, of whatever rules."""
        return self > Counters.NONRECURSIVE

    def include(self, needed: Counters) -> bool:
        """Whether whoever needs some counters has them here."""
        return self == needed or (self > needed and not needed.recursive)

    def common(self, other: Counters) -> Counters:
        """What is valid where either may be."""
        return self if self == other else min(self, other, Counters.NONRECURSIVE)

    def by_modules(self) -> Counters:
        """What is kept of a stratum whose recursive rules are split into modules, if this is asked for."""
        return Counters.MODULAR if self.recursive else self


class TooManyInstancesError(Exception):
    """An attempt has considered more rule instances than it may."""


class View(Protocol):
    """Facts that can be read: a lazy expression over sets. Making one costs nothing; reading costs what is in it."""

    def __or__(self, other: OwnView, /) -> View: ...
    def __and__(self, other: OwnView, /) -> View: ...
    def __sub__(self, other: OwnView, /) -> View: ...

    def count(self, name: str) -> int:
        """How many facts of a relation are in it."""

    def about(self, name: str) -> int:
        """About how many facts of a relation are in it; cheap."""

    def at(self, stratum: Stratum) -> View:
        """Only facts of relations of this stratum."""

    def below(self, stratum: Stratum) -> View:
        """Only facts of relations of other strata; a stratum's rules read only lower ones."""

    def listed(self) -> View:
        """The facts in it now, whatever becomes of the sets that it is made of."""

    def in_schemes(self) -> View:
        """Those facts in it that storage schemes have derived last: they are in no set."""

    @property
    def size(self) -> int:
        """How many facts are in it."""

    def __bool__(self) -> bool:
        """Whether there is any fact in it; cheap for sets."""


class Set(View, Protocol):
    """A dataset that grows: I, E, a delta."""

    def add(self, facts: OwnFacts) -> View:
        """Adds facts and hands back those that were new. Evaluates what is lazy."""


class WorkingSet(Set, Protocol):
    """A set for the time of an update, such as D, A, a delta, C, P or Y."""

    @property
    def names(self) -> Iterable[str]:
        """Relations of which it holds facts."""

    def replace(self, facts: OwnView) -> bool:
        """Holds exactly these facts from now on; whether there are any."""

    def clear(self) -> None:
        """Holds nothing from now on."""


class Bag(Protocol):
    """The heads of rule instances, one occurrence for each instance. Read once, by `Set.add` or a counter."""


class Counter(Protocol):
    """How often facts are derived; never overflows silently."""

    def add(self, facts: OwnFacts) -> OwnFacts:
        """The facts touched, for `Set.add`, which must read them: every occurrence (each fact of a view once) is counted by then.

        Facts that are in the set already may be left out.
        """


class UpdateCounter(Counter, Protocol):
    """A counter during an update: journaled, so that it can be rolled back."""

    def subtract(self, facts: OwnFacts) -> OwnFacts:
        """As `add`, for occurrences that are lost."""

    @property
    def positive(self) -> View:
        """Facts counted at least once; only used intersected with something small."""


class Rules(Protocol):
    """A group of rules, compiled: a stratum's nonrecursive or recursive ones."""

    def consequences(
        self,
        positive: OwnView,
        negative: OwnView | None = None,
        *,
        delta_positive: OwnView | None = None,
        delta_negative: OwnView | None = None,
    ) -> Bag:
        """The heads of the rule instances whose positive atoms are in `positive` and negated ones not in `negative`.

        With a delta: only those with a positive atom in `delta_positive` or a negated one in `delta_negative`. Each instance
        counts once. `negative` is `positive` if left out. The sets are seen as they are at the call.
        """

    @property
    def heads(self) -> set[str]:
        """The relations that the rules derive."""

    def some(self, numbers: Collection[int]) -> Rules:
        """Those with some numbers, which count from 0 in the order in which the rules were given."""

    def of(self, stratum: Stratum) -> Rules:
        """The rules that derive relations of a stratum."""

    def derivable(self, heads: OwnView, positive: OwnView, negative: OwnView | None = None) -> Bag:
        """Those of some heads that an instance derives: rules are evaluated backwards."""

    def supports(self, heads: OwnView, positive: OwnView, negative: OwnView | None = None) -> Bag:
        """The body facts, of the heads' own stratum, of the instances that derive some heads."""

    def regroup(self, old: OwnView, new: OwnView, gone: dict[str, Any], come: dict[str, Any]) -> tuple[View, View]:
        """Aggregates: what the groups touched by a change lose and gain."""


Take: TypeAlias = Callable[[OwnFacts], View]
"""Adds facts to a set and hands back those that were new to it and to all that it is a part of."""


class Module(Protocol):
    """Some recursive rules of a stratum, Π, with an algorithm of their own.

    Which rules a closure stands for says `program.closures`. Its *external* facts X are those of its relations that are explicit, or that
    other rules derive; its *internal* ones follow from them by its own rules. Invariant between updates, while it is valid: the facts of its
    relations in I are what follows from X by Π; and X holds every fact that is explicit or that another rule derives.
    It may hold more: a fact that only Π derives any more costs time and does no harm.
    """

    def add(self, take: Take, present: OwnView, delta: OwnView) -> View:
        """Add, Definition 3: takes the smallest J with Π[I ∪ J : Δ ∪ J] ⊆ I ∪ J, where I is `present`; the facts of J that are new.

        Δ are facts from elsewhere: they become external.
        """

    def anew(self, update: Any, facts: WorkingSet) -> Module:
        """The same rules, without facts: to derive everything again, into a set, beside what there is."""

    def settle(self) -> None:
        """All is derived that follows: nobody asks any more what came last."""

    @property
    def only_anew(self) -> bool:
        """Whether an update can only derive everything again."""

    def begin(self) -> None:
        """A materialisation from scratch begins: has no facts, but perhaps those that it was told when it was decided how to store them."""

    def clear(self) -> None:
        """Has no facts from now on."""

    def rebuild(self, external: OwnView, present: OwnView) -> None:
        """Becomes valid for a materialisation: has these external facts."""

    @property
    def is_valid(self) -> bool:
        """Whether it fits the materialisation."""

    @property
    def names(self) -> frozenset[str]:
        """The relations that it closes."""

    def during(self, update: Any, gone: dict[str, Any], come: dict[str, Any]) -> ModuleUpdate:
        """The module in an update, by which lower strata have lost and gained facts as for `Rules.consequences`."""


class ModuleUpdate(Protocol):
    """A module in an update of its stratum. What it does to its own facts is undone with the update.

    The first half serves DRed^c-Mod, the second B/F^c-Mod, the third both. What it hands back it knows already: it need not be told.
    """

    def lost_by_change(self) -> OwnFacts:
        """Diff, Definition 5: the consequences lost because lower strata have changed; and what of Π depends on those."""

    def delete(self, delta: OwnView) -> OwnFacts:
        """Del, Definition 6: facts of I that Π derives, in any number of steps, from deleted ones.

        Facts with nonrecursive derivations may be among them; the caller leaves them out, as well as those that are deleted already.
        """

    def rederive(self) -> OwnFacts:
        """Red, Definition 7: all facts of D that Π derives, in any number of steps, from what is left."""

    def forget(self, facts: OwnView) -> None:
        """Facts that have no nonrecursive derivation any more: they are external no more, unless other recursive rules may derive them."""

    def cut(self, delta: OwnView) -> OwnFacts:
        """Facts that are not external and cannot have a proof any more, now that Δ has none and steps of lower strata are lost."""

    def touched(self) -> OwnFacts:
        """External facts to be checked: those without which facts that have lost derivations, by what was cut last, would have no proof."""

    def supports(self, goals: OwnView) -> OwnFacts:
        """External facts that take part in any possible proof of some facts by Π; those of which it is known that they hold may be left out."""

    def prove(self, goals: OwnView, proved: OwnView) -> OwnFacts:
        """Those of some facts that follow by Π from external ones that are proved or have nonrecursive derivations."""

    def note(self, facts: OwnView) -> None:
        """Facts of its relations that hold already are derived by other rules: they become external."""

    def gained_by_change(self) -> OwnFacts:
        """Diff for what lower strata have gained, closed like `add`."""

    def add(self, delta: OwnView) -> OwnFacts:
        """Add, for an update: what follows by Π from new facts. Facts that hold already may be among it."""


class Stored(Protocol):
    """Relations of a stratum that a storage scheme holds: what has rows are their inputs, which rules derive as ever."""

    def follow(self, update: Any, gone: OwnView, come: OwnView) -> None:
        """Takes account of inputs that are in D and A, and of facts of lower strata that are gone or have come.

        D and A of its relations, as rules of higher strata read them, are then exactly what follows.
        """


class NormalRules(Protocol):
    """Rules under a renaming of terms, which may change."""

    @property
    def rules(self) -> Rules:
        """The rules in normal form: their terms are representatives."""

    def refresh(self) -> set[int]:
        """Brings the rules into normal form again; the numbers of those that have changed."""


class Known(Protocol):
    """Facts that are known, M, in normal form for a renaming of terms, γ."""

    @property
    def facts(self) -> View:
        """M, and what rules may read besides: facts of lower strata."""

    @property
    def rules(self) -> NormalRules:
        """Γ: the rules of the stratum, under γ."""

    def add(self, *facts: OwnFacts) -> View:
        """Adds facts to M and hands back those that were new."""

    def merge(self, delta: OwnView) -> View | None:
        """Makes terms equal in γ of which some facts of M say so, and brings M into normal form again.

        Hands back those facts in normal form, with whatever else is new in M; None if all these terms were equal already.
        """


class Again(Known, Protocol):
    """A materialisation of a stratum from scratch, under a renaming of its own."""

    def adopt(self) -> None:
        """Puts the difference to I into D and A; π becomes γ."""


class Grown(Known, Protocol):
    """The materialisation of a stratum, while facts are added; γ is π."""

    def finish(self) -> None:
        """Nothing is added any more."""


class Proofs(Known, Protocol):
    """What is proved of the new materialisation; γ begins as the identity. A fact that is found is in M if what represents it was checked."""

    @property
    def checked(self) -> WorkingSet:
        """C: facts of I whose provability is in question."""

    @property
    def complete(self) -> WorkingSet:
        """Checked facts of which everything that they represent is proved."""

    def begin(self, front: OwnView) -> View:
        """Proves what needs no proof by recursive rules of all that new checked facts represent; what is new in M."""

    def disproved(self) -> View:
        """Checked facts of which nothing that they represent is proved."""

    def adopt(self) -> None:
        """Algorithm 2: D keeps what does not hold any more, A takes what is new, and π becomes γ where it was doubtful."""


class EqualityUpdate(Protocol):
    """A stratum with equality in an update."""

    @property
    def rules(self) -> NormalRules:
        """π(Π)."""

    @property
    def possible(self) -> NormalRules:
        """π(Π) with all instances over representatives that stand for some over names: a rule may ask whether two names differ."""

    def normal(self, facts: OwnView) -> View:
        """Facts in normal form for π."""

    def names(self, facts: OwnView) -> View:
        """The facts c ≈ c for the terms c in some facts that have other names."""

    def depending_on_names(self, unproved: OwnView, live: OwnView) -> View:
        """Of live facts those that mention a term c with other names for which c ≈ c is among the unproved."""

    def proofs(self, below: OwnView, blocked: OwnView) -> Proofs:
        """The search for proofs; they may use facts of lower strata, and must not meet others."""

    def grown(self) -> Grown:
        """The new materialisation, for insertion."""

    def again(self, below: OwnView) -> Again:
        """A materialisation from scratch over facts of lower strata."""


class Equality(Protocol):
    """A state in which equal terms are represented by one, while it is materialised from scratch."""

    def materialised(self, stratum: Any) -> Grown:
        """I of a stratum, and π."""

    def settle(self) -> None:
        """The equalities are known: strata above may follow."""


class StratumRules(Protocol):
    """The rules of one stratum for one engine."""

    @property
    def stratum(self) -> Stratum:
        """What the program says."""

    @property
    def nonrecursive(self) -> Rules:
        """Π_nr of the stratum."""

    @property
    def recursive(self) -> Rules:
        """Π_r of the stratum."""

    @property
    def closures(self) -> Sequence[Module]:
        """Modules of the recursive rules that close relations."""

    @property
    def plain(self) -> Rules:
        """The recursive rules that are in no closure: the seminaive module."""

    @property
    def stores(self) -> Sequence[Stored]:
        """Closures that a storage scheme holds: their rules are not among those above."""


class State(Protocol):
    """What outlives a run: the explicit facts, the materialisation, the counters."""

    @property
    def explicit(self) -> Set:
        """E; in normal form where equal terms are represented by one."""

    @property
    def given(self) -> Set:
        """E under the names that it was given with."""

    @property
    def materialised(self) -> Set:
        """I."""

    @property
    def stored_by_schemes(self) -> Collection[str]:
        """Relations that storage schemes hold."""

    @property
    def sums_counts(self) -> bool:
        """Whether counters are sums of what updates have counted: those of an update cannot be taken out again."""

    def settle_storage(self, stratum: Any) -> None:
        """Decides how relations of a stratum are stored, all below it being complete, as far as it can be told before its rules are evaluated."""

    def hold_back_copies(self, stratum: Any) -> None:
        """Leaves out nonrecursive rules of a stratum that a storage scheme might take for granted, until it is known whether it does."""

    def give_back_copies(self, stratum: Any) -> Rules:
        """The rules that were left out, which are rules of the stratum again: what they derive is still to be added."""

    def store_closure(self, stratum: Any, external: OwnView) -> bool:
        """Has a storage scheme hold what follows from some facts by the closure of a stratum, if that is better: nothing is left to derive then."""

    @property
    def equality(self) -> Equality:
        """What there is to a stratum with equality."""

    @property
    def checks_equality(self) -> bool:
        """Whether proofs can be looked for in a stratum with equality; else it is computed again by every update."""

    @property
    def nonrecursive_counter(self) -> Counter:
        """C_nr: explicit facts and instances of nonrecursive rules."""

    @property
    def recursive_counter(self) -> Counter:
        """C_r: instances of recursive rules."""

    @property
    def strata(self) -> Sequence[StratumRules]:
        """The strata in the order of evaluation."""

    def record_counters(self, stratum: Stratum, valid: Counters) -> None:
        """Notes which counters of a stratum are valid from now on."""

    def valid_counters(self, stratum: Stratum) -> Counters:
        """Which counters of a stratum are valid."""

    def reset_counters(self, stratum: Stratum) -> None:
        """Sets the counters of a stratum to 0; none is valid then."""

    def record_work(self, stratum: Stratum, instances: int) -> None:
        """Notes how many rule instances there were when a stratum was derived from scratch."""

    def work(self, stratum: Stratum) -> int:
        """How many rule instances it takes, about, to derive a stratum from scratch."""


class Run(Protocol):
    """One job over a state: limits, progress, statistics."""

    @property
    def derivations(self) -> int:
        """How many rule instances were considered."""

    @property
    def outgrown(self) -> bool:
        """Whether there are more facts or rounds than may be in this place: what is left is to be done elsewhere."""

    def strata(self, state: Any) -> Iterator[StratumRules]:
        """The strata in order; takes note of each."""

    def next_round(self) -> None:
        """Notes that a round begins; raises `LimitError` if a limit is reached."""

    def check_facts(self) -> None:
        """Raises `LimitError` if there are more facts than may be; for whoever adds many in the last round."""


class Update(Protocol):
    """One update: E⁻ and E⁺ cleaned of what changes nothing, D and A, and working sets. Left without commit, all is rolled back."""

    figures: dict[str, int]

    @property
    def state(self) -> State:
        """What is updated."""

    deleted: Any
    """E⁻: as given until the equalities are known, then what changes in normal forms. Where an update is done in steps, that of a step."""

    inserted: Any
    """E⁺, likewise."""

    @property
    def renewed(self) -> set[Stratum]:
        """Strata whose rules mention terms that have another representative than before."""

    before: OwnView
    """I as the update finds it; where it is done in steps, as this step finds it."""

    explicit_before: OwnView
    """E, likewise."""

    axioms: OwnView
    """What is explicit before, less what is deleted."""

    @property
    def nothing(self) -> WorkingSet:
        """No facts."""

    doubtful: OwnView
    """Facts that have lost derivations before the update began, in whatever way."""

    def meet(self, heads: OwnView) -> None:
        """Takes note of facts that insertion has derived, whether they are new or not."""

    def note_place(self) -> int:
        """A place among the notes of what has become of counters and graphs."""

    def notes_since(self, place: int) -> Any:
        """The notes from a place on, to be kept beyond the update."""

    def doubt_counters(self, stratum: Stratum) -> None:
        """The counters of a stratum were counted in the midst of the update: they are not valid if it is undone."""

    def take_back(self, notes: Any) -> None:
        """Undoes to counters and graphs what an update has done that was the last one."""

    def applying(self, phase: str) -> AbstractContextManager[None]:
        """Rule instances that are found forwards meanwhile count as applications of a phase: `deletions`, `forward`; else `insertions`."""

    def equality(self, stratum: Any) -> EqualityUpdate:
        """A stratum with equality in this update."""

    def settle_equality(self) -> None:
        """The equalities are known: strata above may follow."""

    @property
    def overdeleted(self) -> WorkingSet:
        """D."""

    @property
    def added(self) -> WorkingSet:
        """A."""

    @property
    def nonrecursive_counter(self) -> UpdateCounter:
        """C_nr."""

    @property
    def recursive_counter(self) -> UpdateCounter:
        """C_r."""

    def new(self, name: str) -> WorkingSet:
        """A working set, empty."""

    def attempt(self, stratum: Stratum, most: int) -> AbstractContextManager[None]:
        """Work on a stratum that, as soon as more instances are considered, is undone and ends with `TooManyInstancesError`."""

    def release(self, *sets: Any) -> None:
        """Working sets that are needed no more."""

    def next_round(self) -> None:
        """A round begins; raises `LimitError` if a limit is reached."""

    def check_facts(self) -> None:
        """As for a run."""

    @property
    def outgrown(self) -> bool:
        """As for a run; an update never is."""

    def strata(self) -> Iterator[StratumRules]:
        """The strata in order; takes note of each."""
