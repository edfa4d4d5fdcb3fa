"""Strongly connected components of what depends on each other in a program."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def strong_components(uses: Mapping[_Node, Sequence[_Node]]) -> list[list[_Node]]:
    """Strongly connected components, each after those that it uses (Tarjan, without recursion)."""
    index: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    stack: list[_Node] = []
    on_stack: set[_Node] = set()
    components: list[list[_Node]] = []
    for start in uses:
        if start in index:
            continue
        work = [(start, iter(uses[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            for below in rest:
                if below not in index:
                    index[below] = low[below] = len(index)
                    stack.append(below)
                    on_stack.add(below)
                    work.append((below, iter(uses[below])))
                    break
                if below in on_stack:
                    low[node] = min(low[node], index[below])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(component[::-1])
    return components
