"""What `evermat check` shows."""

from __future__ import annotations

from collections.abc import Iterator

from evermat.core import count_of
from evermat.language import EQUALITY_OFF, Atom, Member, Negation, Program, Relation, Rule, Stratum, find_unions
from evermat.plan import Plan, delta_plan, full_plan, pivots


def describe(program: Program) -> str:
    """Types, strata, rules and plans as text."""
    return "\n".join(_lines(program)) + "\n"


def _lines(program: Program) -> Iterator[str]:
    visible = [r for r in program.relations.values() if not r.hidden]
    facts = sum(map(len, program.facts.values()))
    counts = [
        (len(visible), "relation"),
        (len(program.rules), "rule"),
        (facts, "fact"),
        (len(program.strata), "stratum"),
    ]
    yield f"{program.source.name}: " + ", ".join(_count(number, noun) for number, noun in counts)
    if program.equality != EQUALITY_OFF:
        how = "one of them represents all" if program.rewriting else "by its axioms"
        yield f"equal terms: {how}"
    sizes = {name: len(rows) for name, rows in program.facts.items()}
    for number, stratum in enumerate(program.strata, 1):
        yield ""
        kinds = [*(["recursive"] if stratum.recursive else []), *(["equality"] if stratum.equality else [])]
        yield f"stratum {number}" + (f" ({', '.join(kinds)})" if kinds else "")
        for name in stratum.relations:
            yield f"  {_declaration(program.relations[name])}{_inputs_outputs(program, name)}"
        modules = list(_modules(stratum))
        if stratum.recursive:
            yield f"  pivot: {_pivot(program, stratum)}"
        for i, (name, _) in enumerate(modules, 1):
            yield f"  module {i}: {name}"
        yield from _schemes(program, stratum)
        module_of = {rule: f" (module {i})" for i, (_, rules) in enumerate(modules, 1) for rule in rules}
        for title, rules in (("nonrecursive", stratum.nonrecursive), ("recursive", stratum.recursive)):
            for rule in rules:
                yield f"  {title} rule {_place(program, rule)}{module_of.get(rule, '')}"
                yield f"    {rule}"
                yield from _plans(rule, sizes)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} strata" if noun == "stratum" and number != 1 else count_of(number, noun)


def _declaration(relation: Relation) -> str:
    columns = ", ".join(
        f"{c.name}: {c.declared}" + ("" if c.declared == str(c.type) else f" ({c.type})") for c in relation.columns
    )
    kind = " eqrel" if relation.equivalence else " hidden" if relation.hidden else ""
    return f"{relation.name}({columns}){kind}"


def _inputs_outputs(program: Program, name: str) -> str:
    words = []
    for word, ios, ending in (("input", program.inputs, "facts"), ("output", program.outputs, "csv")):
        words += [
            f"{word} {io.medium if io.medium != 'file' else io.path or f'{name}.{ending}'}"
            for io in ios
            if io.relation.name == name
        ]
    words += ["printsize"] * any(relation.name == name for relation in program.sizes)
    if facts := len(program.facts.get(name, ())):
        words.append(count_of(facts, "fact"))
    return f"   [{', '.join(words)}]" if words else ""


def _pivot(program: Program, stratum: Stratum) -> str:
    found = pivots(stratum) or {}
    return ", ".join(f"{name}.{program.relations[name].columns[i].name}" for name, i in found.items()) or "none"


def _modules(stratum: Stratum) -> Iterator[tuple[str, tuple[Rule, ...]]]:
    """What evaluates the recursive rules: each closure, and seminaive evaluation for the rest."""
    for closure in stratum.closures:
        flipped = closure.members[0].flipped  # only of a linear closure; then its bases are seen from there
        name = f"{closure.kind} closure of {_members(closure.members, flipped)}"
        yield name + (f" by steps of {_members(closure.bases, flipped)}" if closure.bases else ""), closure.rules
    if stratum.plain:
        yield "seminaive", stratum.plain


def _schemes(program: Program, stratum: Stratum) -> Iterator[str]:
    """How relations may be stored otherwise than as tables."""
    if program.rewriting:
        return
    for closure in stratum.closures:
        yield f"  scheme: intervals for {_members(closure.members, closure.members[0].flipped)}, if large"
    for union in find_unions(stratum.nonrecursive) if not stratum.recursive else ():
        sources = _listed(list(union.sources))
        yield f"  scheme: {union.relation} as the union of {sources}, if large or one of these has no table"


def _members(members: tuple[Member, ...], flipped: bool) -> str:
    return _listed([m.relation + (" (turned)" if m.flipped != flipped else "") for m in members])


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _place(program: Program, rule: Rule) -> str:
    place = program.source.position(rule.span.start)
    return f"at {place.line}:{place.column}"


def _plans(rule: Rule, sizes: dict[str, int]) -> Iterator[str]:
    yield from _plan("all instances", full_plan(rule, sizes))
    for i, literal in enumerate(rule.literals):
        if isinstance(literal, Atom | Negation):
            yield from _plan(f"change of {literal}", delta_plan(rule, i, sizes))


def _plan(title: str, plan: Plan) -> Iterator[str]:
    yield f"      {title}:"
    for step in plan.steps:
        yield f"        {step}"
