"""What it costs to check that columns of terms contain terms: each way for facts to come in, with and without the check.

Once for triples whose terms repeat, as those of most data do, and once for triples whose terms all differ, even their properties.

    python -m bench.terms [--triples N] [--runs N] [--output FILE]

Seconds of CPU, the best of several runs, which take turns: other work on the machine then counts least. Without the check,
readers and engine take all texts as terms, which the benchmark brings about by replacing the functions that decide.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from evermat import Program
from evermat.columns import Dictionary, encode_rows
from evermat.language import Type

_DECLARED = ".decl t(s:term, p:term, o:term)\n"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def triples(count: int) -> list[tuple[str, str, str]]:
    """Triples with repeating subjects and properties; half of the objects are literals, of which most occur once."""
    chance = random.Random(1)
    names = [f"<http://example.org/people/{i}>" for i in range(max(count // 7, 1))]
    properties = [f"<http://xmlns.example.org/ns/foaf#p{i}>" for i in range(30)]

    def value() -> str:
        kind = chance.random()
        if kind < 0.5:
            return chance.choice(names)
        return (
            f'"name of {chance.randrange(10**6)}"@en' if kind < 0.75 else f'"{chance.randrange(5000)}"^^<{_XSD}integer>'
        )

    return [(chance.choice(names), chance.choice(properties), value()) for _ in range(count)]


def different_triples(count: int) -> list[tuple[str, str, str]]:
    """Triples of which no term occurs twice, of all kinds: two namespaces, a quarter of blank nodes, literals of four kinds."""

    def name(i: int) -> str:
        return f"_:b{i}" if i % 4 == 3 else f"<http://example.org/people/{i}>"

    def value(i: int) -> str:
        kinds = (f'"{i}"^^<{_XSD}integer>', f'"name of {i}"@en', f'"Straße {i}"', f'"{i}.5"^^<{_XSD}decimal>')
        return kinds[i // 2 % 4] if i % 2 else name(count + i)

    return [(name(i), f"<http://xmlns.example.org/ns/foaf#p{i}>", value(i)) for i in range(count)]


def write(rows: list[tuple[str, str, str]], folder: Path) -> None:
    (folder / "t.nt").write_text("".join(f"{s} {p} {o} .\n" for s, p, o in rows))
    (folder / "t.facts").write_text("".join("\t".join(row) + "\n" for row in rows))
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.table(dict(zip("spo", zip(*rows, strict=True), strict=True))), folder / "t.parquet")
    (folder / "c.tsv").write_text("".join("+\tt\t" + "\t".join(row) + "\n" for row in rows))


def work(rows: list[tuple[str, str, str]], folder: Path) -> dict[str, Callable[[], object]]:
    """How the facts come in, by name."""
    plain = Program.parse(_DECLARED)
    table = pq.read_table(folder / "t.parquet")
    found: dict[str, Callable[[], object]] = {}
    for name in ("t.nt", "t.facts", "t.jsonl", "t.parquet"):
        program = Program.parse(f'{_DECLARED}.input t(filename="{name}")')
        found[name.replace("t.", ".")] = lambda program=program: program.materialise(inputs=folder)
    found["Arrow"] = lambda: plain.materialise({"t": table})
    found["rows"] = lambda: plain.materialise({"t": rows})
    found["changes.tsv"] = lambda: list(plain.materialise().update_files([folder / "c.tsv"]))
    return found


@contextmanager
def unchecked() -> Iterator[None]:
    """Nothing is checked, and nothing is brought to another form."""
    from evermat.io import column_match
    from evermat.io.changes import read
    from evermat.io.formats import csv_fast, jsonl_reader
    from evermat.runtime.facts import ingest
    from evermat.runtime.rows import is_value

    def suits(rows: list[tuple[Any, ...]], relation: Any, dictionary: Dictionary) -> Any:
        types = [Type.SYMBOL if type_ is Type.TERM else type_ for type_ in relation.types]
        fits = all(len(row) == len(types) and all(map(is_value, row, types)) for row in rows)
        return encode_rows(rows, types, dictionary) if fits else None

    with ExitStack() as patched:
        patched.enter_context(patch.object(Dictionary, "as_terms", lambda _, ids: (ids, {})))
        for module in (csv_fast, jsonl_reader, column_match, read):
            patched.enter_context(patch.object(module, "checked_column", lambda column: (column, None)))
        patched.enter_context(patch.object(ingest, "_encoded_terms", suits))
        yield


def cpu(run: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    run()
    return time.process_time() - started


def measure(run: Callable[[], object], runs: int) -> tuple[float, float]:
    """The best time with and without the check."""
    run()
    with_check, without = [], []
    for _ in range(runs):
        with_check.append(cpu(run))
        with unchecked():
            without.append(cpu(run))
    return min(with_check), min(without)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        "# Checking terms",
        "",
        f"    python -m bench.terms --triples {options.triples} --runs {options.runs}",
        "",
        f"A materialisation of {options.triples:,} triples without rules, in seconds of CPU: the best of {options.runs} runs.",
        "The check of `.nt` is part of reading, and the same in both columns: their difference is that of the measurements.",
        "The machine has two cores, and was busy with other work.",
    ]
    for shape, make in (("Terms that repeat", triples), ("Terms that all differ", different_triples)):
        lines += [
            "",
            f"## {shape}",
            "",
            "| facts from | checked, s | not checked, s | more |",
            "| --- | ---: | ---: | ---: |",
        ]
        print(f"\n{shape}", flush=True)
        with tempfile.TemporaryDirectory() as name:
            rows = make(options.triples)
            write(rows, Path(name))
            for what, run in work(rows, Path(name)).items():
                checked, unchecked_ = measure(run, options.runs)
                lines.append(
                    f"| {what} | {checked:.2f} | {unchecked_:.2f} | {100 * (checked / unchecked_ - 1):+.0f} % |"
                )
                print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output is not None:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
