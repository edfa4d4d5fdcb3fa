"""Attacks limits: work that would take minutes or gigabytes, cut by a time limit, a memory limit or a signal.

    python -m bench.limits [--source DIR] [NAME …]

prints, for each kind of work and each way to cut it, when the process ended, with which exit code and with which peak of memory.
"""

from __future__ import annotations

import argparse
import gzip
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PATIENCE = 60.0  # seconds after which a process counts as one that does not end
SECONDS = 2
MEMORY = 600 << 20
_EXITS = {"seconds": 4, "memory": 4, "interrupt": 130, "terminate": 143}


@dataclass(frozen=True)
class Work:
    """Work that takes too long or too much memory.

    Attributes:
        name: what it is called.
        prepare: writes its files to a directory and returns the arguments of `evermat`.
        cuts: the limits and signals that must end it.
    """

    name: str
    prepare: Callable[[Path], list[str]]
    cuts: tuple[str, ...] = ("seconds", "interrupt")


@dataclass(frozen=True)
class Outcome:
    """How a process ended: after how many seconds, with which exit code (None: it had to be killed), peak in bytes, and its last line."""

    seconds: float
    code: int | None
    peak: int
    told: str
    left: tuple[str, ...]


def cut(work: Work, how: str, folder: Path, *, source: Path | None = None, seconds: float = SECONDS) -> Outcome:
    """Runs the work in a folder and cuts it; with the package in `source`, if that is given."""
    arguments = work.prepare(folder)
    before = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    if how == "seconds":
        arguments += ["--limit-seconds", str(seconds)]
    elif how == "memory":
        arguments += ["--memory", str(MEMORY)]
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    # Shells have what runs in the background ignore Ctrl-C; this may run there.
    attend = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-m", "evermat", *arguments]
    with (folder / "stderr").open("wb") as told, (folder / "stdout").open("wb") as out:
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=told, preexec_fn=attend
        )
        killed = threading.Event()

        def kill() -> None:
            killed.set()
            process.kill()

        timers = [threading.Timer(PATIENCE, kill)]
        if how in ("interrupt", "terminate"):
            number = signal.SIGINT if how == "interrupt" else signal.SIGTERM
            timers.append(threading.Timer(seconds, partial(process.send_signal, number)))
        for timer in timers:
            timer.start()
        peak = 0
        while process.poll() is None:
            peak = max(peak, _peak_of(process.pid))
            time.sleep(0.01)
        ended = time.monotonic() - started
        for timer in timers:
            timer.cancel()
    text = (folder / "stderr").read_text(errors="replace")
    after = {str(path.relative_to(folder)) for path in folder.rglob("*")} - before - {"stdout", "stderr"}
    code = None if killed.is_set() else process.returncode
    return Outcome(ended, code, peak, text.strip()[-200:], tuple(sorted(after)))


def _peak_of(process: int) -> int:
    """The peak of a process that runs; what the system reports of one that has ended counts the process that started it, too."""
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def is_right(how: str, outcome: Outcome) -> bool:
    """Whether a process ended with the exit code of what cut it, and left nothing behind."""
    return outcome.code == _EXITS[how] and not outcome.left


# ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _run(rules: str, files: Callable[[Path], None] | None, folder: Path, *more: str) -> list[str]:
    (folder / "p.dl").write_text(rules)
    if files is not None:
        files(folder)
    return ["run", "p.dl", "--engine", "memory", "-F", str(folder), "-D", str(folder / "out"), *more]


def rules(name: str, text: str, files: Callable[[Path], None] | None = None, *cuts: str) -> Work:
    """Work that rules do."""
    return Work(name, lambda folder: _run(text, files, folder), cuts or ("seconds", "interrupt"))


def numbers(name: str, count: int) -> Callable[[Path], None]:
    """A relation of the numbers below `count`."""

    def write(folder: Path) -> None:
        (folder / f"{name}.facts").write_text("".join(f"{i}\n" for i in range(count)))

    return write


def both(*writers: Callable[[Path], None]) -> Callable[[Path], None]:
    """Several files."""

    def write(folder: Path) -> None:
        for writer in writers:
            writer(folder)

    return write


_AB = ".decl a(x:number)\n.input a\n.decl b(x:number)\n.input b\n.decl r(x:number)\n.output r\n"
_AB_FILES = both(numbers("a", 100_000), numbers("b", 100_000))


