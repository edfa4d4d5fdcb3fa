"""What the rule sets say of each datatype that they know: those of OWL 2 RL, and dates and durations."""

from __future__ import annotations

import re

from evermat.language import quote
from evermat.owl.literals.datatypes import DATATYPES, RECOGNISED, datatype_pattern
from evermat.owl.vocabulary import LITERAL, rdf, xsd

# That every element ends where it should is more than a pattern can say.
_XML = r'"(?:[^"\\<&]|\\.|&[#A-Za-z0-9]+;|<(?:[^"\\<>]|\\.)+>)*"\^\^' + re.escape(rdf("XMLLiteral"))


_NAMES = [LITERAL, rdf("PlainLiteral"), rdf("langString"), *DATATYPES]
SPELLINGS = {name: pattern for name in _NAMES if (pattern := datatype_pattern(name))}
"""The literals that have a value of a datatype, as a pattern, by datatype."""
assert len(SPELLINGS) == len(_NAMES)
SPELLINGS[rdf("XMLLiteral")] = _XML


def _own(datatype: str) -> str:
    """The literals that are said to be of a datatype, rightly or not."""
    if datatype == xsd("string"):
        return r'".*"'
    return r'".*"@.*' if datatype == rdf("langString") else rf'".*"\^\^{re.escape(datatype)}'


def datatype_rules(*, trivial: bool) -> str:
    """The facts and rules of each datatype, with those of trivial consequences if they are asked for.

    Patterns are constants of rules where literals are given, so that each is tried on all of them at once.
    """
    lines = [f"rl_spellings({name}, {quote(spellings)})." for name, spellings in SPELLINGS.items()]
    lines.append(f"rl_recognised({quote(RECOGNISED)}).")
    axiom = quote("dt-diff: two literals with different values are the same")
    lines.append(f"inconsistent({axiom}) :- owl:sameAs(v, w), v != w, different_values(v, w) = 1.")
    if trivial:
        axiom = quote("ill-typed: a literal is not spelled as its datatype asks for")
        for name, pattern in SPELLINGS.items():
            own, spellings = quote(_own(name)), quote(pattern)
            lines.append(f"rdf:type(v, {name}) :- rl_literal(v), match({spellings}, v).")
            lines.append(f"inconsistent({axiom}) :- rl_value(v), match({own}, v), !match({spellings}, v).")
    return "\n".join(lines) + "\n"
