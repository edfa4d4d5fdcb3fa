"""What readers ask about equal terms, of one version."""

from __future__ import annotations

from evermat.columns.equality.expansion import count_names
from evermat.columns.equality.renaming import FrozenRenaming
from evermat.columns.equality.rewritten_facts import TermSchema
from evermat.columns.state.views import View


class FrozenRepresentatives:
    """π of one version, and how many facts the facts of that version stand for; several threads may read it."""

    def __init__(self, schema: TermSchema, union_find: FrozenRenaming, counts: dict[str, int]) -> None:
        """Counts are those of all readers of the version, as far as any of them asked."""
        self.schema, self.union_find, self._counts = schema, union_find, counts

    def count(self, facts: View, name: str) -> int:
        """How many facts of a relation the facts of I in this version, a view, stand for."""
        columns = self.schema.columns.get(name)
        if columns is None:
            return facts.count(name)
        if (known := self._counts.get(name)) is not None:
            return known
        if self.union_find:
            table = facts.tables[name]
            lo, hi, truth, _ = facts.select(name)
            chunks = (table.take(rows) for rows in table.scan(truth, lo, hi))
            found = sum(int(count_names(chunk, columns, self.union_find).sum()) for chunk in chunks)
        else:
            found = facts.count(name)
        self._counts[name] = found
        return found