def _random_edges(nodes: int, edges: int, name: str = "e") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        state, lines = 1, []
        for _ in range(edges):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            lines.append(f"{(state >> 33) % nodes}\t{(state >> 13) % nodes}\n")
        (folder / f"{name}.facts").write_text("".join(lines))

    return write


def _chain(nodes: int, name: str = "e") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / f"{name}.facts").write_text("".join(f"{i}\t{i + 1}\n" for i in range(nodes)))

    return write


_EQUAL = """.decl k(x:term, y:number)
.input k
.decl l(x:term, y:term)
.output l
x = y :- k(x, n), k(y, n).
l(x, y) :- k(x, _), k(y, _).
"""


def _terms(count: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "k.facts").write_text("".join(f"<http://x.org/{i}>\t1\n" for i in range(count)))

    return write


_EDGES = ".decl e(x:number, y:number)\n.input e\n"
_PATHS = _EDGES + ".decl p(x:number, y:number)\n.output p\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"

RULES = [
    rules("count", _AB + "r(n) :- n = count : { a(x), b(y), x + y >= 0 }.\n", _AB_FILES),
    rules("sum of floats", _AB + "r(1) :- s = sum itof(x) * 0.1 + itof(y) : { a(x), b(y) }, s > 0.0.\n", _AB_FILES),
    rules("min of keys", _AB + "r(n) :- a(k), n = min (x * y) % 1000 + k : { a(x), b(y) }.\n", _AB_FILES),
    rules("cross product and filter", _AB + "r(x) :- a(x), b(y), x + y < 0 - 1.\n", _AB_FILES),
    rules("negation", _AB + ".decl c(x:number)\n" + "".join(f"c({i}).\n" for i in range(10)) + "r(x) :- a(x), b(y), !c((x + y) % 10).\n", _AB_FILES),
    rules("existence", _AB + ".decl c(x:number, y:number)\nc(99, 1).\nr(x) :- a(x), b(y), c((x + y) % 10, _).\n", _AB_FILES),
    rules("join of few", _AB + "r(x) :- a(x), b(y), a(z), z = x * y + 1000000.\n", _AB_FILES),
    rules("path of dense graph", _PATHS, _random_edges(30_000, 100_000)),
    rules("path of chain", _PATHS, _chain(100_000)),
    rules("same generation", _EDGES + ".decl s(x:number, y:number)\n.output s\ns(x, y) :- e(z, x), e(z, y).\ns(x, y) :- e(u, x), s(u, v), e(v, y).\n", _random_edges(20_000, 60_000), "seconds", "interrupt", "memory"),
    rules("rounds", ".decl n(x:number)\nn(0).\nn(x + 1) :- n(x), x < 1000000000000.\n.output n\n"),
    rules("to_string", _AB + ".decl t(x:symbol)\n.output t\nt(cat(to_string(x), to_string(y))) :- a(x), b(y).\n", _AB_FILES),
    rules("doubled text", '.decl t(x:symbol)\n.output t\nt("ab").\nt(cat(x, x)) :- t(x).\n', None, "memory"),
    rules("match", _AB + '.decl t(x:symbol)\nt(to_string(x)) :- a(x).\n.decl u(x:symbol, y:symbol)\n.output u\nu(x, y) :- t(x), t(y), match(cat(x, ".*z"), y).\n', _AB_FILES),
    rules("min of texts", _AB + '.decl t(x:symbol)\nt(cat("text ", to_string(x * 1000 + y))) :- a(x), b(y), y < 60.\n.decl u(x:symbol)\n.output u\nu(y) :- y = min x : { t(x) }.\n', _AB_FILES),
    rules("equivalence", '.decl s(x:number, y:number) eqrel\n.input s(filename="e.facts")\n.output s\n', _chain(30_000)),
    rules("equality", _EQUAL, _terms(3_000)),
]  # fmt: skip

# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_TEXTS = '.decl t(x:symbol)\n.input t{}\n.decl r(x:symbol)\n.output r\nr(x) :- t(x), x = "?".\n'
_PAIRS = ".decl t(x:number, y:number)\n.input t{}\n.decl r(x:number)\n.output r\nr(x) :- t(x, 7).\n"
_TRIPLES = ".decl t(s:term, p:term, o:term)\n.input t{}\n.decl r(x:term)\n.output r\nr(x) :- t(x, _, x).\n"


