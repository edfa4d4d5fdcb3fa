"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.equality.running import COMPARED, Ran, disagreements, equilibrium, searched
from bench.equality.shapes import CYC, PLAIN
from bench.equality.steps import ALGORITHMS, AXIOMATISE, EQUALITY, REWRITE, Step
from bench.modular.rendering import factor, number, plain_seconds
from bench.report import table

Measured = Mapping[str, Sequence[Ran]]
WANTED = 1.2  # times what axioms take, if nothing is equal


@dataclass(frozen=True)
class Figures:
    """The average of several steps; of one that was given up, what it had taken until then."""

    cpu: float
    wall: float
    reason: float = 0.0
    """Of its CPU, that of the phase `reason`; the rest is encoding, and finding out what has changed in all names."""
    derivations: int | None = None
    facts: int | None = None
    representatives: int | None = None
    samples: int = 0
    given_up: str = ""

    def seconds(self, value: float) -> str:
        """One of its times."""
        if self.given_up:
            return f"> {factor(value)}" if value else self.given_up
        return plain_seconds(value)

    @property
    def counted(self) -> str:
        """Its derivations."""
        return self.given_up or number(self.derivations)


def figures(all_ran: Sequence[Ran], algorithm: str, what: str, size: int) -> Figures | None:
    """An algorithm's updates of one size. The first sample, which makes indexes, counts only where there is no other."""
    own = [
        step
        for ran in all_ran
        if ran.algorithms == (algorithm,)
        for step in ran.steps
        if (step.what, step.size) == (what, size)
    ]
    done = [step for step in own if step.ok]
    if not done:
        return Figures(own[0].cpu, own[0].wall, given_up=_why(own[0])) if own else None
    kept = [step for step in done if step.sample > 0] or done
    return Figures(
        fmean(step.cpu for step in kept),
        fmean(step.wall for step in kept),
        fmean(step.reason_cpu for step in kept),
        round(fmean(step.derivations for step in kept)),
        round(fmean(step.facts for step in kept)),
        None if kept[0].representatives is None else round(fmean(step.representatives or 0 for step in kept)),
        len(kept),
    )


def materialised(all_ran: Sequence[Ran], equality: str) -> Step | None:
    """The run with the least CPU of all processes; one that was given up if there is no other."""
    own = [
        step
        for ran in all_ran
        for step in ran.steps
        if step.what == "materialise" and EQUALITY[step.algorithm] == equality
    ]
    return min(own, key=lambda step: (not step.ok, step.reason_cpu), default=None)


def _why(step: Step) -> str:
    return {"begun": "stopped", "time": "time", "memory": "memory"}.get(step.status, step.status)


def render(measured: Measured) -> list[str]:
    """All tables."""
    parts = [render_materialisation(measured)]
    for shape, all_ran in measured.items():
        parts += [f"## Updates of {shape}", *render_updates(all_ran)]
    if any(shape.startswith(CYC) for shape in measured):
        parts.append(render_names(measured))
    troubles = [
        f"- {shape}, {', '.join(ran.algorithms)}: {ran.status}{_detail(ran)}"
        for shape, all_ran in measured.items()
        for ran in all_ran
        if ran.status != "ok"
    ]
    wrong = [f"- {line}" for shape, all_ran in measured.items() for line in disagreements(shape, all_ran)]
    parts += ["## Given up", "\n".join(troubles)] if troubles else []
    parts += ["## WRONG", "\n".join(wrong)] if wrong else []
    return parts


def _detail(ran: Ran) -> str:
    """What could not be done; of what failed, the last line that it told."""
    if ran.status in ("failed", "skipped"):
        return "".join(f" ({line.strip()})" for line in ran.detail.splitlines()[-1:])
    steps = [f"{step.what} {step.size:,}" if step.size else step.what for step in ran.steps if not step.ok]
    return "".join(f", {step}" for step in dict.fromkeys(steps))


def render_materialisation(measured: Measured) -> str:
    head = ["shape", "explicit", "equality", "rules", "facts held", "facts, all names", "reason, CPU s"]
    rows = [[*head, "whole call, CPU s", "wall s", "derivations", "peak MB"]]
    compared = [["shape", "axiomatise / rewrite", "derivations", "rewrite / axiomatise"]]
    for shape, all_ran in measured.items():
        steps = {equality: materialised(all_ran, equality) for equality in (REWRITE, AXIOMATISE)}
        for equality, step in steps.items():
            if step is None:
                continue
            if not step.ok:
                times = [f"> {factor(s)}" if s else "–" for s in (step.cpu, step.wall)]
                rows.append([shape, "–", equality, *["–"] * 3, _why(step), *times, "–", "–"])
                continue
            held = step.facts if step.representatives is None else step.representatives
            counts = [number(n) for n in (step.more["rules"], held, step.facts)]
            times = [plain_seconds(s) for s in (step.reason_cpu, step.cpu, step.wall)]
            memory = f"{step.more['peak_mb']:,.0f}"
            rows.append(
                [shape, number(step.more["explicit"]), equality, *counts, *times, number(step.derivations), memory]
            )
        compared.append([shape, *_materialisation_ratios(*steps.values())])
    return "\n\n".join(
        [
            "## Materialisation",
            "Of each the run with the least CPU in the phase `reason`, of all processes; ratios are of that CPU, and in parentheses of that of the whole call. Facts "
            f"that are held with `rewrite` are over representatives. Wanted on `{PLAIN}`: rewriting takes at most {WANTED} times what axioms take.",
            table(compared),
            table(rows),
        ]
    )


