"""OWL 2 RL beside other reasoners: ``python -m bench.owl [--quick] [--only lubm,differences,parsing,uobm]``.

- `lubm`: universities of `bench.universities` with their ontology, by Evermat, reasonable and owlrl. Each run is a process of its own, told is its CPU time and that of
  its children, parsing included. The engines run in turns, and each repetition begins with another; what takes longer than two minutes runs once.
  Evermat runs as from the command line, with the ontology translated to rules, the triples left in memory or all of them written to a file; and with the rules of OWL 2 RL over triples, which
  also derive instances of classes without a name, as the others do. What takes longer than `--limit` seconds is stopped, and told as
  more than what it had used.
- `differences`: which triples one has and the other has not, by kind; also of a department of UOBM. Blank nodes of the ontology are the same if they say the same.
- `parsing`: triples for each second of CPU that the phases `read` and `encode` of ``evermat run --rdf`` take, into `triple`.
- `uobm`: larger and larger universities that hang together, with equality, by Evermat alone.

Needs 8 GB of memory, which reasonable takes, and an hour, which owlrl takes for one university and to be stopped on ten.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.differences import compare
from bench.environment import environment
from bench.harness import DETAIL_CHARACTERS, launched
from bench.model import Job, Measurement, Peer, Phases
from bench.peers import peer_evermat, peer_owlrl, peer_reasonable
from bench.peers.peer_reasonable import WRITTEN
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from bench.universities import ONTOLOGIES, UB, opened, write

PARTS = ("lubm", "differences", "parsing", "uobm")
LITTLE = 120.0  # seconds that a run may take to be repeated

# --- engines -----------------------------------------------------------------------------------------------


def evermat(name: str, note: str, *options: str, exported: bool = False, translated: bool = True) -> Peer:
    """Evermat with an ontology (the program) and data (the facts), as its users start it."""

    def command(job: Job) -> list[str]:
        files = ["--ontology", str(job.program), "--rdf", str(job.facts)]
        if not translated:
            files = ["--entailment", "owl2rl", "--rdf", str(job.program), str(job.facts)]
        export = ["--export", str(job.out / "all.nt")] if exported else []
        report = ["--stats", str(job.report)]
        return [*peer_evermat.executable(), "run", "--engine", "memory", *files, *report, *export, *options]

    return replace(peer_evermat.peer(name), command=command, note=note)


PLAIN = evermat("evermat", "triples stay in memory")
EXPORTED = evermat("evermat, exported", "all triples are written, sorted", exported=True)
TRIPLES = evermat("evermat, over triples", "--entailment owl2rl, triples stay in memory", translated=False)
ALL = evermat("evermat, over triples, exported", "all triples are written", exported=True, translated=False)
TRIVIAL = evermat("evermat, over triples, trivial", "the same, --trivial", "--trivial", exported=True, translated=False)
TIMED, COMPARED = (PLAIN, EXPORTED, TRIPLES), (EXPORTED, ALL, TRIVIAL)
REASONABLE, OWLRL = peer_reasonable.PEER, peer_owlrl.PEER
PEERS = (*TIMED, REASONABLE, OWLRL)
OTHERS = (REASONABLE, OWLRL)


@dataclass(frozen=True)
class Data:
    """Universities in a file, and their ontology."""

    name: str
    """With the number of triples."""
    triples: int
    ontology: Path
    file: Path


def make(folder: Path, kind: str, universities: int, departments: int | None = None) -> Data:
    """Generates them. N-Triples are Turtle, but reasonable looks at a name's ending: the file has two names."""
    name = f"{kind.upper()}({universities})" + ("" if departments is None else f", departments: {departments}")
    stem = f"{kind}{universities}" if departments is None else f"{kind}{universities}-{departments}"
    ontology, file = folder / f"{kind}-ontology.ttl", folder / f"{stem}.nt"
    ontology.write_text(ONTOLOGIES[kind](), encoding="utf-8")
    with opened(file) as sink:
        triples = write(kind, universities, sink, departments=departments)
    file.with_suffix(".ttl").symlink_to(file)
    return Data(f"{name}: {triples:,} triples", triples, ontology, file)


