"""Kernels over renamings of terms: representatives, and the rings of equal terms.

All is relative, so that an array of zeros means that every term stands for itself: `shift[t]` leads from a term to the one that
stands for it, `link[t]` to the next name in its ring, and `more[r]` is how many names there are besides r.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

from evermat.kernels import compiled


@compiled()
def _root(shift, term):
    """The representative of a term, while former representatives may be on the path, which becomes shorter."""
    while shift[term] != 0:
        above = term + shift[term]
        if shift[above] != 0:
            shift[term] += shift[above]
        term = above
    return term


@compiled()
def _settle_ring(root, shift, link):
    """Makes a term the representative of all other names in its ring."""
    member = root + link[root]
    while member != root:
        shift[member] = root - member
        member += link[member]


@compiled()
def _precedes(pool, ends, first, second, least):
    """Whether a term is smaller than another: by its bytes, but `least` is the smallest."""
    if least in (first, second):
        return first == least
    at, end = ends[first], ends[first + 1]
    other, other_end = ends[second], ends[second + 1]
    while at < end and other < other_end:
        if pool[at] != pool[other]:
            return pool[at] < pool[other]
        at += 1
        other += 1
    return end - at < other_end - other


@compiled(
    "int64[::1], int64[::1], int32[::1], int32[::1], int32[::1], uint8[::1], int64[::1], int64, int32[::1], int32[::1]"
)
def merge_pairs(left, right, shift, link, more, pool, ends, least, losers, winners):
    """Makes pairs of terms equal; lists the former representatives, and those that replaced them at that moment; returns how many.

    Afterwards `settle_ring` has to be called for each of them.
    """
    count = 0
    for i in range(len(left)):
        a = _root(shift, left[i])
        b = _root(shift, right[i])
        if a == b:
            continue
        if _precedes(pool, ends, b, a, least):
            a, b = b, a
        shift[b] = a - b
        more[a] += more[b] + 1
        # Two rings become one when the links of one member each are exchanged.
        after_a = a + link[a]
        link[a] = b + link[b] - a
        link[b] = after_a - b
        losers[count] = b
        winners[count] = a
        count += 1
    return count


@compiled("int32[::1], int64, int32[::1], int32[::1]")
def settle_rings(terms, count, shift, link):
    """Sets the representative of every name in the rings of some terms."""
    for i in range(count):
        root = _root(shift, terms[i])
        if i > 0 and _root(shift, terms[i - 1]) == root:
            continue
        _settle_ring(root, shift, link)


@compiled("int64[::1], int64[::1], int64, int32[::1], int32[::1], int32[::1]")
def part_pairs(losers, winners, count, shift, link, more):
    """Undoes `merge_pairs`: in reverse order, each exchange of links takes a ring apart again."""
    for i in range(count - 1, -1, -1):
        a, b = winners[i], losers[i]
        after_b = b + link[b]
        link[b] = a + link[a] - b
        link[a] = after_b - a
        more[a] -= more[b] + 1
        shift[b] = 0
        _settle_ring(b, shift, link)
        # The rings of those that were merged into a, or a itself, know a still; a may cease to be a representative in an earlier step.
        shift[a] = 0
        _settle_ring(a, shift, link)


@compiled(
    "int64[:, ::1], int64[::1], int64, int32[::1], boolean[::1]",
    "int64[:, :], int64[::1], int64, int32[::1], boolean[::1]",
    steps="n",
)
def rename_batch(batch, columns, n, shift, changed):
    """Replaces terms by representatives, and marks the tuples that have changed; returns how many."""
    count = 0
    size = len(shift)
    for i in range(n):
        moved = False
        for k in range(len(columns)):
            term = batch[columns[k], i]
            if term < size and shift[term] != 0:
                batch[columns[k], i] = term + shift[term]
                moved = True
        changed[i] = moved
        count += moved
    return count


@compiled("int64[::1], int64[::1], int32[::1], int64[::1]")
def list_names(terms, starts, link, out):
    """As many names of each term as there is room for, from starts[i] on, the term itself first."""
    for i in range(len(terms)):
        member = terms[i]
        out[starts[i]] = member
        for at in range(starts[i] + 1, starts[i + 1]):
            member += link[member]
            out[at] = member


@compiled("int64[::1], int64[::1], int32[::1], int32[::1], int32[::1]")
def make_rings(terms, representatives, shift, link, more):
    """Gives terms, sorted by their representatives, who are among them, new rings."""
    n = len(terms)
    first = 0
    while first < n:
        representative = representatives[first]
        end = first
        while end < n and representatives[end] == representative:
            term = terms[end]
            shift[term] = representative - term
            more[term] = 0
            following = terms[end + 1] if end + 1 < n and representatives[end + 1] == representative else terms[first]
            link[term] = following - term
            end += 1
        more[representative] = end - first - 1
        first = end