def _materialisation_ratios(ours: Step | None, axioms: Step | None) -> list[str]:
    if ours is None or axioms is None or not ours.ok:
        return ["–"] * 3
    if not axioms.ok:
        return [f"> {factor(axioms.cpu / ours.reason_cpu)}" if axioms.cpu else "–", "–", "–"]
    return [
        f"{factor(axioms.reason_cpu / ours.reason_cpu)} ({factor(axioms.cpu / ours.cpu)})",
        factor(axioms.derivations / ours.derivations) if ours.derivations else "–",
        f"{factor(ours.reason_cpu / axioms.reason_cpu)} ({factor(ours.cpu / axioms.cpu)})",
    ]


def render_updates(all_ran: Sequence[Ran]) -> list[str]:
    """Averages of whole calls of `update`, and how the algorithms compare."""
    sizes = sorted({s.size for ran in all_ran if len(ran.algorithms) == 1 for s in ran.steps if s.size})
    before = materialised(all_ran, REWRITE) or materialised(all_ran, AXIOMATISE)
    head = ["facts deleted", "representatives fewer", "facts fewer", "algorithm"]
    head += [word for what in ("delete", "put back") for word in (f"{what}, CPU s", "reason", "wall s", "derivations")]
    rows = [[*head, "samples"]]
    names = [name for name in ALGORITHMS if any(ran.algorithms == (name,) for ran in all_ran)]
    others = [name for name in names if name != names[0]]
    compared = [["facts", "what", *(f"{name} / {names[0]}" for name in others)]]
    for size in sizes:
        found = {what: {name: figures(all_ran, name, what, size) for name in names} for what in ("delete", "insert")}
        for name in names:
            deleting, inserting = found["delete"][name], found["insert"][name]
            line = [number(size), *_fewer(before, deleting), name]
            for one in (deleting, inserting):
                line += [*map(one.seconds, (one.cpu, one.reason, one.wall)), one.counted] if one else ["–"] * 4
            rows.append([*line, str(deleting.samples) if deleting else "–"])
        for what, by_name in found.items():
            ratios = [_ratio(by_name[name], by_name[names[0]]) for name in others]
            compared.append([number(size), "delete" if what == "delete" else "put back", *ratios])
    about = "Ratios of the CPU of whole calls, and in parentheses of the phase `reason`. Facts fewer: in all names."
    parts = [about, table(compared), table(rows)] if sizes else ["Nothing was updated."]
    search = next((ran for ran in all_ran if ran.algorithms == COMPARED), None)
    return [*parts, *(render_equilibrium(search.steps) if search else [])]


def _fewer(before: Step | None, after: Figures | None) -> list[str]:
    if before is None or not before.ok or after is None or after.given_up:
        return ["–", "–"]
    known = before.representatives is not None and after.representatives is not None
    representatives = (before.representatives or 0) - (after.representatives or 0)
    return [number(representatives if known else None), number(before.facts - (after.facts or 0))]


def _ratio(slow: Figures | None, fast: Figures | None) -> str:
    """How many times as long; at least so many times, if the slower was given up."""
    if slow is None or fast is None or fast.given_up or (slow.given_up and not slow.cpu):
        return "–"
    if slow.given_up:
        return f"> {factor(slow.cpu / fast.cpu)}"
    return f"{factor(slow.cpu / fast.cpu)} ({factor(slow.reason / fast.reason)})"


def render_equilibrium(steps: Sequence[Step]) -> list[str]:
    """The search for the number of facts at which both take the same time."""
    meeting = equilibrium(steps)
    if meeting is None:
        return ["Where both take the same time is not known."]
    size, is_there = meeting
    where = (
        f"Both take the same time at about {size:,} facts"
        if is_there
        else f"Up to {size:,} facts {COMPARED[0]} is faster"
    )
    rows = [["facts deleted", *(f"{name}, CPU s" for name in COMPARED), " / ".join(COMPARED)]]
    for deleted, (ours, again) in searched(steps).items():
        rows.append([number(deleted), plain_seconds(ours), plain_seconds(again), factor(ours / again)])
    return [f"{where}: one deletion of each size, in turns.", table(rows)]


def render_names(measured: Measured) -> str:
    """What the number of names costs, with as many explicit facts."""
    own = {shape: all_ran for shape, all_ran in measured.items() if shape.startswith(CYC)}
    sizes = sorted({s.size for all_ran in own.values() for ran in all_ran for s in ran.steps if s.size})
    head = ["shape", "explicit", "facts, representatives", "facts, all names", "fewer"]
    head += ["delete, CPU s", "reason", "derivations", "put back, CPU s", "reason", "derivations"]
    parts = [
        "## Names of a thing",
        "The same number of explicit facts, for each thing too, with more and more names. What is not `reason` is mostly telling what has "
        "changed in all names.",
    ]
    for size in sizes:
        for name in ALGORITHMS:
            rows = [head]
            for shape, all_ran in own.items():
                before = materialised(all_ran, EQUALITY[name])
                deleting, inserting = (figures(all_ran, name, what, size) for what in ("delete", "insert"))
                if before is None or not before.ok or deleting is None:
                    continue
                line = [shape, *map(number, (before.more["explicit"], before.representatives, before.facts))]
                line.append(_fewer(before, deleting)[1])
                for one in (deleting, inserting):
                    line += [one.seconds(one.cpu), one.seconds(one.reason), one.counted] if one else ["–"] * 3
                rows.append(line)
            parts += [f"### {size:,} facts by {name}", table(rows)] if len(rows) > 1 else []
    return "\n\n".join(parts)