def run(peer: Peer, data: Data, folder: Path, repetition: int, limit: float, result: str = "") -> Measurement:
    """One run of one engine. CPU and wall time are also kept of one that was stopped."""
    one = Measurement(peer.name, data.name, repetition, "failed")
    if peer.version() is None:
        one.status = "absent"
        return one
    out = folder / "out"
    out.mkdir(exist_ok=True)
    facts = data.file.with_suffix(".ttl") if peer is REASONABLE else data.file
    job = Job(data.ontology, facts, out, folder / "report.json", result)
    usage_file = folder / "usage.json"
    job.report.unlink(missing_ok=True)
    said = launched(peer.command(job), usage_file, limit, job.threads, folder)
    one.detail = said[-DETAIL_CHARACTERS:].replace(str(folder), ".")
    if not usage_file.exists():
        raise SystemExit(f"{peer.name} on {data.name}: {one.detail}")
    usage = json.loads(usage_file.read_text(encoding="utf-8"))
    one.wall, one.cpu, one.peak_mb = usage["wall"], usage["cpu"], usage["peak_mb"]
    if usage["timeout"]:
        one.status = "timeout"
    elif usage["exit"] == 0:
        one.status, one.detail, one.phases = "ok", "", peer.phases(job)
        facts = one.phases.extra.get("facts", {})
        known = [count for name, count in facts.items() if name.startswith("<") or name in ("triple", "other_triple")]
        one.phases.extra.setdefault("triples", sum(known))
    elif peer not in OTHERS:  # of others it is worth knowing that they fail
        raise SystemExit(f"{peer.name} on {data.name}: {one.detail}")
    return one


def tell(one: Measurement) -> None:
    """One line of progress."""
    cpu = "" if one.cpu is None else f", {one.cpu:.2f} s CPU"
    triples = one.phases.extra.get("triples")
    print(one.workload, one.engine, one.status + cpu, triples or one.detail, file=sys.stderr, flush=True)


# --- LUBM --------------------------------------------------------------------------------------------------


def measure_lubm(
    all_data: Sequence[Data], peers: Sequence[Peer], folder: Path, repeat: int, limit: float
) -> Iterator[Measurement]:
    """All engines on all data, in turns."""
    for data in all_data:
        done: set[str] = set()
        for repetition in range(repeat):
            shift = repetition % len(peers)
            for peer in (*peers[shift:], *peers[:shift]):
                if peer.name in done:
                    continue
                one = run(peer, data, folder, repetition, limit)
                if one.status != "ok" or (one.wall or 0.0) > LITTLE:
                    done.add(peer.name)
                tell(one)
                yield one


def render_lubm(found: Sequence[dict[str, Any]], again: dict[str, float]) -> str:
    """A table for each size. `again`: what reasonable takes to hand its result over."""
    runs = [Measurement(**{**one, "phases": Phases(**one["phases"])}) for one in found]
    parts = [
        "## Time\n\nBest of all repetitions by CPU of the whole process. *Times Evermat*: by how much more CPU it takes than Evermat, best by best, and in "
        "parentheses the lowest and the highest within one repetition. Wanted on LUBM(10): 5 for reasonable, 50 for owlrl."
    ]
    for data in dict.fromkeys(one.workload for one in runs):
        own = [one for one in runs if one.workload == data]
        head = ["engine", "CPU s", "wall s", "peak MB", "triples out"]
        rows = [[*head, *(f"times {peer.name}" for peer in TIMED)]]
        for engine in dict.fromkeys(one.engine for one in own):
            best = _best(own, engine)
            if best is None or best.cpu is None or best.status == "failed":
                rows.append([engine, "absent" if best is None else best.status, *[""] * 6])
                continue
            more = "> " if best.status == "timeout" else ""
            cells = [engine, f"{more}{best.cpu:.2f}", f"{more}{best.wall:.2f}", f"{best.peak_mb:.0f}"]
            cells.append(f"{best.phases.extra['triples']:,}" if best.status == "ok" else best.status)
            rows.append([*cells, *(more + _ratios(own, engine, ours.name) for ours in TIMED)])
            if engine == REASONABLE.name and best.status == "ok" and data in again:
                rows.append(_without(own, best.cpu - again[data], again[data]))
        phases = [["engine", "start", "load", "reason", "write"]]
        for engine in dict.fromkeys(one.engine for one in own if one.status == "ok"):
            taken = _best(own, engine).phases.cpu  # type: ignore[union-attr]
            phases.append([engine, *(f"{taken[p]:.2f}" if p in taken else "" for p in phases[0][1:])])
        parts += [f"### {data}", table(rows), "CPU by phase, seconds:", table(phases)]
    return "\n\n".join(parts)


