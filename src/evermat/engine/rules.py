"""Groups of rules, for any engine: where the evaluation of each question starts, how a change affects aggregates, and normal forms.

An engine adds how plans are evaluated: the bag of heads that a group derives from some starts, and which starts some facts may match.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from evermat.language import Atom, Relation, Rule, Stratum, normal_rule, terms_of
from evermat.plan import Roles, Start, Starts


class _View(Protocol):
    @property
    def names(self) -> Iterable[str]: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


ContextT = TypeVar("ContextT")
ViewT = TypeVar("ViewT", bound=_View)
BagT = TypeVar("BagT")
GroupsT = TypeVar("GroupsT")


class BaseRules(ABC, Generic[ContextT, ViewT, BagT, GroupsT]):
    """A group of rules of one stratum; see `algebra.Rules`.

    Attributes:
        rules: The rules; their numbers are their positions here.
        context: What an engine evaluates them over.
        starts: The plans that each question needs.
    """

    def __init__(self, rules: Sequence[Rule], own: frozenset[str], context: ContextT) -> None:
        self.rules, self.context = rules, context
        self._own = own  # relations of the same stratum: still growing, so their size now says nothing
        self.starts = Starts(rules, own)

    # ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────

    def consequences(
        self,
        positive: ViewT,
        negative: ViewT | None = None,
        *,
        delta_positive: ViewT | None = None,
        delta_negative: ViewT | None = None,
    ) -> BagT:
        """Heads of rule instances; see the algebra. Rules whose delta is empty are not evaluated."""
        if delta_positive is None and delta_negative is None:
            starts = self.starts.everything()
        else:
            starts = []
            if delta_positive is not None:
                self._add_changed(starts, delta_positive, negated=False)
            if delta_negative is not None:
                self._add_changed(starts, delta_negative, negated=True)
        roles = Roles(positive, positive if negative is None else negative, delta_positive, delta_negative)
        return self._bag(starts, roles, "forward")

    def _add_changed(self, starts: list[Start], delta: ViewT, *, negated: bool) -> None:
        for name in delta.names:
            if readers := self.starts.changed(name, negated=negated):
                starts += self._concerned(delta, name, readers)

    def derivable(self, heads: ViewT, positive: ViewT, negative: ViewT | None = None) -> BagT:
        """Those of some heads that an instance derives, once for each instance: rules are evaluated backwards.

        Aggregate rules are left out: their results change only with their groups (see `regroup`).
        """
        starts = self._asked(heads, self.starts.backward(set(heads.names)))
        return self._bag(starts, Roles(positive, positive if negative is None else negative, asked=heads), "backward")

    def supports(self, heads: ViewT, positive: ViewT, negative: ViewT | None = None) -> BagT:
        starts = self._asked(heads, self.starts.supports(set(heads.names)))
        return self._bag(starts, Roles(positive, positive if negative is None else negative, asked=heads), "supports")

    @property
    def heads(self) -> set[str]:
        return {rule.head.relation.name for rule in self.rules}

    # ── Other groups ─────────────────────────────────────────────────────────────────────────────────────────────

    def revised(self, rules: Sequence[Rule]) -> Self:
        """A group of other rules instead of these, of which some may be the same."""
        return self._group(rules, self._own)

    def some(self, numbers: Collection[int]) -> Self:
        return self._group([self.rules[number] for number in sorted(numbers)], self._own)

    def of(self, stratum: Stratum) -> Self:
        own = frozenset(stratum.relations)
        return self._group([rule for rule in self.rules if rule.head.relation.name in own], own)

    def _group(self, rules: Sequence[Rule], own: frozenset[str] = frozenset()) -> Self:
        return type(self)(rules, own, self.context)

    # ── Aggregates ───────────────────────────────────────────────────────────────────────────────────────────────

    def regroup(
        self, old: ViewT, new: ViewT, deleted: Mapping[str, ViewT], inserted: Mapping[str, ViewT]
    ) -> tuple[ViewT, ViewT]:
        """Deleted and inserted results of aggregate rules.

        Only groups with deleted or inserted bindings are computed, before and after the change.
        """
        lost, gained = [], []
        for rule in self.rules:
            if rule.aggregate is not None:
                keys = groups_relation(rule)
                if groups := self._groups(keys, self._touched(rule, keys, ((old, deleted), (new, inserted)))):
                    before, after = (self._results(rule, keys, groups, view) for view in (old, new))
                    lost.append(before - after)
                    gained.append(after - before)
        return self._together(lost), self._together(gained)

    def _touched(
        self, rule: Rule, keys: Relation, changes: Iterable[tuple[ViewT, Mapping[str, ViewT]]]
    ) -> Iterator[BagT]:
        """Keys of all bindings of an aggregate's body, and of its list of groups, that an update deletes or inserts."""
        assert rule.aggregate is not None
        head = Atom(keys, rule.aggregate.keys)
        # The list of groups also counts by itself: a group may have no bindings.
        for body in {rule.literals, rule.body} if rule.body else {rule.literals}:
            bindings = self._group([Rule(head, body, rule.span)])
            for view, delta in changes:
                yield bindings.consequences(view, **delta)

    # ── Evaluation, by an engine ─────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _bag(self, starts: Sequence[Start], roles: Roles[ViewT], kind: str) -> BagT:
        """The heads that rules derive from some starts; `kind` is the question, for statistics."""

    @abstractmethod
    def _concerned(self, delta: ViewT, name: str, starts: Sequence[Start]) -> Iterable[Start]:
        """Those of some starts that changed facts of a relation may match: none if there are no such facts."""

    def _asked(self, heads: ViewT, starts: Sequence[Start]) -> Sequence[Start]:
        """Those of some starts, from heads, that facts in question may match."""
        del heads
        return starts

    @abstractmethod
    def _groups(self, keys: Relation, bags: Iterable[BagT]) -> GroupsT:
        """The distinct keys in some bags; false if there are none."""

    @abstractmethod
    def _results(self, rule: Rule, keys: Relation, groups: GroupsT, view: ViewT) -> ViewT:
        """The results of an aggregate rule for some groups."""

    @abstractmethod
    def _together(self, views: Sequence[ViewT]) -> ViewT:
        """The facts of some views, as they are now."""


