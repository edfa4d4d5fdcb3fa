"""Bad inputs on the command line: `python -m tests.fuzz.inputs COUNT [SEED] [FIRST]`, from the top folder of the checkout.

Each case (see `bad_inputs`) runs in a process of its own, forked from one that has everything loaded. Whatever it is: the command ends by itself,
within 20 seconds of CPU time and 1.5 GB of memory, with an exit code that says whose mistake it is, and without a traceback. What
fails is printed with its seed, and its files stay in `build/fuzz/`.
"""

from __future__ import annotations

import faulthandler
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from tests.fuzz.bad_inputs import Case, made

CPU_SECONDS = 20
WALL_SECONDS = 300  # on a machine that does other things, too
MEMORY = 1_500_000  # kilobytes
MAKE = (
    '.decl r(x:symbol, y:number)\nr("b", 2).\nr("a", 1).\n.decl d(x:symbol, y:number)\nd(x, y + 1) :- r(x, y).\n'
    ".decl t(x:term)\nt(<http://a>).\n.decl f(x:float, y:unsigned)\nf(1.5, 3).\n"
)
UNDERSTOOD = {0, 2, 3, 4, 5, 6}


class Outcome(NamedTuple):
    """How a command ended: its code, or minus its signal; what it said; seconds of CPU time, and kilobytes."""

    code: int
    said: str
    seconds: float
    memory: int


def child(arguments: list[str], stdin: bytes) -> NoReturn:
    """Runs a command in this process, which ends."""
    from evermat.cli.main import main

    code = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        read, write = os.pipe()
        if len(stdin) < 60_000:
            os.write(write, stdin)
            os.close(write)
            os.dup2(read, 0)
        else:
            Path("stdin").write_bytes(stdin)
            os.dup2(os.open("stdin", os.O_RDONLY), 0)
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"../{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        faulthandler.enable()
        sys.argv = ["evermat", *arguments]
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 71
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def run(arguments: list[str], stdin: bytes) -> Outcome:
    """Runs a command in a process of its own."""
    process = os.fork()
    if not process:
        child(arguments, stdin)
    end = time.monotonic() + WALL_SECONDS
    while True:
        done, status, used = os.wait4(process, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            end = float("inf")
        time.sleep(0.002)
    said = Path("../stderr").read_bytes().decode(errors="surrogateescape")
    return Outcome(os.waitstatus_to_exitcode(status), said, used.ru_utime + used.ru_stime, used.ru_maxrss)


def fault(arguments: list[str], outcome: Outcome) -> str:
    """What is wrong with how a command ended, or nothing."""
    if outcome.code not in UNDERSTOOD:
        where = re.findall(r'File ".*/(\w+\.py)", line (\d+)', outcome.said)
        return f"exit code {outcome.code} {':'.join(where[-1]) if where else ''}: {outcome.said[-200:].strip()}"
    if "Traceback" in outcome.said:
        return "traceback"
    if outcome.memory > MEMORY:
        return f"memory: {outcome.memory // 1000} MB"
    if outcome.seconds > CPU_SECONDS:
        return f"time: {outcome.seconds:.1f} s"
    usage = outcome.code == 2 and ("Error: " in outcome.said or not arguments)  # without arguments, the help is shown
    if outcome.code and "error[E" not in outcome.said and not usage:
        return f"no error: {outcome.said[:200]}"
    if outcome.code == 6 and "--" not in " ".join(arguments):
        return f"exit code 6: {outcome.said[:200]}"
    return ""


def prepared(folder: Path) -> Path:
    """A folder with a state of two versions. The commands that make it run in this process, so that everything is loaded when it forks."""
    from evermat.cli.main import main as evermat

    standard = [os.dup(stream) for stream in (1, 2)]
    for stream in (1, 2):
        os.dup2(os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    template = folder / "template"
    template.mkdir()
    os.chdir(template)
    Path("p.dl").write_text(MAKE)
    Path("c.txt").write_text("+\tr\tc\t3\n")
    Path("d.nt").write_text("<http://a> <http://www.w3.org/2002/07/owl#sameAs> <http://b> .\n")
    Path("q.dl").write_text('.decl r(x:symbol)\n.input r(filename="r.csv")\n.output r(filename="r.parquet")\n')
    Path("r.csv").write_text("a\n")
    for command in (
        ["run", "p.dl", "--state", "state"],
        ["update", "--state", "state", "c.txt"],
        ["query", "--state", "state", "r(x, y)"],
        ["export", "--state", "state", "out.nt"],
        ["run", "q.dl"],
        ["run", "--rdf", "d.nt", "--export", "out.rdf", "--entailment", "owl2rl"],
        ["translate", "d.nt"],
        ["check", "--ontology", "d.nt"],
        ["log", "--no-such"],
    ):
        sys.argv = ["evermat", *command]
        with suppress(SystemExit):
            evermat()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for path in template.iterdir():
        if path.name != "state":
            path.unlink()
    assert (template / "state").is_dir(), (folder / "said").read_text()
    for stream, copy in zip((1, 2), standard, strict=True):
        os.dup2(copy, stream)
        os.close(copy)
    return template


def attempt(seed: int, template: Path, folder: Path) -> tuple[Case, list[tuple[list[str], Outcome, str]]]:
    """One case: how its commands ended, and what is wrong about it."""
    shutil.rmtree(folder / "case", ignore_errors=True)
    (folder / "case").mkdir()
    os.chdir(folder / "case")
    case = made(seed, template)
    results = []
    for arguments in case.commands:
        outcome = run(arguments, case.stdin)
        results.append((arguments, outcome, fault(arguments, outcome)))
    return case, results


def main(count: int, seed: int, first: int = 0) -> int:
    """Tries some cases; returns the number of those that failed."""
    home = Path.cwd()
    os.environ["EVERMAT_ENGINE"] = "memory"
    kinds: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    failures, slowest, largest = 0, 0.0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        template = prepared(folder)
        for number in range(first, first + count):
            case, results = attempt(seed * 1_000_003 + number, template, folder)
            kinds[case.kind] += 1
            if kinds.total() % 500 == 0:
                print(f"{kinds.total()} cases", flush=True)
            for arguments, outcome, wrong in results:
                codes[outcome.code] += 1
                slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.memory)
                if wrong:
                    failures += 1
                    kept = home / "build" / "fuzz" / f"case-{seed}-{number}"
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(folder / "case", kept, symlinks=True)
                    print(f"seed {seed} case {number} ({case.kind}): {arguments!r:.300}: {wrong}", flush=True)
        os.chdir(home)
    told = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
    print(
        f"{count} cases, seed {seed}: {told}; exit codes {dict(sorted(codes.items()))}; {failures} failures;", end=" "
    )
    print(f"slowest {slowest:.1f} s, at most {largest // 1000} MB")
    return failures


if __name__ == "__main__":
    counted = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    sys.exit(1 if main(counted, chosen, int(sys.argv[3]) if len(sys.argv) > 3 else 0) else 0)
