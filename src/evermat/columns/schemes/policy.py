"""Which scheme a relation gets.

`plain` gives every relation a table. `auto` estimates how many pairs a closure has before it is computed, from samples of what its nodes
reach, and takes intervals where a table would be large. Intervals are read by the second column by searching backwards; where a
rule does that, more must be won by it. A relation that copies others gets no table of its own where a source has none, or
where it would be large, no rule reads it over and over, and nearly all of it is in one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evermat.columns.graph.dynamic_graph import Edges
from evermat.columns.graph.reachability import Graph
from evermat.columns.intervals.tree_cover import cover, estimate_intervals, estimate_pairs
from evermat.columns.storage.arrays import Nodes
from evermat.columns.storage.table import Table
from evermat.language import Atom, Closure, Program, Rule, Union, Variable

AUTO_SCHEMES, PLAIN = "auto", "plain"
#: a closure is stored as intervals from this many facts on; and from this many if a rule reads it by its second column
LEAST_PAIRS = 1_000_000
LEAST_PAIRS_IF_READ_BACKWARDS = 10_000_000
#: a closure that other recursive rules take part in from this many: each update recomputes it then, which is better only than no answer
LEAST_PAIRS_IF_RECURSIVE = 100_000_000
#: and only if it has so many times more facts than edges
LEAST_GROWTH = 4
#: a graph is reversed if it needs more intervals than this, and so many for each node that they take most of the memory, and reversed so
#: many times fewer
MANY_INTERVALS = 1_000_000
INTERVALS_PER_NODE = 4
REVERSED_GAIN = 3
#: a relation that only copies plain tables has no table of its own from so many facts on; and from this many if a rule reads it, or if more than
#: this share of its facts has to be looked up in the largest of them, whenever all are read
LEAST_COPIES = 5_000_000
LEAST_COPIES_IF_SLOW = 50_000_000
MOST_LOOKED_UP = 0.05


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a relation is stored by a scheme, why, and how many facts it was expected to have."""

    stored: bool
    reason: str
    estimated: int | None = None
    reverse: bool = False  # whether intervals hold the nodes that reach a node, not those that it reaches


def may_be_large(edges: int) -> bool:
    """Whether so many edges may connect enough pairs for a closure to be stored as intervals."""
    return edges**2 >= LEAST_PAIRS


def decide_closure(
    program: Program, closure: Closure, edges: Edges, *, alone: bool
) -> tuple[Decision, Nodes | None]:  # fmt: skip
    """Whether the members of a closure are stored as intervals; `alone`: no other recursive rules take part in it. The order of `look_both_ways`."""
    live = edges.everything()
    least = LEAST_PAIRS_IF_READ_BACKWARDS if _read_backwards(program, closure) else LEAST_PAIRS
    if not alone:
        least = LEAST_PAIRS_IF_RECURSIVE
    if len(live) ** 2 < least:
        return Decision(False, f"{len(live):,} edges"), None  # they cannot connect more pairs
    nodes = np.arange(edges.nodes.count, dtype=np.int32)
    graph = _graph(edges)
    estimated = int(estimate_pairs(graph, edges.may_begin(nodes) if edges.linear else None))
    if estimated < least:
        return Decision(False, f"fewer than {least:,} pairs expected", estimated), None
    if estimated < LEAST_GROWTH * len(live):
        return Decision(False, f"{len(live):,} edges, not many fewer than pairs", estimated), None
    reverse, order = look_both_ways(closure, edges, graph)
    return Decision(True, "a table of all pairs would be large", estimated, reverse), order


def _graph(edges: Edges) -> Graph:
    tails, heads = edges.table.rows[edges.everything()].T.astype(np.int32)
    return Graph(edges.nodes.count, tails, heads)


def look_both_ways(closure: Closure, edges: Edges, graph: Graph | None = None) -> tuple[bool, Nodes | None]:
    """Whether the graph of a closure needs far fewer intervals if it is reversed; and the order of its nodes as it is, if it was looked for."""
    if closure.bases or closure.symmetric:
        return False, None
    graph = graph or _graph(edges)
    order = cover(graph)
    forward = estimate_intervals(graph, order)
    if forward <= max(MANY_INTERVALS, INTERVALS_PER_NODE * graph.nodes):
        return False, order
    return REVERSED_GAIN * estimate_intervals(graph.reversed, cover(graph.reversed)) < forward, order


def decide_union(asked: str, program: Program, union: Union, tables: Mapping[str, Table]) -> Decision:
    """Whether a relation is stored as the union of others."""
    if asked == PLAIN:
        return Decision(False, "as asked for")
    if any(tables[source].scheme is not None for source in union.sources):
        return Decision(True, "a source has no table")
    counts = [tables[source].count for source in union.sources]
    copies = sum(counts)
    read = any(union.relation in rule.reads for rule in program.rules)
    least = LEAST_COPIES_IF_SLOW if read or copies - max(counts) > MOST_LOOKED_UP * copies else LEAST_COPIES
    if copies < least:
        return Decision(False, f"fewer than {least:,} facts to copy", copies)
    return Decision(True, "a table would repeat those of its sources", copies)


def _read_backwards(program: Program, closure: Closure) -> bool:
    """Whether a rule outside the closure may look up members by the ends of pairs alone."""
    flipped = {member.relation: member.flipped for member in closure.members}
    read = [(rule, atom) for rule in program.rules if rule not in closure.rules for atom in rule.atoms]
    for rule, atom in read:
        if atom.relation.name in flipped and len(rule.literals) > 1:
            first, second = atom.terms[::-1] if flipped[atom.relation.name] else atom.terms
            if _is_joined(second, atom, rule) and not _is_joined(first, atom, rule):
                return True
    return False


def _is_joined(term: object, atom: Atom, rule: Rule) -> bool:
    """Whether a term of an atom is known without it: a constant, or a variable of another atom of the body."""
    if not isinstance(term, Variable):
        return True
    return any(other is not atom and term in other.terms for other in rule.atoms)
