"""The rules of the shapes; those of graphs and of SKOS are the ones of `bench.modular`."""

from __future__ import annotations


def relations(groups: int, closures: int, others: int) -> str:
    """Closures, unions of them, and unions of unions, in the manner of the relations of biomedical ontologies.

    In each group some relations are transitive, and `any_G` holds what one of them or some further relation says. `some_G` is a chain: what holds
    in this group or in one before it. `has` goes on from a union by a relation that is none: rules read unions.
    """
    lines = [".decl any, has(x:number, y:number)"]
    for group in range(groups):
        edges = [f"edge_{group}_{i}" for i in range(closures)]
        closed = [f"closed_{group}_{i}" for i in range(closures)]
        facts = [f"fact_{group}_{i}" for i in range(others)]
        lines.append(
            f".decl {', '.join([*edges, *closed, *facts, f'any_{group}', f'some_{group}'])}(x:number, y:number)"
        )
        for edge, name in zip(edges, closed, strict=True):
            lines.append(f"{name}(x, y) :- {edge}(x, y).")
            lines.append(f"{name}(x, z) :- {name}(x, y), {name}(y, z).")
        lines += [f"any_{group}(x, y) :- {name}(x, y)." for name in (*closed, *facts)]
        before = [f"some_{group - 1}"] if group else []
        lines += [f"some_{group}(x, y) :- {name}(x, y)." for name in (f"any_{group}", *before)]
        lines.append(f"has(x, z) :- {facts[0]}(x, y), any_{group}(y, z).")
    lines.append(f"any(x, y) :- some_{groups - 1}(x, y).")
    lines.append("any(x, y) :- has(x, y).")
    return "\n".join(lines)
