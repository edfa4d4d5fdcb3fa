"""RDF files of changes: `x.add.nt` inserts its triples, `x.del.nt` deletes them; both together are one update.

Any format of RDF will do. Blank nodes are called as in the state, so their labels are kept; one without a label is new, and
called after the content of the file, so that the same file says the same twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import collected_errors, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.io.changes.model import ChangedRows
from evermat.io.error_report import Findings, Skipped, fail, shown
from evermat.io.formats.registry import RdfOptions, UpdateFiles
from evermat.io.locate import FileRef, file_ref
from evermat.io.open import failing, open_text
from evermat.io.rdf.read import read_rdf
from evermat.io.rdf.router import Router
from evermat.io.rdf.terms import Numbered, Prefixed, Quads, is_blank, triples_table
from evermat.language import RDF_TYPE

_SIGNS = {".add": True, ".del": False}


class RdfChange(NamedTuple):
    """What the name of an RDF file of changes says."""

    ref: FileRef
    stem: Path  # the same for both files of a pair
    insert: bool


def rdf_change(path: Path) -> RdfChange | None:
    """What the name of a file says, if it is one of RDF and of changes."""
    ref = file_ref(path)
    if not ref.is_rdf:
        return None
    name = Path(path.name)
    stem = Path(name.stem).stem if ref.gzip else name.stem
    insert = _SIGNS.get(Path(stem).suffix.lower())
    return None if insert is None else RdfChange(ref, path.with_name(stem[: -len(".add")]), insert)


def updates_of(paths: Iterable[Path]) -> list[list[Path]]:
    """The updates that files of changes are: each of them one, but `x.add.nt` and `x.del.nt` side by side are one."""
    updates: list[list[Path]] = []
    for path in paths:
        change = rdf_change(path)
        before = rdf_change(updates[-1][0]) if updates and len(updates[-1]) == 1 else None
        if change and before and (change.stem, change.insert) == (before.stem, not before.insert):
            updates[-1].append(path)
        else:
            updates.append([path])
    return updates


def read_changed_rdf(update: UpdateFiles) -> list[ChangedRows]:
    """What the RDF files of an update change, deletions first: an insertion counts.

    Raises:
        DataError: with everything that is wrong with the files, or with triples that the program has no relation for.
    """
    router = Router.of(update.relations)
    found: dict[bool, list[ChangedRows]] = {False: [], True: []}
    with collected_errors() as collecting:
        for path in update.paths:
            change = rdf_change(path)
            if change is None:
                raise fail(errors.CHANGE_NAME, path=path)
            with collecting():
                facts, nowhere = router.route(_read(change, update.options, update.skipped))
                _refuse(nowhere, router, str(path))
                for name, table in facts.items():
                    signs = np.full(table.num_rows, change.insert)
                    found[change.insert].append(ChangedRows(update.relations[name], table, signs))
    return found[False] + found[True]


def _read(change: RdfChange, options: RdfOptions, skipped: dict[str, int] | None) -> pa.Table:
    path = change.ref.path
    with failing(path, "changes are"), open_text(change.ref) as text:
        findings = Skipped(str(path)) if options.skip else Findings(str(path))
        quads = _labelled(text, change, options, findings)
    if skipped is not None and findings.count:
        skipped[str(path)] = findings.count
    return triples_table(quads)


def _labelled(text: BinaryIO, change: RdfChange, options: RdfOptions, findings: Findings) -> list[Quads]:
    """The triples, blank nodes with the labels of the file."""
    path = change.ref.path

    def read(told: Findings) -> list[Quads]:
        return read_rdf(text, path.name, options, told, lambda quads: quads, lambda: Prefixed(""))

    quads = read(findings)
    if change.ref.format.block_reader or not (labels := _labels(quads)):
        return quads
    text.seek(0)
    unlabelled = labels - _labels(read(type(findings)(str(path))))  # pyoxigraph gives those other names each time
    if not unlabelled:
        return quads
    if not change.insert:
        raise fail(errors.CHANGE_UNLABELLED, path=path)
    text.seek(0)
    digest = hashlib.sha256(text.read()).hexdigest()[:12]
    fresh = Numbered(f"u{digest}_", unlabelled)
    return [fresh.rename(part) for part in quads]


def _labels(quads: Iterable[Quads]) -> set[str]:
    return {
        label
        for part in quads
        for column in (part.s, part.o)
        for label in column.dictionary.filter(pa.array(is_blank(column.dictionary))).to_pylist()
    }


def _refuse(nowhere: pa.Table, router: Router, path: str) -> None:
    """Raises an error that names the classes and properties of triples that no relation takes."""
    if not nowhere.num_rows:
        return
    findings = Findings(path)
    typed = pc.equal(nowhere.column("p").cast(pa.string()), RDF_TYPE)
    classes = pc.unique(nowhere.column("o").filter(typed).cast(pa.string())).to_pylist()
    properties = pc.unique(nowhere.column("p").filter(pc.invert(typed)).cast(pa.string())).to_pylist()
    with findings:
        for kind, names, known in (("class", classes, router.classes), ("property", properties, router.properties)):
            for name in names:
                findings.whole(errors.CHANGE_NOWHERE, did_you_mean(name, known), what=f"the {kind} {shown(name)}")
