"""One update of a materialisation in memory, whole or not at all: from facts as users have them to what has changed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evermat.algebra import Counters
from evermat.columns.equality.expansion import NamedChange
from evermat.columns.schemes.scheme import GAINED, LOST
from evermat.columns.state.state import State
from evermat.columns.state.update import ChangedRows, Update
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.encoding import decode_rows
from evermat.columns.storage.table import Batch, Rows
from evermat.core import DataError, PhaseTimer, Problem, held_back, peak_bytes
from evermat.engine.run import Run
from evermat.language import Program, Stratum
from evermat.reasoning.choose import choose
from evermat.reasoning.maintain import Choice, check_algorithm, kept_counters, maintain
from evermat.reasoning.marking import FEWER, Marks, Passing, maintain_ahead
from evermat.reasoning.rule_change import maintain_rules
from evermat.runtime.change import Change, Changes, NamedChanges
from evermat.runtime.constraints import forbidden_relations, refuse
from evermat.runtime.ingest import encode_given
from evermat.runtime.query import evaluate

if TYPE_CHECKING:
    from evermat.runtime.persistence import Keeper


Given: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Facts to insert and to delete, by relation, as users have them."""

Changed: TypeAlias = Sequence[Sequence[Given]]
"""Updates that become one, in their order; what is given for one of them comes and goes at once, and what comes stays."""


@dataclass
class Ahead:
    """The look ahead of a stream's update.

    Attributes:
        passing: What the update before has inserted last.
        changes: The next update, if it is there.
        least: The share of what it deletes that must come by this one, or it does not matter.
        found: What this update has inserted last; to be handed to the next, if this one is committed.
        marks: What there is to tell.
    """

    passing: Passing | None = None
    changes: Changed = ()
    least: float = FEWER
    found: Passing | None = None
    marks: Marks = field(default_factory=Marks)

    @property
    def told(self) -> dict[str, Any]:
        """Whether marks were used, and how many there are."""
        return {"on": not self.marks.reason, **asdict(self.marks)}


def update_state(
    program: Program,
    state: State,
    changes: Changed,
    algorithm: str,
    run: Run,
    *,
    kept: State | None = None,
    keeper: Keeper | None = None,
    ahead: Ahead | None = None,
) -> Change:
    """Carries out one update, whole or not at all.

    Args:
        program: the program, after a change of rules if there is one.
        state: its facts.
        changes: facts to insert and to delete; of several updates that become one, one after the other.
        algorithm: how to maintain.
        run: limits and figures.
        kept: the state before a change of rules, with which `state` shares its tables.
        keeper: where the update is written before it is committed in memory, so that neither is ahead of the other.
        ahead: the look ahead, if this is an update of a stream.
    """
    check_algorithm(algorithm, program.strata)
    phases = PhaseTimer()
    for one in (state, kept):
        if one is not None and one.representatives is not None and (pending := one.representatives.pending()):
            pending.settle()
    if state.representatives is not None and keeper is not None:
        for name in program.relations:
            state.count_facts_of(name)  # before any term stands for another than it does now
    with phases.during("encode"):
        coming, going = _rows_of_changes(program, state, changes)
        if state.representatives is not None:
            known = {} if kept is None else {name: [state.given.rows(name)] for name in state.tables}
            named = {name: [*known.get(name, ()), *rows] for name, rows in {**known, **coming}.items()}
            coming |= state.representatives.names_of(named, () if kept is None else program.rules)
        deleted_next = _deleted_next(program, state, ahead)
    # Signals are let through by the run, between steps: nothing is ever half noted.
    with held_back() as run.deliver, Update(state, run, going, coming) as update:
        with phases.during("reason"):
            choices = maintain_all(update, algorithm, state, kept, ahead, deleted_next)
            lost, gained = update.result()
            after = (state.materialised - update.overdeleted) | update.added
            refuse_forbidden(state, after, gained, run)
        explicit = {"inserted": update.given_inserted.size, "deleted": update.given_deleted.size}
        names = None if state.representatives is None else PendingNames(state, lost, gained)
        deleted, inserted = _changes(state, names, lost, gained)
        valid = kept_counters(state, choices)
        stats: dict[str, Any] = {"engine": "memory", "algorithm": algorithm}
        stats |= update_stats(program, choices, valid, "memory", phases, run)
        stats |= {**update.figures, "explicit": explicit}
        if ahead is not None:
            stats["marking"] = ahead.told
        if keeper is not None:
            with phases.during("write"):
                stats |= {"inserted": inserted.total, "deleted": deleted.total}
                keeper.commit(update, (lost, gained), valid, stats, (kept or state).program)
        update.commit(lost, gained)
        for stratum, counters in valid.items():
            state.record_counters(stratum, counters)
        if names is not None and state.representatives is not None:
            names.commit()
            state.representatives.pending = weakref.ref(names)
            if keeper is None:
                state.representatives.naming.forget()
            else:
                for name in inserted:
                    state.representatives.naming.note(name, len(inserted[name]) - len(deleted[name]))
    return Change(inserted, deleted, stats)


def _changes(state: State, named: PendingNames | None, lost: View, gained: View) -> tuple[Changes, Changes]:
    """What users are told that they lose and gain: in all names."""
    relations, dictionary = state.program.relations, state.dictionary
    if named is None:
        return (
            Changes.of(relations, lost, state.tables, dictionary, LOST),
            Changes.of(relations, gained, state.tables, dictionary, GAINED),
        )
    return (
        NamedChanges(relations, dictionary, lambda: named.batches(0)),
        NamedChanges(relations, dictionary, lambda: named.batches(1)),
    )


