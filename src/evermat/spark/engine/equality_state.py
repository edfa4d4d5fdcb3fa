"""Equal terms of a state on a cluster: π, the explicit facts behind normal forms, and expanded facts.

π is in the driver, whose dictionary has only the terms that are equal to others; and in the relation CLASSES, which tasks read.
Invariants between updates: I and E are in normal form for π, and CLASSES in I equals π; a fact is in E iff it is the normal
form of an asserted one. Only facts that mention a term that stops being a representative are ever rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns import (
    NO_ROWS,
    Assigned,
    Batch,
    Changed,
    Dictionary,
    Ids,
    RewrittenFacts,
    Rows,
    TermSchema,
    UnionFind,
    expand_names,
)
from evermat.core import Span
from evermat.engine import Journal
from evermat.language import (
    EQUALITY_CLASSES,
    SAME_AS,
    TERM_NAMES,
    TRIPLE,
    Atom,
    Column,
    Constant,
    Program,
    Relation,
    Rule,
    Test,
    Type,
    Variable,
    Wildcard,
    terms_of,
)
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.job_runner import Found, Job
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import facts_of
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.rename_terms import (
    PAIR,
    CountNamesTask,
    ExpandNamesTask,
    RenameInput,
    RenameTask,
    RewriteTask,
    give_representatives,
    read_pairs,
)
from evermat.spark.engine.tasks.set_expressions import ARRIVED, Expression, combined, most
from evermat.spark.engine.tasks.worker import Channel

if TYPE_CHECKING:
    from evermat.spark.engine.state import State
    from evermat.spark.engine.update import Update

_SMALL = 20_000  # facts that one task renames rather than many
_NOWHERE = Span(0, 0)
_TERM = Column("term", Type.TERM, "term")
_PAIRS = Relation("'renamed", (_TERM, _TERM), hidden=True)
_EQUAL = Relation("'equal", (_TERM, _TERM), hidden=True)
_X, _Y = (Variable(name, Type.TERM) for name in "xy")


class Representatives:
    """π of a state, with normal forms and expanded facts."""

    def __init__(self, program: Program, context: EngineContext, dictionary: Dictionary) -> None:
        self._program, self._context = program, context
        self.schema = TermSchema(program, {}, dictionary)
        self.union_find = UnionFind(dictionary)
        self._lists_names = TERM_NAMES.name in program.relations
        for relation in (_PAIRS, _EQUAL):
            context.shapes[relation.name] = PAIR
        self._equations = Rules([_equation(program.relations[self.schema.same])], frozenset(), context)
        self._counts: dict[str, int] | None = None  # of expanded facts, once they have been counted
        self._named = FactSet("all names", context)  # expanded facts of relations that have been read

    def share(self, other: Representatives) -> None:
        """Uses the π of another state."""
        self.union_find = other.union_find

    # --- names -----------------------------------------------------------------------------------------------------
    def names_of(self, given: View, rules: Iterable[Rule] = ()) -> FactSet:
        """The facts of NAMES for the terms of asserted facts and rules: every term is its own name."""
        found = FactSet("names", self._context)
        if not self._lists_names:
            return found
        mentioned = self.schema.dictionary.encode(sorted({term for rule in rules for term in terms_of(rule)}))
        found.add(self._listed(TERM_NAMES, mentioned.astype(np.int64), mentioned.astype(np.int64)))
        naming = [
            Rule(Atom(TERM_NAMES, (_X, _X)), (_with_x(self._program.relations[name], int(column)),), _NOWHERE)
            for name in given.names
            if name != TERM_NAMES.name
            for column in self.schema.columns.get(name, ())
        ]
        found.add(Rules(naming, frozenset(), self._context).consequences(given))
        return found

    # --- equalities --------------------------------------------------------------------------------------------------
    def merge(self, facts: View, union_find: UnionFind) -> Expression | None:
        """Merges terms by the equalities among some facts; None if nothing is new.

        Returns pairs: a term that is not a representative any more, and its representative now.

        Raises:
            DataError: they are literals of different values.
        """
        if self.schema.same not in facts.names:
            return None
        said = FactSet("equal terms", self._context)
        said.add(self._equations.consequences(facts))
        pairs = read_pairs(facts_of(said, _EQUAL.name, self.schema.dictionary))
        if not pairs.shape[1]:
            return None
        merged = union_find.merge(pairs[0], pairs[1])
        if not len(merged.losers):
            return None
        RewrittenFacts(self.schema, union_find).refuse_different_values(merged)
        return self._listed(_PAIRS, merged.losers, union_find.of(merged.losers)).expression(_PAIRS.name)

    def rename_to(self, union_find: UnionFind, journal: Journal) -> None:
        """Takes over the representatives of another renaming."""
        terms = np.unique(np.concatenate([*self.union_find.others(), *union_find.others()]))
        if len(terms):
            journal.note(self, NO_ROWS, self.union_find.assign(terms, union_find.of(terms)))

    def restore(self, rows: Rows, values: Any) -> None:
        del rows
        assert isinstance(values, Assigned)
        self.union_find.take_back(values)

    # --- normal forms and expanded facts -----------------------------------------------------------------------------
    def rewrite(self, facts: FactSet, names: Iterable[str], pairs: Expression | None) -> tuple[FactSet, FactSet]:
        """Brings some relations of a set into normal form, and returns the facts removed from it, and those added to it.

        Only `FactSet.change` may add removed facts again: they mention a term that is not a representative any more.
        """
        moved, new = self._moved(facts, names, pairs)
        facts.remove(moved)
        for name in new.names:
            facts.append(name, new.files(name)[0])
        return moved, new

    def _normal(self, view: View, pairs: Expression | None) -> View:
        moved, new = self._moved(view, view.names, pairs)
        return (view - moved) | new if moved else view

    def _moved(self, view: View, names: Iterable[str], pairs: Expression | None) -> tuple[FactSet, FactSet]:
        """The facts of some relations that mention a name; and those of their normal forms that are not in the view."""
        named = {} if pairs is None else self._facts(view, names)
        wanted: list[tuple[str, Expression | None]] = [(name, ARRIVED) for name in named]
        wanted += [(name, combined("-", ARRIVED, facts.expression)) for name, facts in named.items()]
        found = self._run("rewrite", RewriteTask, named, pairs, wanted)
        return self._set("moved", named, found[: len(named)]), self._set("normal forms", named, found[len(named) :])

    def _mentioning(self, view: View, names: Iterable[str], terms: Ids) -> FactSet:
        """The facts of some relations that mention one of some terms."""
        named, pairs = self._facts(view, names), self._listed(_PAIRS, terms, terms).expression(_PAIRS.name)
        found = self._run("find", RewriteTask, named, pairs, [(name, ARRIVED) for name in named])
        return self._set("mentioning", named, found)

    def _in_all_names(self, view: View, pairs: Expression | None, names: Iterable[str]) -> FactSet:
        """The expanded facts of some relations."""
        named = self._facts(view, names)
        found = self._run("name", ExpandNamesTask, named, pairs, [(name, ARRIVED) for name in named])
        return self._set("named", named, found)

    def _facts(self, view: View, names: Iterable[str]) -> dict[str, RenameInput]:
        """The facts of relations with columns of terms."""
        return {
            name: RenameInput(self._context.shapes[name], tuple(map(int, self.schema.columns[name])), expression)
            for name in names
            if name in self.schema.columns and (expression := view.expression(name)) is not None
        }

    def _tasks(self, named: Mapping[str, RenameInput]) -> int:
        few = sum(most(facts.expression) for facts in named.values()) <= _SMALL
        return 1 if few else self._context.cluster.buckets

    def _run(
        self,
        what: str,
        stage: type[RenameTask],
        named: Mapping[str, RenameInput],
        pairs: Expression | None,
        wanted: Sequence[tuple[str, Expression | None]],
    ) -> list[Found]:
        """Runs a job that renames terms; `wanted` has for each channel, in order, a relation and the wanted part of its facts."""
        if not named:
            return []
        context, cluster = self._context, self._context.cluster
        shapes, tasks = [context.shapes[name] for name, _ in wanted], self._tasks(named)
        channels = [Channel(shape, number) for number, shape in enumerate(shapes)]
        targets = [Target(name, shape, e) for shape, (name, e) in zip(shapes, wanted, strict=True)]
        first = stage(tuple(channels), cluster.buckets, tasks, tuple(named.values()), pairs)
        return context.run(Job(f"{what} {', '.join(named)[:60]}", targets, channels, tasks=tasks, first=first))

    def _set(self, what: str, names: Iterable[str], found: Sequence[Found]) -> FactSet:
        made = FactSet(what, self._context)
        for name, one in zip(names, found, strict=True):
            made.append(name, one.facts)
        return made

    def _listed(self, relation: Relation, left: Ids, right: Ids) -> FactSet:
        """Distinct pairs of terms of the driver, as facts."""
        found = FactSet("listed", self._context)
        if len(left):
            shape, pairs = self._context.shapes[relation.name], np.array([left, right])
            found.append(relation.name, list(self._context.cluster.write(shape, pairs, self.schema.dictionary)))
        return found

    # --- the materialisation from scratch ------------------------------------------------------------------------
    def settle(self, state: State) -> None:
        """Writes CLASSES, and brings E and the rules into normal form, once the equalities are known."""
        state.materialised.add(self._listed(EQUALITY_CLASSES, *self.union_find.others()))
        self._settle_given(state)

    def take_over(self, state: State, *, stored: bool) -> None:
        """Reads π from loaded facts and computes E. `stored`: asserted facts that are not in normal form may be in I."""
        classes = facts_of(state.materialised, EQUALITY_CLASSES.name, self.schema.dictionary)
        give_representatives(self.union_find, read_pairs(classes))
        moved = self._settle_given(state)
        if stored:
            state.materialised.remove(moved)

    def _settle_given(self, state: State) -> FactSet:
        """Brings E and the rules into normal form, and returns the asserted facts that are not."""
        state.explicit.take_over(state.given)
        moved, _ = self.rewrite(state.explicit, state.explicit.names, _classes(state.materialised))
        state.refresh_rules()
        return moved

    # --- updates ---------------------------------------------------------------------------------------------------
    def settle_update(self, update: Update) -> None:
        """Brings E⁻, E⁺ and CLASSES into normal form, after the equalities of an update are known."""
        changed = self.union_find.changed()
        for target, representatives in ((update.overdeleted, changed.old), (update.added, changed.new)):
            others = changed.terms != representatives
            target.add(self._listed(EQUALITY_CLASSES, changed.terms[others], representatives[others]))
        self._settle_explicit(update, changed)

    def _settle_explicit(self, update: Update, changed: Changed) -> None:
        """Replaces E⁻ and E⁺ by the changes of the normal forms of the asserted facts."""
        state, names = update.state, self.schema.columns
        explicit = state.explicit.only(names)
        given = ((state.given - update.given_deleted) | update.given_inserted).only(names)
        pairs = _classes(update.after)
        if len(changed.terms):
            new = self._normal(given, pairs)
            deleted, inserted = explicit - new, new - explicit
        elif pairs is not None:
            # Another asserted fact may have the normal form of a deleted one.
            candidates = self._normal(update.given_deleted.only(names), pairs)
            deleted = candidates - self._normal(given.only(candidates.names), pairs)
            inserted = self._normal(update.given_inserted.only(names), pairs) - explicit
        else:
            return
        for target, facts in ((update.deleted, deleted), (update.inserted, inserted)):
            found = facts.listed()
            target.drop(names)
            target.share(found, found.names)

    def named_change(self, update: Update, lost: FactSet, gained: FactSet) -> tuple[FactSet, FactSet]:
        """The changes of expanded facts by an update that deletes `lost` from I and inserts `gained`.

        Candidates are the expansions, before the update, of deleted facts and of facts that mention a term whose class changes; and the
        expansions, after the update, of inserted facts and of facts that mention such a term. Facts among both have not changed.
        """
        before, after, changed = update.state.materialised, update.after, self.union_find.changed()
        if not before.count(EQUALITY_CLASSES.name) and not len(changed.terms):
            return lost, gained
        names = [name for name in self.schema.columns if not self._program.relations[name].hidden]
        old: View = lost
        new: View = gained
        if len(changed.terms):
            touched = np.unique(np.concatenate([changed.old, changed.new]))
            old = lost | self._mentioning(before, names, touched)
            new = gained | self._mentioning(after, names, touched)
        deleted = self._in_all_names(old, _classes(before), names)
        inserted = self._in_all_names(new, _classes(after), names)
        if len(changed.terms):
            deleted, inserted = (deleted - inserted).listed(), (inserted - deleted).listed()
        for found, others in ((deleted, lost), (inserted, gained)):
            found.share(others, [name for name in others.names if name not in self.schema.columns])
        return deleted, inserted

    def committed(self, lost: FactSet, gained: FactSet) -> None:
        """Updates the counts of expanded facts after a commit, which has changed these."""
        self._named.clear()
        for name in self._counts or ():
            assert self._counts is not None
            self._counts[name] += gained.count(name) - lost.count(name)

    # --- expanded facts for users ----------------------------------------------------------------------------------
    def all_names(self, facts: View, names: Iterable[str], materialised: FactSet) -> View:
        """The expanded facts of some relations. Those of I are kept until it changes."""
        pairs, wanted = _classes(facts), [name for name in names if name in self.schema.columns]
        if pairs is None:
            return facts
        named = self._named if facts is materialised else FactSet("named", self._context)
        made = self._in_all_names(facts, pairs, [name for name in wanted if not named.count(name)])
        named.share(made, made.names)
        return named.only(wanted) | facts.only([name for name in names if name not in wanted])

    def count(self, materialised: FactSet, name: str) -> int:
        """The number of expanded facts of a relation."""
        pairs = _classes(materialised)
        if pairs is None or name not in self.schema.columns:
            return materialised.count(name)
        if self._counts is None:
            visible = [n for n, relation in self._program.relations.items() if not relation.hidden]
            self._counts = dict.fromkeys(self.schema.columns, 0) | self._count(materialised, pairs, visible)
        return self._counts[name]

    def _count(self, view: View, pairs: Expression, names: Iterable[str]) -> dict[str, int]:
        named, cluster = self._facts(view, names), self._context.cluster
        if not named:
            return {}
        tasks = self._tasks(named)
        stage = CountNamesTask(tuple(named.values()), pairs, cluster.buckets, tasks)
        found, _ = self._context.execute("count facts in all names", tasks, [stage], len(named))
        return {name: one.rows for name, one in zip(named, found, strict=True)}

    def expanded(self, batches: Iterable[Batch], name: str) -> Iterator[Batch]:
        """The expanded facts of batches of a relation, in the driver."""
        columns = self.schema.columns.get(name)
        for batch in batches:
            if columns is None:
                yield batch
            else:
                yield from expand_names(batch, columns, self.union_find)


def _classes(view: View) -> Expression | None:
    """The pairs of names and representatives among some facts."""
    return view.expression(EQUALITY_CLASSES.name)


def _equation(same: Relation) -> Rule:
    """The rule for different terms that are equal."""
    terms = (_X, Constant(SAME_AS, Type.TERM), _Y) if same.name == TRIPLE else (_X, _Y)
    return Rule(Atom(_EQUAL, (_X, _Y)), (Atom(same, terms), Test("!=", _X, _Y)), _NOWHERE)


def _with_x(relation: Relation, column: int) -> Atom:
    """The atom for facts with x in a column."""
    terms = (_X if position == column else Wildcard() for position in range(relation.arity))
    return Atom(relation, tuple(terms))