def groups_relation(rule: Rule) -> Relation:
    """The relation of the keys of an aggregate rule's groups."""
    head = rule.head.relation
    return Relation(f"'groups of {head.name} at {rule.span.start}", head.columns[:-1], hidden=True)


def limited_to(rule: Rule, keys: Relation) -> Rule:
    """An aggregate rule for the groups whose keys are in a relation."""
    assert rule.aggregate is not None
    return Rule(rule.head, (Atom(keys, rule.aggregate.keys), *rule.body), rule.span, rule.aggregate)


RulesT = TypeVar("RulesT", bound=BaseRules[Any, Any, Any, Any])


class NormalRules(Generic[RulesT]):
    """Rules under a renaming: their terms are representatives, and are rewritten when terms become equal."""

    def __init__(self, rules: RulesT, normal: Callable[[str], str]) -> None:
        self._normal = normal
        self._terms: dict[str, list[int]] = {}
        for number, rule in enumerate(rules.rules):
            for term in terms_of(rule):
                self._terms.setdefault(term, []).append(number)
        self._written: Sequence[Rule] = rules.rules
        self._known = {term: term for term in self._terms}
        self.rules = rules
        self.refresh()

    def refresh(self) -> set[int]:
        moved = {term: found for term, known in self._known.items() if (found := self._normal(term)) != known}
        if not moved:
            return set()
        self._known = {**self._known, **moved}
        numbers = {number for term in moved for number in self._terms[term]}
        rules = list(self.rules.rules)
        for number in numbers:
            rules[number] = normal_rule(self._written[number], self._normal)
        self.rules = self.rules.revised(rules)
        return numbers


class BaseStratumRules(ABC, Generic[RulesT]):
    """The rules of one stratum, as written and by the part that they play; see `algebra.StratumRules`.

    Invariant where equal terms are represented by one: `nonrecursive`, `recursive` and `plain` are in normal form as of the last `refresh`,
    and so is `everything`; `written` never is.
    """

    everything: NormalRules[RulesT]

    def __init__(self, stratum: Stratum, normal: Callable[[str], str] | None) -> None:
        """The rules; `normal`: the representative of a term, if terms have any."""
        self.stratum = stratum
        self.written = self._rules(stratum.rules)
        self.nonrecursive = self._rules(stratum.nonrecursive)
        self.recursive = self._rules(stratum.recursive)
        self.plain = self._rules(stratum.plain)
        self._normal: list[NormalRules[RulesT]] = []
        if normal is not None:
            self.everything = NormalRules(self.written, normal)
            self._normal = [NormalRules(rules, normal) for rules in (self.nonrecursive, self.recursive, self.plain)]
            self.nonrecursive, self.recursive, self.plain = (normal.rules for normal in self._normal)

    @abstractmethod
    def _rules(self, rules: Sequence[Rule]) -> RulesT:
        """A group of rules of the stratum."""

    def refresh(self) -> bool:
        """Brings rules into normal form whose terms have other representatives now, and returns whether there were any."""
        changed = [bool(normal.refresh()) for normal in (self.everything, *self._normal)]
        self.nonrecursive, self.recursive, self.plain = (normal.rules for normal in self._normal)
        return any(changed)
