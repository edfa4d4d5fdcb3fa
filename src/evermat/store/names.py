"""Names on disk: those of a relation's folder and columns, and a query that selects facts by them.

Relation names may be anything; the names on disk can neither leave the state directory nor clash on a file system
that ignores case. The same names in the same order always give the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ORIGIN, NONRECURSIVE, RECURSIVE, OP, VERSION = "_origin", "_nonrecursive", "_recursive", "_op", "_version"
OWN_COLUMNS = (ORIGIN, NONRECURSIVE, RECURSIVE, OP, VERSION)

CURRENT_FACTS = """
SELECT * EXCLUDE (_op, _version)
FROM {relation}
WHERE _version <= (SELECT max(version) FROM {commits})
QUALIFY row_number() OVER (PARTITION BY {columns} ORDER BY _version DESC) = 1 AND _op <> '-'
"""
"""The current facts of a relation with at least one column, in SQL as DuckDB and Spark (`EXCEPT`) write it.

Rows of a version that is not yet committed, or never was, are left out by the comparison with `commits`. To see all
relations in the same version while a writer is at work, open each table at the Delta version that the newest row pins.
"""

_LONGEST = 80


def column_names(names: Sequence[str]) -> list[str]:
    """The stored names of fact columns: distinct ignoring case, also from the store's own.

    Spaces and punctuation, which Parquet readers disagree about, become underscores.

    >>> column_names(["x", "X", "_op", "a b"])
    ['x', 'X_2', '_op_2', 'a_b']
    """
    taken = {name.lower() for name in OWN_COLUMNS}
    # A name that needs no change is kept, whatever precedes it.
    plain = [re.sub(r"\W", "_", name) or "column" for name in names]
    reserved = {name.lower() for name in plain}
    found = []
    for name in plain:
        candidate, number = name, 1
        while candidate.lower() in taken or (number > 1 and candidate.lower() in reserved):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        found.append(candidate)
    return found


def folder_name(relation: str, taken: Iterable[str]) -> str:
    """A folder for the relation: ASCII, at most 80 characters, not among `taken` even ignoring case.

    The end of a long name is kept, because that is where IRIs differ.

    >>> folder_name("http://example.org/onto#Edge", ["HTTP_example_org_onto_edge"])
    'http_example_org_onto_Edge-2'
    """
    lower = {name.lower() for name in taken}
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", relation)[-_LONGEST:].lstrip("_-") or "relation"
    candidate, number = plain, 1
    while candidate.lower() in lower:
        number += 1
        suffix = f"-{number}"
        candidate = plain[: _LONGEST - len(suffix)] + suffix
    return candidate
