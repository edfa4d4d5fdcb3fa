"""The seminaive module: the recursive rules for which there is no better algorithm.

It considers every instance of its rules, each once, and may count them: C_r, the counter of recursive derivations, is then
this module's own. In an update it has its own view of what is gone and what is back: the facts of other modules count from the moment
that it is given them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from evermat.algebra import OwnFacts, Rules, StratumRules, Take, Update, View
from evermat.reasoning.insertion import Views

Tell = Callable[[View], None]

_PUT_TOGETHER = 8  # steps, before what they have made becomes one set


@dataclass(frozen=True)
class Seminaive:
    """Evaluates rules step by step: takes all that follows.

    `hold` makes of facts that were taken a set that rules can tell from others.
    """

    rules: Rules
    next_round: Callable[[], None]
    hold: Callable[[View], View]
    take: Take

    def add(self, present: View, delta: View) -> View:
        """Add, Definition 3: takes all that follows from Δ, and hands it back."""
        made: View | None = None
        for count, step in enumerate(self.steps(present, delta), 1):
            made = step if made is None else made | step
            if count % _PUT_TOGETHER == 0:
                made = made.listed()
        assert made is not None
        return made

    def steps(self, present: View, delta: View) -> Iterator[View]:
        """What follows from Δ in one step, in two, and so on, until there is nothing new."""
        while delta:
            self.next_round()
            delta = self.take(self.rules.consequences(present, delta_positive=self.hold(delta)))
            yield delta


class SeminaiveUpdate:
    """The module in an update. With `counter` None nothing is counted, and DRed^c-Mod's functions are not to be called."""

    def __init__(self, update: Update, views: Views, stratum: StratumRules, tell: Tell, counter: Any | None) -> None:
        self._update, self._views, self._stratum, self._tell, self._counter = update, views, stratum, tell, counter
        self._losing: _Losing | None = None
        self._gaining: _Gaining | None = None

    def lost_by_change(self) -> View:
        self._losing = _Losing(self._update, self._views, self._stratum, self._counter)
        return self._losing.begin()

    def delete(self, delta: View) -> View:
        """Del: the lower bound of Definition 6, no fact with nonrecursive derivations."""
        assert self._losing is not None
        return self._losing.delete(delta)

    def rederive(self) -> View:
        """Red: what still has an instance, by C_r, and what follows from that."""
        return self._gain().rederive()

    def gained_by_change(self) -> View:
        return self._gain().begin()

    def add(self, delta: View) -> View:
        return self._gain().add(delta)

    def _gain(self) -> _Gaining:
        if self._losing is not None:  # all is deleted
            self._losing.finish()
            self._losing = None
        if self._gaining is None:
            self._gaining = _Gaining(self._update, self._views, self._stratum, self._tell, self._counter)
        return self._gaining

    def finish(self) -> None:
        if self._gaining is not None:
            self._gaining.finish()


class _Losing:
    """`gone` are facts whose loss the module has taken account of: every instance with one of them is subtracted from C_r, once."""

    def __init__(self, update: Update, views: Views, stratum: StratumRules, counter: Any) -> None:
        own = stratum.stratum
        self._update, self._views, self._rules, self._counter = update, views, stratum.plain, counter
        self._touched, self._gone, self._delta = update.new("ND'"), update.new("D'"), update.new("Δ'")
        self._left = (views.old.at(own) - self._gone) | views.surviving.below(own)

    def begin(self) -> View:
        self._touched.add(self._counter.subtract(self._rules.consequences(self._views.old, **self._views.gone)))
        return self._overdelete()

    def delete(self, delta: View) -> View:
        self._touched.add(delta)
        return self._overdelete()

    def _overdelete(self) -> View:
        positive = self._update.nonrecursive_counter.positive
        while self._delta.replace(self._touched - self._gone - positive):
            self._update.next_round()
            lost = self._rules.consequences(self._left, self._views.blocked, delta_positive=self._delta)
            self._touched.add(self._counter.subtract(lost))
            self._gone.add(self._delta)
        return self._gone

    def finish(self) -> None:
        self._update.release(self._touched, self._gone, self._delta)


class _Gaining:
    """`back` are facts whose return the module has taken account of: every instance with one of them is added to C_r, once.

    `found` are the heads of these instances.
    """

    def __init__(self, update: Update, views: Views, stratum: StratumRules, tell: Tell, counter: Any | None) -> None:
        own = stratum.stratum
        self._update, self._views, self._rules, self._tell, self._counter = update, views, stratum.plain, tell, counter
        self._found, self._back, self._delta = update.new("NA'"), update.new("A'"), update.new("Δ'")
        self._deleted = update.overdeleted.at(own)
        kept = (views.old.at(own) - update.overdeleted) | self._back
        self._again = kept | views.surviving.below(own)
        self._new = kept | views.new.below(own)

    def rederive(self) -> View:
        assert self._counter is not None
        self._delta.replace(self._deleted & self._counter.positive)
        while self._delta:
            self._update.next_round()
            self._back.add(self._delta)
            self._derive(self._rules.consequences(self._again, self._views.blocked, delta_positive=self._delta))
            self._delta.replace((self._found & self._deleted) - self._back)
        return self._back

    def begin(self) -> View:
        self._derive(self._rules.consequences(self._new, **self._views.come))
        return self.add(self._found)

    def add(self, delta: View) -> View:
        self._delta.replace(delta - self._new)
        while self._delta:
            self._update.next_round()
            self._back.add(self._delta)
            self._derive(self._rules.consequences(self._new, delta_positive=self._delta))
            self._delta.replace(self._found - self._new)
        return self._back

    def _derive(self, bag: OwnFacts) -> None:
        """Counts instances, and makes facts external for the modules that close their relations."""
        self._tell(self._found.add(bag if self._counter is None else self._counter.add(bag)))

    def finish(self) -> None:
        self._update.release(self._found, self._back, self._delta)
