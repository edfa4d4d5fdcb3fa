"""B/F^c-Mod: exact deletion with modules, which *Modular materialisation of Datalog programs* left for the future.

As in B/F^c a fact is checked before it is deleted. Of a closed relation only external facts are ever checked: whether they hold decides about all the
others, which a closure deletes at once when no path of external facts that may hold is left (`cut`). Three things make that exact:

- A proof of an internal fact is a path of external ones. As long as such a path is left the fact is not deleted, and without one it cannot hold.
- Where an internal fact loses a derivation, all external facts on the paths that are left to it are checked (`touched`): they may depend on the
  fact itself. So in the end every fact that has lost a derivation has a path of facts that are proved, or is deleted.
- A check looks at all external facts on any path (`supports`), and only what is proved proves (`prove`).
"""

from __future__ import annotations

from evermat.algebra import ModuleUpdate, StratumRules, Update, View, WorkingSet
from evermat.reasoning.backward_forward import Checking
from evermat.reasoning.dred_counting import count_nonrecursive
from evermat.reasoning.insertion import Views
from evermat.reasoning.modular.modules import Modules


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts, and keeps C_nr valid."""
    modules = Modules(update, views, stratum, None)
    touched, found = update.new("ND"), update.new("NA")
    count_nonrecursive(update, views, stratum, touched, found)
    delete_unproved(update, views, stratum, modules, touched)

    def make(module: ModuleUpdate, made: WorkingSet) -> None:
        made.add(module.gained_by_change())

    modules.insert(found, make)
    modules.finish()
    update.release(touched, found)


def delete_unproved(update: Update, views: Views, stratum: StratumRules, modules: Modules, touched: WorkingSet) -> None:
    """DELETEUNPROVED: D grows by exactly the facts of the stratum that do not hold any more."""
    plain, closures = stratum.plain, modules.closures
    positive = update.nonrecursive_counter.positive

    def add_axioms(proved: WorkingSet, facts: View) -> None:
        proved.add(facts & positive)

    checking = Checking(update, views, stratum.stratum, plain, add_axioms, closures)
    dead, delta = update.new("J"), update.new("ΔD")

    def cut(lost: View) -> None:
        for closure in closures:
            dead.add(closure.cut(lost))
            touched.add(closure.touched())

    for closure in closures:
        closure.forget((touched - positive).listed())
    with update.applying("deletions"):
        touched.add(plain.consequences(views.old, **views.gone))
    cut(delta)
    while True:
        while delta.replace(dead - update.overdeleted):
            update.next_round()
            with update.applying("deletions"):
                touched.add(plain.consequences(views.surviving, views.blocked, delta_positive=delta))
            update.overdeleted.add(delta)
            cut(delta)
        goals = (touched - update.overdeleted - checking.proved).listed()
        if not goals:
            break
        update.next_round()
        checking.check(goals)
        dead.add(goals - checking.proved)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    checking.finish()
    update.release(dead, delta)
