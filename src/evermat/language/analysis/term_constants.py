"""Constants that are written like RDF terms and are none: the grammar takes a few that no RDF file can have.

Only texts that users write are checked. States that were saved before this check existed are opened with such constants in
their programs, and what ontologies say is checked where these are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evermat.core import Problems
from evermat.core import error_catalogue as errors
from evermat.language.syntax.ast import Clause, Literal, Node, Statement
from evermat.language.term_syntax import TermFault, checked_terms, is_held


def check_terms(statements: Iterable[Statement], problems: Problems, begin: int = 0) -> None:
    """Reports the constants from a place in the text on that are not RDF terms."""
    doubtful = [
        literal
        for clause in statements
        if isinstance(clause, Clause) and clause.span.start >= begin
        for literal in _terms(clause)
        if not is_held(str(literal.value))
    ]
    for literal, found in zip(doubtful, checked_terms([str(literal.value) for literal in doubtful]), strict=True):
        if isinstance(found, TermFault):
            problems.add(errors.MALFORMED_TERM, literal.span, term=found.text, why=found.why)


def _terms(clause: Clause) -> Iterator[Literal]:
    """The constants of a clause that are written like terms; a string becomes a term whatever it says."""
    nodes: list[Node] = [*clause.heads] if clause.body is None else [*clause.heads, clause.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Literal) and node.kind == "term":
            yield node
        nodes += node.parts