def repeated(name: str, first: bytes, piece: bytes, times: int, last: bytes = b"") -> Callable[[Path], None]:
    """A file of one piece again and again; compressed if its name says so."""

    def write(folder: Path) -> None:
        block, rest = max((1 << 20) // len(piece), 1), times
        with (folder / name).open("wb") as raw, ExitStack() as stack:
            file = stack.enter_context(gzip.open(raw, "wb", compresslevel=6)) if name.endswith(".gz") else raw
            file.write(first)
            while rest > 0:
                file.write(piece * min(block, rest))
                rest -= block
            file.write(last)

    return write


def reading(name: str, rules_: str, file: str, writer: Callable[[Path], None], *cuts: str) -> Work:
    """Work that reading one file does."""
    return Work(name, lambda folder: _run(rules_.format(f'(filename="{file}")'), writer, folder), cuts or ("memory",))


def _parquet(make: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        code = f"import pyarrow as pa, pyarrow.parquet as pq, numpy as np\n{make}"
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)

    return write


_SUBJECT = b"<http://x.org/s> <http://x.org/p> "
READING = [
    reading("gzip bomb of pairs", _PAIRS, "t.tsv.gz", repeated("t.tsv.gz", b"", b"1\t2\n", 250_000_000), "memory", "seconds", "interrupt", "terminate"),
    reading("gzip bomb of texts", _TEXTS, "t.tsv.gz", repeated("t.tsv.gz", b"", b"a" * 1000 + b"\n", 2_000_000), "memory", "seconds"),
    reading("long line", _TEXTS, "t.tsv", repeated("t.tsv", b"", b"a" * 1000, 300_000, b"\n")),
    reading("long line, compressed", _TEXTS, "t.tsv.gz", repeated("t.tsv.gz", b"", b"a" * 1000, 1_000_000, b"\n")),
    reading("long line of wide letters", _TEXTS, "t.tsv", repeated("t.tsv", b"", "😀".encode() * 250, 200_000, b"\n")),
    reading("long quoted value", _TEXTS.replace("t{}", "t{}").replace(".input t", ".input t"), "t.csv", repeated("t.csv", b'"', b"a\n" * 500, 300_000, b'"\n')),
    reading("JSON: long text", _TEXTS, "t.jsonl", repeated("t.jsonl", b'["', b"a" * 1000, 300_000, b'"]\n')),
    reading("JSON: huge array", _PAIRS, "t.jsonl", repeated("t.jsonl", b"[1", b",1", 40_000_000, b"]\n"), "memory", "seconds"),
    reading("JSON: many", _PAIRS, "t.jsonl.gz", repeated("t.jsonl.gz", b"", b"[1, 2]\n", 100_000_000), "seconds"),
    reading("Turtle: many", _TRIPLES, "t.ttl.gz", repeated("t.ttl.gz", b"", _SUBJECT + b'"a" .\n', 20_000_000), "seconds"),
    reading("N-Triples: long literal", _TRIPLES, "t.nt", repeated("t.nt", _SUBJECT + b'"', b"a" * 1000, 300_000, b'" .\n')),
    reading("N-Triples: many", _TRIPLES, "t.nt.gz", repeated("t.nt.gz", b"", _SUBJECT + b'"a" .\n', 50_000_000), "memory", "seconds", "interrupt"),
    reading("RDF/XML: long literal", _TRIPLES, "t.rdf", repeated("t.rdf", b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x.org/"><rdf:Description rdf:about="http://x.org/s"><x:p>', b"a" * 1000, 300_000, b"</x:p></rdf:Description></rdf:RDF>")),
    reading("Parquet: huge row group", _PAIRS, "t.parquet", _parquet("pq.write_table(pa.table({'x': np.zeros(100_000_000, np.int64), 'y': np.zeros(100_000_000, np.int64)}), 't.parquet', row_group_size=1 << 30)"), "memory", "seconds"),
    reading("Parquet: huge texts", _TEXTS, "t.parquet", _parquet("pq.write_table(pa.table({'x': pa.array(['a' * (1 << 20)] * 1500, pa.large_string())}), 't.parquet', use_dictionary=True)")),
]  # fmt: skip

# ── Writing, programs, states ────────────────────────────────────────────────────────────────────────────────────────


def _saved(folder: Path, rules_: str, files: Callable[[Path], None] | None) -> list[str]:
    """A state of a program."""
    arguments = _run(rules_, files, folder, "--state", "state")
    subprocess.run([sys.executable, "-m", "evermat", *arguments], cwd=folder, check=True, capture_output=True)
    return ["--state", "state"]


def _query(text: str, rules_: str, files: Callable[[Path], None] | None, *more: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["query", *_saved(folder, rules_, files), text, *more]


def _update(rules_: str, files: Callable[[Path], None] | None, change: str) -> Callable[[Path], list[str]]:
    def prepare(folder: Path) -> list[str]:
        arguments = _saved(folder, rules_, files)
        (folder / "c.tsv").write_text(change)
        return ["update", *arguments, "c.tsv"]

    return prepare


def _program(lines: Callable[[], Iterable[str]]) -> Callable[[Path], list[str]]:
    def prepare(folder: Path) -> list[str]:
        (folder / "p.dl").write_text("".join(lines()))
        return ["run", "p.dl", "--engine", "memory", "-D", "out"]

    return prepare


_LINKS = """.prefix x: <http://x.org/>
.input x:link(filename="e.facts")
x:link(a, c) :- x:link(a, b), x:link(b, c).
"""


def _links(nodes: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "e.facts").write_text("".join(f"<http://x.org/{i}>\t<http://x.org/{i + 1}>\n" for i in range(nodes)))

    return write


def _ontology(folder: Path) -> list[str]:
    lines = [
        "@prefix : <http://x.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    ]
    lines += [f":c{i} a owl:Class ; rdfs:subClassOf :c{i + 1}, [ a owl:Restriction ; owl:onProperty :p{i} ; owl:someValuesFrom :c{i} ] .\n" for i in range(200_000)]  # fmt: skip
    (folder / "o.ttl").write_text("".join(lines))
    return ["translate", "o.ttl", "-o", "out.dl"]


_STATE = _AB.replace(".output r\n", "") + ".decl go(x:number)\nr(x) :- go(_), a(x), b(y), x + y < 0 - 1.\n"
OTHERS = [
    Work("outputs", lambda f: _run(_PATHS, _chain(12_000), f)),
    Work("outputs, compressed", lambda f: _run(_PATHS.replace(".output p", '.output p(filename="p.tsv.gz")').replace("number", "symbol"), _chain(8_000), f)),
    Work("save", lambda f: _run(".decl e(x:number, y:number)\n.input e\n.decl q(x:number, y:number)\nq(x, y) :- e(x, _), e(y, _).\n", _chain(6_000), f, "--state", "state"), ("seconds",)),
    Work("query", _query("a(x), b(y), x + y < 0 - 1", _AB, _AB_FILES)),
    Work("query with a long answer", _query("a(x), b(y)", _AB, _AB_FILES)),
    Work("export", lambda f: ["export", *_saved(f, _LINKS, _links(8_000)), "out.nt"], ("seconds", "interrupt")),
    Work("update", _update(_STATE, _AB_FILES, "+\tgo\t1\n"), ("seconds", "interrupt", "terminate")),
    Work("long update", _update(_PATHS, _chain(1000), "".join(f"+\te\t{i}\t{i * 7919 % 100_003}\n" for i in range(100_000))), ("seconds", "interrupt")),
    Work("program of facts", _program(lambda: (f"a{i % 1000}({i}).\n" if i >= 1000 else f".decl a{i}(x:number)\n" for i in range(6_000_000)))),
    Work("program of rules", _program(lambda: [".decl a0(x:number)\na0(1).\n", *(f".decl a{i}(x:number)\na{i}(x) :- a{i - 1}(x), x < {i}.\n" for i in range(1, 60_000))])),
    Work("translate", _ontology),
]  # fmt: skip

ALL = [*RULES, *READING, *OTHERS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Cuts all kinds of work, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--source", type=Path, help="the package to attack, if it is another one")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the limit, and when signals are sent")
    given = parser.parse_args(arguments)
    for work in ALL:
        if given.names and work.name not in given.names:
            continue
        for how in work.cuts:
            with tempfile.TemporaryDirectory(prefix="limits-") as folder:
                outcome = cut(work, how, Path(folder), source=given.source, seconds=given.seconds)
            verdict = "ok " if is_right(how, outcome) else "BAD"
            print(
                f"{verdict} {work.name:28} {how:10} {outcome.seconds:6.1f} s  exit {outcome.code}  {outcome.peak >> 20:5} MB"
                f"  {outcome.told.splitlines()[-1][:90] if outcome.told else ''} {list(outcome.left) or ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
