"""Cases in files: a program, its facts, and what must come out.

`cases/AREA/NAME.dl` has its inputs in `NAME/facts/` and everything that a run writes in `NAME/expected/`; what goes to
standard output is there as `stdout.txt`. Binary formats stand there as text: `r.parquet.jsonl` is turned into
`r.parquet` before a run and `r.csv.gz.txt` into `r.csv.gz`, and outputs are turned back.
"""

from __future__ import annotations

import gzip
import json
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.language.builtins import Type, parse_float
from evermat.language.model import Program, Relation

CASES = Path(__file__).parents[1] / "api" / "cases"


def cases() -> list[Path]:
    """All programs with expected results."""
    return sorted(CASES.glob("*/*.dl"))


def name_of(path: Path) -> str:
    return path.relative_to(CASES).with_suffix("").as_posix()


def pack(source: Path, target: Path) -> None:
    """Copies a folder of facts; texts that stand for binary files become such files."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir() if source.exists() else ():
        if path.name.endswith(".parquet.jsonl"):
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            pq.write_table(pa.Table.from_pylist(rows), target / path.name.removesuffix(".jsonl"))
        elif path.name.endswith(".gz.txt"):
            (target / path.name.removesuffix(".txt")).write_bytes(gzip.compress(path.read_bytes()))
        else:
            shutil.copy(path, target)


def unpack(folder: Path) -> dict[str, str]:
    """The texts of all files of a folder by name; binary files as texts."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            continue
        if path.suffix == ".parquet":
            rows = pq.read_table(path).to_pylist()
            found[f"{name}.jsonl"] = "".join(json.dumps(row, ensure_ascii=False, default=_plain) + "\n" for row in rows)
        elif path.suffix == ".gz":
            found[f"{name}.txt"] = gzip.decompress(path.read_bytes()).decode()
        else:
            found[name] = path.read_bytes().decode()
    return found


def _plain(value: object) -> object:
    assert isinstance(value, Decimal)
    return int(value)


def expected_rows(folder: Path, program: Program) -> dict[str, set[tuple]]:
    """The facts in those of the expected files that are plain text, by relation."""
    found = {}
    for io in program.outputs:
        plain = io.path is None and io.medium == "file" and io.delimiter == "\t" and not io.headers and not io.rfc4180
        if plain:
            text = (folder / f"{io.relation.name}.csv").read_bytes().decode()
            lines = text.removesuffix("\n").split("\n") if text else []
            found[io.relation.name] = {_row(line, io.relation) for line in lines}
    return found


def _row(line: str, relation: Relation) -> tuple:
    if not relation.columns:
        assert line == "()"
        return ()
    fields = line.split("\t")
    return tuple(_value(field, type_) for field, type_ in zip(fields, relation.types, strict=True))


def _value(text: str, type_: Type) -> object:
    if type_ is Type.FLOAT:
        return parse_float(text)
    return int(text) if type_ in (Type.NUMBER, Type.UNSIGNED) else text