class PendingNames:
    """What an update changes in all names, listed when it is asked for, at the latest before the next update."""

    def __init__(self, state: State, lost: Listed, gained: Listed) -> None:
        assert state.representatives is not None
        self._names = [name for name, relation in state.program.relations.items() if not relation.hidden]
        self._change: NamedChange | None = NamedChange(state.representatives.renamed, state.materialised, lost, gained)
        self._found: dict[str, tuple[Batch, Batch]] = {}

    def commit(self) -> None:
        """The update is committed."""
        if self._change is not None:
            self._change.commit()

    def settle(self) -> None:
        """Lists the facts, if they are not listed yet."""
        if self._change is not None:
            self._found = {name: self._change.of(name) for name in self._names}
            self._change = None

    def batches(self, side: int) -> dict[str, Batch]:
        """The facts that are lost (0) or gained (1), by relation."""
        self.settle()
        return {name: batches[side] for name, batches in self._found.items()}


def refuse_forbidden(state: State, facts: View, new: View, run: Run) -> None:
    """Raises `DataError` if there are forbidden facts among new ones; `facts` are all that there are then."""
    found = {}
    for name in forbidden_relations(state.program):
        rows = new.rows(name)
        if len(rows):
            types = state.program.relations[name].types
            found[name] = list(decode_rows(state.tables[name].take(rows), types, state.dictionary))
    refuse(state.program, found, lambda query: evaluate(query, state, facts, run))


def maintain_all(
    update: Any, algorithm: str, state: Any, kept: Any, ahead: Ahead | None = None, deleted_next: Any = None
) -> list[Choice]:
    """Processes all strata of a state, of either engine.

    Args:
        update: the update.
        algorithm: how to maintain.
        state: its facts.
        kept: the state before a change of rules, if there is one.
        ahead: the look ahead, if this is an update of a stream.
        deleted_next: the explicit facts that the next update deletes, as far as it is known.
    """
    if kept is not None:
        return maintain_rules(update, kept.materialised, *state.changed_rules(kept))
    if ahead is None:
        return maintain(update, algorithm, choose)
    choices, ahead.found, ahead.marks = maintain_ahead(
        update, algorithm, choose, ahead.passing, deleted_next, ahead.least
    )
    return choices


def update_stats(
    program: Program,
    choices: list[Choice],
    valid: Mapping[Stratum, Counters],
    place: str,
    phases: PhaseTimer,
    run: Run,
) -> dict[str, Any]:
    """What there is to tell of an update: what was done where, and what it took."""
    return {
        "strata": [
            {
                "relations": [n for n in c.stratum.relations if not program.relations[n].hidden],
                "algorithm": c.algorithm,
                "place": place,
                "counters": valid[c.stratum].name.lower(),
                "reason": c.reason,
            }
            for c in choices
        ],
        "seconds": phases.wall,
        "cpu_seconds": phases.cpu,
        "rounds": run.rounds,
        "derivations": run.derivations,
        "applications": dict(run.applications),
        "asked": {what: asdict(asked) for what, asked in run.asked.items()},
        "peak_rss_mb": round(peak_bytes() / 2**20, 1),
    }


def _deleted_next(program: Program, state: State, ahead: Ahead | None) -> Listed | None:
    """The explicit facts that the next update deletes, if it is there; what is wrong with it is told when its turn comes."""
    if ahead is None or not ahead.changes:
        return None
    try:
        _, going = _rows_of_changes(program, state, ahead.changes, existing=True)
    except DataError:
        return None
    return ChangedRows.of(Listed(state.tables, going))


def _rows_of_changes(
    program: Program, state: State, changes: Changed, *, existing: bool = False
) -> tuple[dict[str, list[Rows]], dict[str, list[Rows]]]:
    """The rows of what comes and goes in the end, of updates one after the other: of each fact the last of them decides.

    With `existing` only those that there are already.
    """
    coming: dict[str, list[Rows]] = {}
    going: dict[str, list[Rows]] = {}
    problems: list[Problem] = []
    for update in changes:
        try:
            come = _rows_of(program, state, [insert for insert, _ in update], existing=existing)
            gone = _rows_of(program, state, [delete for _, delete in update], existing=True)
        except DataError as error:
            problems += error.problems
            continue
        for mine, others, rows in ((going, coming, gone), (coming, going, come)):  # what comes stays
            for name, found in rows.items():
                if name in others:
                    others[name] = [np.setdiff1d(np.concatenate(others[name]), np.concatenate(found))]
                mine.setdefault(name, []).extend(found)
    if problems:
        raise DataError(problems)
    return coming, going


def _rows_of(
    program: Program, state: State, given: list[Mapping[str, Any]], *, existing: bool = False
) -> dict[str, list[Rows]]:
    """The rows of facts; with `existing` only of those that are known, else new ones get a row, in no set yet."""
    found: dict[str, list[Rows]] = {}
    batches: list[tuple[str, Batch]] = []
    problems: list[Problem] = []
    for facts in given:
        for name, rows in facts.items():
            try:
                batches.append((name, encode_given(name, rows, program, state.dictionary)))
            except DataError as error:
                problems += error.problems
    if problems:
        raise DataError(problems)
    for name, batch in batches:
        table = state.tables[name]
        located = table.find(batch) if existing else table.locate(batch)
        found.setdefault(name, []).append(located[located >= 0])
    return found