def _without(own: Sequence[Measurement], cpu: float, handing: float) -> list[str]:
    """What reasonable would take if its result stayed where it is: a guess, the two come from different runs."""
    cells = [f"{REASONABLE.name} less {handing:.1f} s", f"{cpu:.2f}", "", "", ""]
    ours = [_best(own, peer.name) for peer in TIMED]
    return [*cells, *(f"{cpu / one.cpu:.1f}" if one is not None and one.cpu else "" for one in ours)]


def _best(runs: Iterable[Measurement], engine: str) -> Measurement | None:
    """The run with the least CPU; one that was stopped only if there is no other."""
    own = [one for one in runs if one.engine == engine and one.status != "absent"]
    return min(own, key=lambda one: (one.status != "ok", one.cpu or 0.0), default=None)


def _ratios(runs: Sequence[Measurement], engine: str, ours: str) -> str:
    """How many times ours another takes: the best runs, and the extremes within repetitions."""
    pairs: dict[int, dict[str, float]] = {}
    for one in runs:
        if one.cpu is not None and one.engine in (engine, ours):
            pairs.setdefault(one.repetition, {})[one.engine] = one.cpu
    within = [pair[engine] / pair[ours] for pair in pairs.values() if engine in pair and ours in pair]
    best, base = _best(runs, engine), _best(runs, ours)
    if not within or best is None or base is None or not best.cpu or not base.cpu or base.status != "ok":
        return ""
    return f"{best.cpu / base.cpu:.1f} ({min(within):.1f}–{max(within):.1f})"


# --- differences -------------------------------------------------------------------------------------------


