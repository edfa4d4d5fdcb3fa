"""Files of changes: facts to insert and to delete, of any relations; one file is one update.

- Text: lines of a sign (`+` or `-`), the relation and its values, separated by tabs, otherwise as in the file of a
  relation (see `records`). The fact of a relation without columns has no values; `()` may stand for them.
- JSON lines: objects with `op`, `relation` and `values`, an array by position or an object by name.
- Parquet: a column `op`, and the columns of the relation; see `change_parquet`.
- RDF: the name says what becomes of the triples, and two files are one update; see `change_rdf`.

The last line about a fact counts: `+` and then `-` deletes it. So no fact is both inserted and deleted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.io.blocks import BLOCK, Block, blocks
from evermat.io.changes.jsonl import read_changed_jsonl
from evermat.io.changes.model import ChangedRows, Reader
from evermat.io.changes.parquet import read_changed_parquet
from evermat.io.changes.rdf import read_changed_rdf
from evermat.io.changes.text import read_changed_text
from evermat.io.error_report import Findings, FullError
from evermat.io.locate import Format, file_ref
from evermat.io.open import failing, open_text
from evermat.io.rdf.terms import AS_IT_IS, RdfOptions
from evermat.io.read import STDIN
from evermat.io.schema import nullary, table_of
from evermat.language.model import Program, Relation

Signs: TypeAlias = npt.NDArray[np.bool_]
_ROW = "'row"  # no name that a column can have


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Facts to insert and to delete, by relation; no relation without facts is in them, and no fact is in both."""

    insert: dict[str, pa.Table]
    delete: dict[str, pa.Table]

    def __bool__(self) -> bool:
        return bool(self.insert or self.delete)


def read_update(
    paths: Sequence[Path],
    program: Program,
    options: RdfOptions = AS_IT_IS,
    skipped: dict[str, int] | None = None,
) -> FileChanges:
    """The changes of one of the updates that `updates_of` finds: a file, or two of RDF.

    Args:
        paths: the files.
        program: whose relations change.
        options: how RDF is read; labels of blank nodes are always those of the state.
        skipped: is told how many malformed statements of which RDF file were left out, if the options ask for that.

    Raises:
        DataError: with everything that is wrong with the files.
    """
    if file_ref(paths[0]).format is not Format.RDF:
        (path,) = paths
        return read_changes(path, program)
    relations = _relations(program)
    return _resolved(read_changed_rdf(paths, relations, options, skipped), relations)


def read_changes(path: Path, program: Program, *, size: int = BLOCK) -> FileChanges:
    """The changes in a file, or with `-` the text on standard input.

    Everything that is wrong with the file is raised as one `DataError` with its positions.
    """
    relations = _relations(program)
    if str(path) == "-":
        text = blocks(sys.stdin.buffer, size=size)
        return _resolved(_read(text, relations, Findings(STDIN), read_changed_text), relations)
    ref = file_ref(path)
    if ref.format is Format.RDF:
        return read_update([path], program)
    with failing(path, "changes are"):
        if ref.format is Format.PARQUET:
            return _resolved(read_changed_parquet(path, relations), relations)
        reader = read_changed_jsonl if ref.format is Format.JSONL else read_changed_text
        with open_text(ref) as stream:
            found = _read(blocks(stream, size=size), relations, Findings(str(path)), reader)
    return _resolved(found, relations)


def _relations(program: Program) -> dict[str, Relation]:
    return {name: relation for name, relation in program.relations.items() if not relation.hidden}


def _read(
    text: Iterable[Block], relations: Mapping[str, Relation], findings: Findings, reader: Reader
) -> list[ChangedRows]:
    """The changes of all blocks, in their order."""
    found: list[ChangedRows] = []
    try:
        for block in text:
            part = list(reader(block, relations, findings))
            if not findings.problems:
                found += part
    except FullError:
        pass
    findings.raise_if_any()
    return found


def _resolved(found: Iterable[ChangedRows], relations: Mapping[str, Relation]) -> FileChanges:
    """What is left to do when all lines have had their say."""
    by_name: dict[str, list[ChangedRows]] = {}
    for part in found:
        by_name.setdefault(part.relation.name, []).append(part)
    changes = FileChanges({}, {})
    for name, relation in relations.items():
        if parts := by_name.get(name):
            signs = np.concatenate([part.signs for part in parts])
            table = table_of(relation, [part.table for part in parts])
            _resolve(table, signs, relation, changes)
    return changes


def _resolve(table: pa.Table, signs: Signs, relation: Relation, changes: FileChanges) -> None:
    """Adds the facts of one relation to what is inserted or deleted, each according to its last sign."""
    name = relation.name
    if not len(signs):
        return
    if not relation.columns:
        (changes.insert if signs[-1] else changes.delete)[name] = nullary(present=True)
    elif signs.all() or not signs.any():
        (changes.insert if signs[0] else changes.delete)[name] = table
    else:
        numbered = table.append_column(_ROW, pa.array(np.arange(len(signs))))
        grouped = numbered.group_by(table.column_names).aggregate([(_ROW, "max")])
        last = np.sort(grouped.column(f"{_ROW}_max").to_numpy())
        for chosen, rows in ((changes.insert, last[signs[last]]), (changes.delete, last[~signs[last]])):
            if len(rows):
                chosen[name] = table.take(pa.array(rows))
