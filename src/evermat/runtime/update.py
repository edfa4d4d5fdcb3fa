"""One update of a materialisation, whole or not at all, whichever engine holds the facts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from evermat.algebra import Counters
from evermat.core import DataError, PhaseTimer, completing, held_back, peak_bytes, unwatched, watched
from evermat.engine import DifferentValuesError, Run
from evermat.language import RelationNames, Stratum, full_names, relation_names
from evermat.reasoning import (
    FEWER,
    Choice,
    Marks,
    Passing,
    check_algorithm,
    choose_attempts,
    kept_counters,
    maintain_ahead,
    maintain_rules,
    maintain_strata,
)
from evermat.runtime.change import Change, Changes
from evermat.runtime.constraints import explained, refuse_forbidden
from evermat.runtime.engine import Changed, Engine, EngineUpdate
from evermat.runtime.states.persistence import StateBinding


@dataclass
class Ahead:
    """The look ahead of an update of a stream."""

    passing: Passing | None = None  # what the update before has inserted last
    changes: Changed = ()  # the next update, if it is known
    least: float = FEWER  # the share of what it deletes that this update must insert for marks to be used
    found: Passing | None = None  # what this update has inserted last; for the next one, if this one is committed
    marks: Marks = field(default_factory=Marks)  # what there is to report

    @property
    def report(self) -> dict[str, Any]:
        """Whether marks were used, and how many there are."""
        return {"on": not self.marks.reason, **asdict(self.marks)}


@dataclass(frozen=True)
class CommitTarget:
    """What an update is committed to.

    Attributes:
        publishing: Is around the step that changes facts in memory, which cannot fail.
        binding: The state directory, if there is one.
        position: The name of a stream, and how far it is followed with the update.
    """

    publishing: AbstractContextManager[None]
    binding: StateBinding | None = None
    position: tuple[str, str] | None = None


def check_update_algorithm(name: str) -> None:
    """Raises a `ProgramError` for a name that is not that of an algorithm."""
    check_algorithm(name, ())


def carry_out(
    engine: Engine,
    changes: Changed,
    algorithm: str,
    run: Run,
    target: CommitTarget,
    *,
    before: Engine | None = None,
    ahead: Ahead | None = None,
) -> Change:
    """Carries out one update, whole or not at all.

    After a change of rules `engine` has the new program; `before` is the engine before it, with which it shares its facts. The update is
    written to the state directory before it is committed in memory: neither is ahead of the other. See `api.Materialisation.update` for errors.
    """
    with watched(run):
        return _carry_out(engine, changes, algorithm, run, target, before, ahead)


def _carry_out(
    engine: Engine,
    changes: Changed,
    algorithm: str,
    run: Run,
    target: CommitTarget,
    before: Engine | None,
    ahead: Ahead | None,
) -> Change:
    program = engine.program
    names = relation_names(program)
    check_algorithm(algorithm, program.strata)
    timer = PhaseTimer()
    with timer.during("encode"):
        update = engine.begin_update(
            _named_in_full(changes, names),
            run,
            upcoming=() if ahead is None else _upcoming(ahead.changes, names),
            before=before,
            durable=target.binding is not None,
        )
    # Signals are let through by the run, between steps: nothing is ever half recorded.
    with held_back() as run.deliver, update:
        with timer.during("reason"):
            try:
                choices = _maintain(update, algorithm, ahead)
            except DifferentValuesError as error:
                raise explained(error, program, update.evaluate) from None
            update.conclude()
            refuse_forbidden(program, update.inserted_rows, update.evaluate)
        deleted, inserted = (Changes(names, facts, engine.snapshot().dictionary) for facts in update.changes)
        valid = kept_counters(update.sets.state, choices)
        stats: dict[str, Any] = {
            "engine": "spark" if engine.distributed else "memory",
            "algorithm": algorithm,
            "strata": _strata(engine, choices, valid),
            "seconds": timer.wall,
            "cpu_seconds": timer.cpu,
            "rounds": run.rounds,
            "derivations": run.derivations,
            "applications": dict(run.applications),
            "asked": {what: asdict(asked) for what, asked in run.asked.items()},
            "peak_rss_mb": round(peak_bytes() / 2**20, 1),
            **update.sets.figures,
            "explicit": dict(update.explicit),
        }
        if ahead is not None:
            stats["marking"] = ahead.report
        change = Change(inserted, deleted, stats)
        with timer.during("write"), completing(), ExitStack() as published:

            def write() -> None:
                if target.binding is not None:
                    former = (before or engine).program
                    target.binding.commit(engine, update, valid, change.stats, former, target.position)
                published.enter_context(unwatched())  # no limit undoes in memory what is durable
                published.enter_context(target.publishing)

            update.commit(valid, write)
    return change


def _named_in_full(changes: Changed, names: RelationNames) -> Changed:
    """Changes whose relations are named in full; raises a `DataError` for one that is there by two names."""
    return [[(full_names(i, names), full_names(d, names)) for i, d in change] for change in changes]


def _upcoming(changes: Changed, names: RelationNames) -> Changed:
    """The same of the next update: what is wrong with it is reported when its turn comes."""
    with suppress(DataError):
        return _named_in_full(changes, names)
    return ()


def _maintain(update: EngineUpdate, algorithm: str, ahead: Ahead | None) -> list[Choice]:
    if (rule_change := update.rule_change) is not None:
        return maintain_rules(update.sets, *rule_change)
    if ahead is None:
        return maintain_strata(update.sets, algorithm, choose_attempts)
    choices, ahead.found, ahead.marks = maintain_ahead(
        update.sets, algorithm, choose_attempts, ahead.passing, update.deleted_next, ahead.least
    )
    return choices


def _strata(engine: Engine, choices: list[Choice], valid: Mapping[Stratum, Counters]) -> list[dict[str, Any]]:
    """What was done in each stratum."""
    relations = engine.program.relations
    return [
        {
            "relations": [name for name in choice.stratum.relations if not relations[name].hidden],
            "algorithm": choice.algorithm,
            "place": "rounds" if engine.distributed else "memory",
            "counters": valid[choice.stratum].name.lower(),
            "reason": choice.reason,
        }
        for choice in choices
    ]