def measure_differences(
    all_data: Sequence[Data], others: Sequence[Peer], folder: Path, limit: float, stopped: set[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Everybody's triples, written in runs that are not timed, two by two. Who was `stopped` on some data is not asked again."""
    for data in all_data:
        files: dict[str, Path] = {}
        again: dict[str, float] = {}
        for peer in (*COMPARED, *others):
            if (data.name, peer.name) in stopped:
                continue
            one = run(peer, data, folder, 0, limit, WRITTEN)
            tell(one)
            if one.status == "ok":
                made = folder / "out" / (f"{WRITTEN}.csv" if peer in others else "all.nt")
                files[peer.name] = made.rename(folder / f"{peer.name}.nt")
                again |= {peer.name: one.phases.cpu["again"]} if "again" in one.phases.cpu else {}
        for ours in COMPARED:
            for other in others:
                if ours.name not in files or other.name not in files:
                    continue
                only_theirs, only_ours, common = compare(files[other.name], files[ours.name])
                yield {
                    "data": data.name,
                    "ours": ours.name,
                    "theirs": other.name,
                    "again": again.get(other.name),
                    "common": common,
                    "only_theirs": [[*key, found.count, found.example] for key, found in sorted(only_theirs.items())],
                    "only_ours": [[*key, found.count, found.example] for key, found in sorted(only_ours.items())],
                }
        for file in files.values():
            file.unlink()


def render_differences(found: Sequence[dict[str, Any]]) -> str:
    """By how many, and for each two by which kinds, without and with trivial consequences."""
    rows = [["data", "ours", "theirs", "both have", "only theirs", "of them facts", "only ours", "of them facts"]]
    for one in found:
        counts = []
        for side in ("only_theirs", "only_ours"):
            counts += [sum(k[2] for k in one[side]), sum(k[2] for k in one[side] if k[0] == "facts")]
        rows.append([one["data"], one["ours"], one["theirs"], *(f"{n:,}" for n in (one["common"], *counts))])
    parts = [
        "## Differences\n\nTriples that one has and the other has not. *Facts* are those of classes and properties with names about individuals; all else is about the ontology and its expressions, or trivial.",
        table(rows),
    ]
    for data, theirs in dict.fromkeys((one["data"], one["theirs"]) for one in found):
        variants = {one["ours"]: one for one in found if (one["data"], one["theirs"]) == (data, theirs)}
        kinds: dict[tuple[str, str, str], dict[str, int]] = {}
        examples: dict[tuple[str, str, str], str] = {}
        for ours, one in variants.items():
            for side, who in (("only_theirs", theirs), ("only_ours", "evermat")):
                for why, what, count, example in one[side]:
                    kinds.setdefault((who, why, what), {})[ours] = count
                    examples.setdefault((who, why, what), example)
        rows = [["only", "why", "what", *variants, "example"]]
        for key, counts_of in sorted(kinds.items(), key=lambda item: (item[0][0] != theirs, item[0])):
            who, why, what = key
            cells = [f"{counts_of.get(ours, 0):,}" for ours in variants]
            rows.append([who, why, f"`{_readable(what)}`", *cells, f"`{_readable(examples[key])}`"])
        parts += [f"### {data}: Evermat and {theirs}", table(rows)]
    return "\n\n".join(parts)


def _readable(text: str, most: int = 120) -> str:
    text = re.sub(f"<{UB}([^>]*)>", r"ub:\1", text).replace("|", "\\|").replace("`", "'")
    return text if len(text) <= most else text[:most] + "…"


# --- parsing -----------------------------------------------------------------------------------------------


def measure_parsing(data: Data, folder: Path, repeat: int) -> Iterator[dict[str, Any]]:
    """The same triples in several formats, read into `triple`."""
    import pyoxigraph

    program = folder / "triples.dl"
    program.write_text(".decl triple(s:term, p:term, o:term)\n", encoding="utf-8")
    names = {"Turtle": "ttl", "RDF/XML": "rdf"}
    formats = {"Turtle": pyoxigraph.RdfFormat.TURTLE, "RDF/XML": pyoxigraph.RdfFormat.RDF_XML}
    files = {"N-Triples": data.file}
    for name, ending in names.items():
        files[name] = folder / f"parsing.{ending}"
        triples = pyoxigraph.parse(path=data.file, format=pyoxigraph.RdfFormat.N_TRIPLES)
        pyoxigraph.serialize(triples, str(files[name]), format=formats[name], prefixes={"ub": UB})
    for name, file in files.items():
        runs = []
        for _ in range(repeat):
            report = folder / "report.json"
            command = [*peer_evermat.executable(), "run", str(program), "--engine", "memory", "--rdf", str(file)]
            subprocess.run([*command, "--stats", str(report)], check=True, capture_output=True, cwd=folder)
            stats = json.loads(report.read_text(encoding="utf-8"))
            assert stats["facts"]["triple"] == data.triples, stats["facts"]
            runs.append([stats["cpu_seconds"][phase] for phase in ("read", "encode")])
        read, encode = min(runs, key=sum)
        found = {"format": name, "triples": data.triples, "bytes": file.stat().st_size}
        found |= {"read_cpu_s": round(read, 3), "encode_cpu_s": round(encode, 3)}
        found["per_cpu_second"] = round(data.triples / (read + encode))
        print(found, file=sys.stderr, flush=True)
        yield found


def render_parsing(found: Sequence[dict[str, Any]]) -> str:
    """Triples by time."""
    rows = [["format", "triples", "MB", "read, CPU s", "encode, CPU s", "triples per CPU second"]]
    rows += [
        [
            one["format"],
            f"{one['triples']:,}",
            f"{one['bytes'] / 1e6:.0f}",
            f"{one['read_cpu_s']:.2f}",
            f"{one['encode_cpu_s']:.2f}",
            f"{one['per_cpu_second']:,}",
        ]
        for one in found
    ]
    return f"## Parsing\n\nInto the relation `triple`, best run. Wanted: 300,000 per CPU second.\n\n{table(rows)}"


# --- UOBM --------------------------------------------------------------------------------------------------

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"


def measure_uobm(
    sizes: Sequence[tuple[int, int | None]], folder: Path, repeat: int, limit: float
) -> Iterator[dict[str, Any]]:
    """Evermat alone, on more and more universities."""
    for universities, departments in sizes:
        data = make(folder, "uobm", universities, departments)
        runs = []
        for repetition in range(repeat):
            one = run(PLAIN, data, folder, repetition, limit)
            tell(one)
            runs.append(one)
            if one.status != "ok" or (one.wall or 0.0) > LITTLE:
                break
        best = _best(runs, PLAIN.name)
        assert best is not None
        extra = best.phases.extra
        yield {
            "universities": universities,
            "triples_in": data.triples,
            "status": best.status,
            "triples_out": extra.get("triples"),
            "same": extra.get("facts", {}).get(SAME),
            "cpu": best.cpu,
            "wall": best.wall,
            "reason_cpu_s": best.phases.cpu.get("reason"),
            "peak_mb": best.peak_mb,
            "detail": best.detail,
        }
        data.file.unlink()


def render_uobm(found: Sequence[dict[str, Any]]) -> str:
    """Sizes and seconds."""
    rows = [["universities", "triples in", "triples out", "owl:sameAs", "CPU s", "reasoning", "wall s", "peak MB"]]
    for one in found:
        if one["status"] != "ok":
            rows.append([str(one["universities"]), f"{one['triples_in']:,}", one["status"], *[""] * 5])
            continue
        counts = [f"{one[what] or 0:,}" for what in ("triples_in", "triples_out", "same")]
        seconds = [f"{one[what]:.2f}" for what in ("cpu", "reason_cpu_s", "wall")]
        rows.append([str(one["universities"]), *counts, *seconds, f"{one['peak_mb']:.0f}"])
    about = (
        "Evermat alone, triples left in memory. Equal individuals have each other's triples. owlrl would take hours; reasonable 0.4.4 finds "
        "any two subjects of an inverse functional property equal, whatever their objects are."
    )
    return f"## UOBM\n\n{about}\n\n{table(rows)}"


# --- the command -------------------------------------------------------------------------------------------


def render(around: dict[str, Any], parts: dict[str, Any]) -> str:
    """All parts that there are."""
    text = ["# OWL 2 RL", preamble(around)]
    if "lubm" in parts:
        again = {one["data"]: one["again"] for one in parts.get("differences", ()) if one["again"] is not None}
        text.append(render_lubm(parts["lubm"], again))
    for part, show in (("differences", render_differences), ("parsing", render_parsing), ("uobm", render_uobm)):
        text += [show(parts[part])] if part in parts else []
    return "\n\n".join(text) + "\n"


def main() -> None:
    """Measures, saves, prints. Parts that are left out are taken from the results that are there."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default=",".join(PARTS))
    options.add_argument("--engines", default=",".join(peer.name for peer in OTHERS), help="which others to run")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--limit", type=float, default=1800.0, help="seconds for one run")
    options.add_argument("--work", type=Path, help="a folder for data and results in between")
    options.add_argument("--out", type=Path, default=RESULTS)
    chosen = options.parse_args()
    only, repeat = chosen.only.split(","), 1 if chosen.quick else chosen.repeat
    others = [peer for peer in OTHERS if peer.name in chosen.engines.split(",")]
    name = "owl-quick" if chosen.quick else "owl"
    around = environment((*TIMED, *OTHERS), f"python -m bench.owl {' '.join(sys.argv[1:])}".strip())
    file = chosen.out / f"{name}.json"
    parts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["parts"] if file.exists() else {}
    with tempfile.TemporaryDirectory(dir=chosen.work) as place:
        folder = Path(place)
        all_data = [make(folder, "lubm", *size) for size in ([(1, 1)] if chosen.quick else [(1,), (10,)])]
        tell(run(EXPORTED, all_data[0], folder, 0, chosen.limit))  # whatever is compiled once is compiled now
        if "lubm" in only:
            runs = measure_lubm(all_data, (*TIMED, *others), folder, repeat, chosen.limit)
            parts["lubm"] = [one.as_json() for one in runs]
        if "differences" in only:
            stopped = {(one["workload"], one["engine"]) for one in parts.get("lubm", ()) if one["status"] == "timeout"}
            compared = all_data if chosen.quick else [*all_data, make(folder, "uobm", 1, 1)]
            parts["differences"] = list(measure_differences(compared, others, folder, chosen.limit, stopped))
        if "parsing" in only:
            parts["parsing"] = list(measure_parsing(all_data[-1], folder, repeat))
        if "uobm" in only:
            sizes = [(2, 2)] if chosen.quick else [(1, None), (5, None), (20, None)]
            parts["uobm"] = list(measure_uobm(sizes, folder, repeat, chosen.limit))
    text = render(around, parts)
    save(chosen.out, name, around | {"parts": parts}, [], text)
    print(text)


if __name__ == "__main__":
    main()
