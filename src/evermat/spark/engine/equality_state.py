"""Equal terms of a state on a cluster: π, and the explicit facts behind normal forms.

π is in the driver, whose dictionary has only the terms that are equal to others; and in the relation CLASSES, which tasks read.
Invariants between updates: I and E are in normal form for π, and CLASSES in I equals π; a fact is in E iff it is the normal
form of an asserted one. Only facts that mention a term that stops being a representative are ever rewritten.
An update changes π before it is committed; readers have that of a version, in an `Expansion`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns import (
    NO_ROWS,
    Assigned,
    Changed,
    Dictionary,
    RewrittenFacts,
    Rows,
    TermSchema,
    UnionFind,
)
from evermat.core import Span
from evermat.engine import Journal
from evermat.language import (
    EQUALITY_CLASSES,
    SAME_AS,
    TERM_NAMES,
    TRIPLE,
    Atom,
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
from evermat.spark.engine.expansion import Expansion, classes
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.rename_jobs import PAIRS, TERM, RenameJobs
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import facts_of
from evermat.spark.engine.tasks.rename_terms import PAIR, give_representatives, read_pairs
from evermat.spark.engine.tasks.set_expressions import Expression

if TYPE_CHECKING:
    from evermat.spark.engine.state import State
    from evermat.spark.engine.update import Update

_NOWHERE = Span(0, 0)
_EQUAL = Relation("'equal", (TERM, TERM), hidden=True)
_X, _Y = (Variable(name, Type.TERM) for name in "xy")


class Representatives:
    """π of a state, with normal forms."""

    def __init__(self, program: Program, context: EngineContext, dictionary: Dictionary) -> None:
        self._program, self._context = program, context
        self.schema = TermSchema(program, {}, dictionary)
        self.union_find = UnionFind(dictionary)
        self._lists_names = TERM_NAMES.name in program.relations
        for relation in (PAIRS, _EQUAL):
            context.shapes[relation.name] = PAIR
        self._jobs = RenameJobs(self.schema, context)
        self._equations = Rules([_equation(program.relations[self.schema.same])], frozenset(), context)
        self._frozen: UnionFind | None = None  # π as it was when it was last asked for, if it has not changed since

    def share(self, other: Representatives) -> None:
        """Uses the π of another state."""
        self.union_find, self._frozen = other.union_find, other._frozen

    def frozen(self) -> UnionFind:
        """π as it is now, which no later change affects; a copy only if it has changed since the last one."""
        if self._frozen is None:
            self._frozen = self.union_find.like()
            give_representatives(self._frozen, np.array(self.union_find.others()))
        return self._frozen

    def expansion(self, facts: View, *, frozen: bool) -> Expansion:
        """The expansion of some facts, by π as it is now or as it is at any time."""
        union_find = self.frozen() if frozen else self.union_find
        return Expansion(self._program.relations, self.schema, union_find, facts)

    def count(self, facts: View, name: str) -> int:
        """The number of expanded facts of a relation."""
        return self.expansion(facts, frozen=False).count(name, lambda: self._context)

    # --- names -----------------------------------------------------------------------------------------------------
    def names_of(self, given: View, rules: Iterable[Rule] = ()) -> FactSet:
        """The facts of NAMES for the terms of asserted facts and rules: every term is its own name."""
        found = FactSet("names", self._context)
        if not self._lists_names:
            return found
        mentioned = self.schema.dictionary.encode(sorted({term for rule in rules for term in terms_of(rule)}))
        found.add(self._jobs.listed(TERM_NAMES, mentioned.astype(np.int64), mentioned.astype(np.int64)))
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
            DifferentValuesError: they are literals of different values.
        """
        if self.schema.same not in facts.names:
            return None
        said = FactSet("equal terms", self._context)
        said.add(self._equations.consequences(facts))
        pairs = read_pairs(facts_of(said, _EQUAL.name, self.schema.dictionary))
        if not pairs.shape[1]:
            return None
        merged = union_find.merge(pairs[0], pairs[1])
        self._frozen = None
        if not len(merged.losers):
            return None
        RewrittenFacts(self.schema, union_find).refuse_different_values(merged, pairs[0], pairs[1])
        return self._jobs.listed(PAIRS, merged.losers, union_find.of(merged.losers)).expression(PAIRS.name)

    def rename_to(self, union_find: UnionFind, journal: Journal) -> None:
        """Takes over the representatives of another renaming."""
        terms = np.unique(np.concatenate([*self.union_find.others(), *union_find.others()]))
        if len(terms):
            self._frozen = None
            journal.note(self, NO_ROWS, self.union_find.assign(terms, union_find.of(terms)))

    def restore(self, rows: Rows, values: Any) -> None:
        del rows
        assert isinstance(values, Assigned)
        self._frozen = None
        self.union_find.take_back(values)

    # --- normal forms ------------------------------------------------------------------------------------------------
    def rewrite(self, facts: FactSet, names: Iterable[str], pairs: Expression | None) -> tuple[FactSet, FactSet]:
        """Brings some relations of a set into normal form, and returns the facts removed from it, and those added to it.

        Only `FactSet.change` may add removed facts again: they mention a term that is not a representative any more.
        """
        moved, new = self._jobs.moved(facts, names, pairs)
        facts.remove(moved)
        for name in new.names:
            facts.append(name, new.files(name)[0])
        return moved, new

    def _normal(self, view: View, pairs: Expression | None) -> View:
        moved, new = self._jobs.moved(view, view.names, pairs)
        return (view - moved) | new if moved else view

    # --- the materialisation from scratch ------------------------------------------------------------------------
    def settle(self, state: State) -> None:
        """Writes CLASSES, and brings E and the rules into normal form, once the equalities are known."""
        state.materialised.add(self._jobs.listed(EQUALITY_CLASSES, *self.union_find.others()))
        self._settle_given(state)

    def take_over(self, state: State, *, stored: bool) -> None:
        """Reads π from loaded facts and computes E. `stored`: asserted facts that are not in normal form may be in I."""
        pairs = facts_of(state.materialised, EQUALITY_CLASSES.name, self.schema.dictionary)
        self._frozen = None
        give_representatives(self.union_find, read_pairs(pairs))
        moved = self._settle_given(state)
        if stored:
            state.materialised.remove(moved)

    def _settle_given(self, state: State) -> FactSet:
        """Brings E and the rules into normal form, and returns the asserted facts that are not."""
        state.explicit.take_over(state.given)
        moved, _ = self.rewrite(state.explicit, state.explicit.names, classes(state.materialised))
        state.refresh_rules()
        return moved

    # --- updates ---------------------------------------------------------------------------------------------------
    def settle_update(self, update: Update) -> None:
        """Brings E⁻, E⁺ and CLASSES into normal form, after the equalities of an update are known."""
        changed = self.union_find.changed()
        for target, representatives in ((update.overdeleted, changed.old), (update.added, changed.new)):
            others = changed.terms != representatives
            target.add(self._jobs.listed(EQUALITY_CLASSES, changed.terms[others], representatives[others]))
        self._settle_explicit(update, changed)

    def _settle_explicit(self, update: Update, changed: Changed) -> None:
        """Replaces E⁻ and E⁺ by the changes of the normal forms of the asserted facts."""
        state, names = update.state, self.schema.columns
        explicit = state.explicit.only(names)
        given = ((state.given - update.given_deleted) | update.given_inserted).only(names)
        pairs = classes(update.after)
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
            old = lost | self._jobs.mentioning(before, names, touched)
            new = gained | self._jobs.mentioning(after, names, touched)
        deleted = self._jobs.expanded(old, classes(before), names)
        inserted = self._jobs.expanded(new, classes(after), names)
        if len(changed.terms):
            deleted, inserted = (deleted - inserted).listed(), (inserted - deleted).listed()
        for found, others in ((deleted, lost), (inserted, gained)):
            found.share(others, [name for name in others.names if name not in self.schema.columns])
        return deleted, inserted


def _equation(same: Relation) -> Rule:
    """The rule for different terms that are equal."""
    terms = (_X, Constant(SAME_AS, Type.TERM), _Y) if same.name == TRIPLE else (_X, _Y)
    return Rule(Atom(_EQUAL, (_X, _Y)), (Atom(same, terms), Test("!=", _X, _Y)), _NOWHERE)


def _with_x(relation: Relation, column: int) -> Atom:
    """The atom for facts with x in a column."""
    terms = (_X if position == column else Wildcard() for position in range(relation.arity))
    return Atom(relation, tuple(terms))
