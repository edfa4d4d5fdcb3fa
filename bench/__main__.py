"""The command line: ``python -m bench run`` and ``python -m bench scaling``."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from bench import scaling
from bench.engines import PEERS
from bench.environment import environment
from bench.harness import measure
from bench.model import Measurement, Peer
from bench.report import render, save
from bench.workloads import FULL, QUICK

QUICK_TIMEOUT = 60.0
FULL_TIMEOUT = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, save, print the tables. Exit code 1 if any engine answered wrongly or failed."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(given)
    command = shlex.join(["python", "-m", "bench", *given])
    timeout = options.timeout or (QUICK_TIMEOUT if options.quick else FULL_TIMEOUT)
    peers = options.engines if options.what == "run" else [scaling.variant()]
    around = environment(peers, command)
    for name, version in around["engines"].items():
        print(f"{name}: {version or 'absent'}", file=sys.stderr)
    sizes = scaling.workloads(options.quick) if options.what == "scaling" else []
    known = QUICK if options.quick else FULL
    chosen = [w for w, _ in sizes] or [known[name] for name in options.workloads]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.work) as work:
        measurements = measure(
            peers,
            chosen,
            work=Path(work),
            repeat=options.repeat,
            timeout=timeout,
            threads=options.threads,
            tell=tell,
        )
    if options.what == "run":
        name = "quick" if options.quick else "full"
        text = render(f"Benchmark, {name} sizes", around, measurements)
    else:
        name = scaling.default_name(options.quick)
        text = scaling.render_scaling(around, sizes, measurements)
    files = save(options.out, options.name or name, around, measurements, text)
    print(text)
    print("written:", *files, file=sys.stderr)
    return int(any(m.status in ("wrong", "failed") for m in measurements))


def parser() -> argparse.ArgumentParser:
    """The options; those that both commands share are declared once."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--quick", action="store_true", help="small sizes, a minute in all")
    shared.add_argument("--repeat", type=int, default=3, help="repetitions (3)")
    shared.add_argument("--timeout", type=float, help="seconds for one run (600; quick: 60)")
    shared.add_argument("--threads", type=int, default=1, help="threads for each engine (1)")
    shared.add_argument("--work", type=Path, help="folder for inputs and outputs (temporary)")
    shared.add_argument("--out", type=Path, default=scaling.RESULTS, help="folder of results")
    shared.add_argument("--name", help="name of the result files")
    top = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = top.add_subparsers(dest="what", required=True)
    run = commands.add_parser("run", parents=[shared], help="engines on workloads")
    run.add_argument("--workloads", type=workload_names, default=list(FULL), metavar="W1,W2")
    run.add_argument("--engines", type=peer_names, default=list(PEERS.values()), metavar="A,B")
    commands.add_parser("scaling", parents=[shared], help="time by derivations")
    return top


def peer_names(text: str) -> list[Peer]:
    """Engines from their names, separated by commas."""
    return [PEERS[name] for name in _names(text, PEERS)]


def workload_names(text: str) -> list[str]:
    """Names of workloads, separated by commas."""
    return _names(text.lower(), FULL)


def _names(text: str, known: Collection[str]) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"unknown: {name!r}; known: {', '.join(known)}")
    return names


def tell(m: Measurement) -> None:
    """One line of progress."""
    took = f"{m.cpu:.2f} s CPU, {m.peak_mb:.0f} MB" if m.cpu is not None else m.detail
    print(f"{m.workload} {m.engine} #{m.repetition + 1}: {m.status} {took}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
