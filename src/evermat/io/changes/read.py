"""Files of changes: facts to insert and to delete, of any relations; one file is one update.

- Text: lines of a sign (`+` or `-`), the relation and its values, separated by tabs, otherwise as in the file of a
  relation (see `csv_exact`). The fact of a relation without columns has no values; `()` may stand for them.
- JSON lines: objects with `op`, `relation` and `values`, an array by position or an object by name.
- Parquet: a column `op`, and the columns of the relation; see `parquet`.
- RDF: the name says what becomes of the triples, and two files are one update; see `rdf`.

The last line about a fact counts: `+` and then `-` deletes it. So no fact is both inserted and deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.core import DataError, check_stop, standard_input
from evermat.io.blocks import BLOCK, blocks
from evermat.io.changes.model import ChangedRows, read_block_changes
from evermat.io.changes.text import read_block
from evermat.io.error_report import Findings
from evermat.io.formats.registry import AS_IT_IS, RdfOptions, UpdateFiles
from evermat.io.locate import file_ref
from evermat.io.open import failing
from evermat.io.read import STDIN
from evermat.io.schema import nullary, table_of
from evermat.io.term_columns import checked_column
from evermat.language import Program, Relation, RelationNames, Type, relation_names

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
    *,
    size: int = BLOCK,
) -> FileChanges:
    """The changes of one of the updates that `updates_of` finds: a file, two of RDF, or with `-` the text on standard input.

    Labels of blank nodes are always those of the state, whatever the options are. `skipped` is told how many malformed
    statements of which RDF file were left out, if the options ask for that.

    Raises:
        DataError: with everything that is wrong with the files.
    """
    relations = relation_names(program)
    if str(paths[0]) == "-":
        with failing(Path(STDIN), "changes are"):
            text = blocks(standard_input(), size=size)
            return _changes(read_block_changes(text, relations, Findings(STDIN), read_block), relations)
    update = UpdateFiles(paths, relations, options, skipped, size)
    read = file_ref(paths[0]).format.read_changes
    if _checked_late(update):
        with suppress(
            DataError, _WrongTermError
        ):  # then the file is read again, to find where everything is that is wrong
            return _changes(read(update._replace(checks_terms=False)), relations, check_terms=True)
    return _changes(read(update), relations)


class _WrongTermError(Exception):
    """A text of a column of terms is none."""


def _checked_late(update: UpdateFiles) -> bool:
    """Whether terms are checked when all of a file is read, each once: if it can be read again to find where one stands that is none."""
    if not any(Type.TERM in relation.types for relation in update.relations.values()):
        return False
    return all((path.is_file() or path.is_dir()) and not file_ref(path).is_rdf for path in update.paths)


def _changes(found: Iterable[ChangedRows], relations: RelationNames, *, check_terms: bool = False) -> FileChanges:
    """What the changes of a file, in their order, come to."""
    by_name: dict[str, list[ChangedRows]] = {}
    for part in found:
        by_name.setdefault(part.relation.name, []).append(part)
    changes = FileChanges({}, {})
    for name, relation in relations.items():
        if parts := by_name.get(name):
            signs = np.concatenate([part.signs for part in parts])
            table = table_of(relation, [part.table for part in parts])
            _resolve(_with_terms(table, relation) if check_terms else table, signs, relation, changes)
    return changes


def _with_terms(table: pa.Table, relation: Relation) -> pa.Table:
    """The facts with terms in their one form, so that different signs of one fact meet; raises an error if a text is none."""
    for position, column in enumerate(relation.columns):
        if column.type is Type.TERM:
            check_stop()
            terms, wrong = checked_column(table.column(position))
            if wrong is not None:
                raise _WrongTermError
            table = table.set_column(position, table.schema.field(position), terms)
    return table


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
