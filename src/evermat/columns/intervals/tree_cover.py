"""An order of the nodes of a graph in which what a node reaches stands in few intervals, and estimates of how much that is.

Whether a closure is better held as intervals than as pairs is decided before it is computed. So all here takes time that is linear in the
edges, whatever the closure. Random numbers come from a fixed seed: what is found is the same each time.

*Estimates* are those of Cohen (*Size-estimation framework with applications to transitive closure and reachability*, 1997): every node
draws exponentially distributed ranks; the least rank among n nodes is distributed as one rank divided by n, so the least ranks
of what a component reaches estimate its size. They go from component to component along the edges.

The *order* is a post-order of a tree in which each component hangs under one that has an edge to it. All that is below a component in the tree
is one interval; each edge that is not in the tree may cost one more in all components above it. Agrawal, Borgida and Jagadish
(*Efficient management of transitive relationships in large data and knowledge bases*, 1989) showed that it is best to hang a component under
the one that most components reach.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evermat.columns.graph.reachability import Graph, Reached
from evermat.columns.kernels import graphs as graph_kernels
from evermat.columns.kernels import tree_cover as kernels
from evermat.columns.storage.arrays import Mask, Nodes, Numbers, Words

Floats = npt.NDArray[np.float64]

#: components that reach a component are counted exactly if that takes so many operations on words at most; else for a sample of
#: them, as large as these operations allow, but not smaller than this
MOST_OPERATIONS = 1 << 25
LEAST_SAMPLE = 512
#: so many marks go along the edges at once; they fill a cache line. Fewer where there are so many components that their words would be more
#: than this, for then they are most of the memory that building takes
MARKS = 512
MOST_MARK_WORDS = 1 << 21
#: for so many components it is found out exactly how much they reach, to correct an estimate of all
PROBES = 64
#: intervals are counted for so many components
INTERVAL_PROBES = 256

_BITS = 64
_SAMPLES = 16
_SAMPLES_AT_ONCE = 4


# ── Estimates ────────────────────────────────────────────────────────────────────────────────────────────────────────


def estimate_reach(graph: Graph, samples: int = _SAMPLES) -> Floats:
    """About how many nodes each component is connected to: exact where no edge leads on, else with a deviation of 1 / sqrt(samples - 2).

    The deviations of components that reach much the same are much the same, too.
    """
    members = np.diff(graph.bounds)
    found = _estimate_beyond(graph, members, samples)
    return found + np.where(graph.cyclic, members, 0)


def _estimate_beyond(graph: Graph, weights: Nodes, samples: int) -> Floats:
    """About the sum of the weights of the other components that each component reaches."""
    assert samples > 2
    random = np.random.default_rng(0)
    sums = np.zeros(graph.components)
    for first in range(0, samples, _SAMPLES_AT_ONCE):
        width = min(_SAMPLES_AT_ONCE, samples - first)
        ranks = random.standard_exponential((graph.components, width), np.float32)
        ranks /= weights[:, np.newaxis].astype(np.float32)
        kernels.add_least_ranks(
            graph.starts, graph.successors, width, ranks.reshape(-1), np.empty(width, np.float32), sums
        )
    found = (samples - 1) / sums  # without bias; 0 where nothing is reached, and the sum infinite
    after = np.zeros(graph.components)  # only components with higher numbers are reached
    after[:-1] = np.cumsum(weights[:0:-1])[::-1]
    limited: Floats = np.minimum(found, after)
    return limited


def estimate_pairs(graph: Graph, sources: Mask | None = None, samples: int = _SAMPLES) -> float:
    """About how many pairs of a source and a node are connected; every node is a source if `sources` is None.

    Estimates for components may all deviate in the same direction, and their sum as much as one of them. So it is corrected: for some
    components the sizes are found exactly, and an average shows how the estimates relate to them. Components are drawn in proportion to what
    they contribute; so the average is right for the sum, and deviates by a few percent, however little or much single components reach.
    """
    if sources is None:
        weights = np.diff(graph.bounds)
    else:
        weights = np.bincount(graph.component[sources], minlength=graph.components)
    reach = estimate_reach(graph, samples)
    shares = weights * reach
    is_open = (graph.starts[1:] > graph.starts[:-1]) & (shares > 0)
    (open_,) = np.nonzero(is_open)
    known = float(shares.sum(where=~is_open))
    if len(open_) <= PROBES:
        return known + float(weights[open_] @ _sizes(graph, open_))
    ends = np.cumsum(shares[open_])
    marks = (np.arange(PROBES) + 0.5) * (ends[-1] / PROBES)
    drawn = open_[np.searchsorted(ends, marks)]
    return known + float(ends[-1] * (_sizes(graph, drawn) / reach[drawn]).mean())


def _sizes(graph: Graph, chosen: npt.NDArray[np.intp]) -> Numbers:
    """How many nodes the chosen components, at most as many as a word has bits, are connected to."""
    sizes = np.zeros(_BITS, np.int64)
    reached = _reached(graph, chosen)
    kernels.sum_sizes(reached.active, reached.count, graph.bounds, reached.rows, sizes)
    return sizes[: len(chosen)]


def _reached(graph: Graph, chosen: npt.NDArray[np.intp]) -> Reached:
    """What the chosen components reach."""
    reached = Reached(graph, len(chosen))
    reached.start(graph.members[graph.bounds[chosen]])
    return reached


def estimate_intervals(graph: Graph, order: Nodes) -> int:
    """About how many intervals of the order hold what components are connected to, over all components; exact for few components.

    They are counted for components that are drawn at equal distances, so that all depths of the graph have their part.
    """
    (open_,) = np.nonzero(graph.starts[1:] > graph.starts[:-1])
    known = int(np.count_nonzero(graph.cyclic)) - int(np.count_nonzero(graph.cyclic[open_]))
    if not len(open_):
        return known
    probes = min(INTERVAL_PROBES, len(open_))
    drawn = open_[((np.arange(probes) + 0.5) * (len(open_) / probes)).astype(np.intp)]
    reached = _reached(graph, drawn)
    previous = np.zeros(reached.width, np.uint64)
    runs = int(kernels.count_runs(order, graph.component, reached.width, reached.rows, previous))
    return known + round(runs * len(open_) / probes)


# ── The order ────────────────────────────────────────────────────────────────────────────────────────────────────────


def cover(graph: Graph) -> Nodes:
    """All nodes, in post-order of a tree over the components. The members of a component stand next to each other.

    Children with many ancestors come first: whatever reaches some children of a component but not the component itself reaches these
    most likely, and has them in one interval. Roots come in the order of their numbers; nothing else reaches them.
    """
    # In a forest there is nothing to choose, and whatever order children have, all that is reached is one interval.
    is_forest = not len(graph.successors) or int(np.bincount(graph.successors).max()) <= 1
    ancestors = np.zeros(graph.components) if is_forest else estimate_ancestors(graph)
    parents = choose_parents(graph, ancestors)
    by_ancestors = _by_ancestors(ancestors)
    starts = np.zeros(graph.components + 2, np.int32)
    children = np.empty(graph.components, np.int32)
    graph_kernels.list_by_key(parents[by_ancestors] + 1, by_ancestors, starts, children)
    sizes, positions = np.zeros(graph.components, np.int32), np.empty(graph.components, np.int32)
    order: Nodes = np.empty(graph.nodes, np.int32)
    kernels.lay_out(parents, starts, children, graph.bounds, graph.members, sizes, positions, order)
    return order


def _by_ancestors(ancestors: Floats) -> Nodes:
    """The components with most ancestors first, in the order of their numbers where these are as many.

    Keys have a number for the ancestors, which orders like them, and behind it the component: to sort these is faster than to sort indirectly.
    """
    keys = ancestors.astype(np.float32).view(np.uint32).astype(np.uint64)
    keys = (np.uint64(0xFFFFFFFF) - keys) << np.uint64(32)
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.sort()
    return keys.astype(np.uint32).view(np.int32)


def choose_parents(graph: Graph, ancestors: Floats) -> Nodes:
    """The component under which each component hangs: of those that have an edge to it, one with most ancestors; -1 for a root."""
    parents: Nodes = np.full(graph.components, -1, np.int32)
    kernels.choose_parents(graph.starts, graph.successors, ancestors, parents)
    return parents


def estimate_ancestors(graph: Graph) -> Floats:
    """About how many other components reach each component; exact if the graph is small.

    The components that compete for the same child have most ancestors in common, and it is the rest that decides. A
    sample of components that is the same for all shows that better than ranks do: what is in common counts for both alike. Where it
    has little to count, ranks are better. So both are taken, weighted by how exact they are.
    """
    reversed_ = graph.reverse()  # not kept: it is as large as the graph
    count = reversed_.components
    size = min(count, max(LEAST_SAMPLE, MOST_OPERATIONS // (len(reversed_.successors) + count + 1) * _BITS))
    marked = np.random.default_rng(1).permutation(count)[:size] if size < count else np.arange(count)
    counts = _count_marked(reversed_, marked)
    if size == count:
        return counts[::-1].astype(np.float64)
    ranked = _estimate_beyond(reversed_, np.ones(count, np.int32), _SAMPLES)
    found = (counts * (counts * (count / size)) + _SAMPLES * ranked) / (counts + _SAMPLES)
    return found[::-1].copy()


def _count_marked(graph: Graph, marked: npt.NDArray[np.intp]) -> Nodes:
    """How many of the marked components each component reaches."""
    count = graph.components
    counts: Nodes = np.zeros(count, np.int32)
    width = min(MARKS // _BITS, max(MOST_MARK_WORDS // max(count, 1), 1))
    at_once = width * _BITS
    rows: Words = np.empty(count * width, np.uint64)
    for first in range(0, len(marked), at_once):
        own = marked[first : first + at_once]
        bits = np.arange(len(own))
        rows[:] = 0
        rows[own * width + bits // _BITS] = np.uint64(1) << (bits % _BITS).astype(np.uint64)
        kernels.count_marks(graph.starts, graph.successors, width, rows, np.empty(width, np.uint64), counts)
    return counts
