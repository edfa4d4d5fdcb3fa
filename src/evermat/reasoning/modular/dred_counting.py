r"""DRed^c-Mod: Algorithm 3 of *Modular materialisation of Datalog programs*, repaired.

What differs from print, because it is not right there:

    line 23   of the facts that lost a derivation only those without nonrecursive ones are deleted
    line 28   a module does not see again what it has deleted itself: neither as present nor as deleted
    line 32   closures receive the facts that gained a nonrecursive derivation, even if these were known
    line 35   what is derived from changes below sees what the module has rederived
    line 37   only facts that are not there enter A

C_nr is kept for all facts, C_r for the rules of the seminaive module, which needs it to rederive.
"""

from __future__ import annotations

from evermat.algebra import ModuleUpdate, StratumRules, Update, View, WorkingSet
from evermat.reasoning.dred_counting import count_nonrecursive
from evermat.reasoning.insertion import Views
from evermat.reasoning.modular.exchange import exchange
from evermat.reasoning.modular.modules import Modules


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts, and keeps C_nr and the C_r of the seminaive module valid."""
    modules = Modules(update, views, stratum, update.recursive_counter)
    touched, found = update.new("ND"), update.new("NA")
    count_nonrecursive(update, views, stratum, touched, found)
    with update.applying("deletions"):
        overdelete(update, modules, touched)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    rederive_and_insert(update, modules, found)
    modules.finish()
    update.release(touched, found)


def overdelete(update: Update, modules: Modules, touched: WorkingSet) -> None:
    """OVERDELETE: D grows by the facts that lost a derivation and have no nonrecursive one, and by what depends on them."""
    deleted, positive = update.overdeleted, update.nonrecursive_counter.positive

    def delete() -> View:
        """Deletes what was touched and has no nonrecursive derivations; returns what was not deleted yet."""
        return deleted.add((touched - positive - deleted).listed())

    def work(module: ModuleUpdate, given: View) -> View:
        update.next_round()
        touched.add(module.delete(given))
        return delete()

    made: dict[ModuleUpdate, View] = {}
    for module in modules.all:  # before anything of the stratum is deleted: what is lost is due to lower strata
        lost = update.new("Δi")
        lost.add(module.lost_by_change())
        touched.add(lost)
        made[module] = lost.listed()
        update.release(lost)
    first = delete()
    exchange(modules.all, {module: (first - made[module]).listed() for module in modules.all}, work)


def rederive_and_insert(update: Update, modules: Modules, found: WorkingSet) -> None:
    """REDERIVE-INSERT: A grows by what was overdeleted but still holds, by what is gained, and by all that follows."""

    def make(module: ModuleUpdate, made: WorkingSet) -> None:
        made.add(module.rederive())
        made.replace(made & update.overdeleted)
        update.figures["rederived"] += made.size
        made.add(module.gained_by_change())

    modules.insert(found, make)
