"""Compiled queries by their text: compiling a small query takes longer than evaluating it, and applications ask the same ones again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.language.query import Query

#: what the compiled queries of one program may take together, and how many there may be
MOST_BYTES, MOST_QUERIES = 1 << 22, 1024
#: about so many bytes belong to a query, to a character of its text, and to a literal of its rules
_QUERY, _CHARACTER, _LITERAL = 2048, 64, 192


def bytes_of(text: str, query: Query) -> int:
    """About how many bytes a compiled query takes."""
    literals = sum(len(rule.literals) for rule in query.rules)
    return _QUERY + _CHARACTER * len(text) + _LITERAL * literals


class QueryCache:
    """The queries of one program that were asked last, for any threads.

    A compiled query depends on the program and on its text alone, and never changes; a program with other rules has a cache of its own. Texts
    with errors are not kept. The lock is reentrant for signal handlers, and is not held while a query is compiled.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_queries: int = MOST_QUERIES) -> None:
        self._most_bytes, self._most_queries = most_bytes, most_queries
        self._lock = RLock()
        self._queries: OrderedDict[str, tuple[Query, int]] = OrderedDict()  # those that were asked last come last
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def nbytes(self) -> int:
        """About how many bytes the queries take."""
        return self._bytes

    def get(self, text: str, compiled: Callable[[str], Query]) -> Query:
        """The query in a text: the one that was compiled before, or else a new one."""
        with self._lock:
            found = self._queries.get(text)
            if found is not None:
                self._queries.move_to_end(text)
                return found[0]
        query = compiled(text)
        size = bytes_of(text, query)
        if size > self._most_bytes:
            return query
        with self._lock:
            known, _ = self._queries.setdefault(text, (query, size))
            if known is query:  # no other thread was faster
                self._bytes += size
                while self._queries and (self._bytes > self._most_bytes or len(self._queries) > self._most_queries):
                    _, (_, dropped) = self._queries.popitem(last=False)
                    self._bytes -= dropped  # read after the call: a signal handler may ask meanwhile
        return known
