"""What is said about a token that cannot stand where it stands."""

from __future__ import annotations

import re
from functools import cache

from evermat.core import Problems, Source, Span, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.language.prefixes import declared_prefixes, prefix_hint
from evermat.language.syntax.lexer import CALLABLE, QUALIFIERS, REFUSED_DIRECTIVES
from evermat.language.syntax.parse_tables import lark_parser, lexer
from evermat.language.syntax.tokens import Token, Tokens, begins_directive
from evermat.language.syntax.tree_builder import span_of

_SHOWN = 40  # characters of an unexpected token that are shown
_IDENTIFIER = re.compile(r"[A-Za-z0-9_?]+")
_REFUSED_PUNCTUATION = {
    "[": ("records", "use one column for each field"),
    "{": ("algebraic data types", "use one relation for each constructor"),
    "$": ("algebraic data types and `$`", "use one relation for each constructor, and columns as keys"),
    "@": ("user-defined functors", "compute the value before it is read, or in rules"),
    "#": ("preprocessor directives", "put everything into one file"),
    "nil": ("records", "use one column for each field"),
    "choice": ("choice domains", "state the choice as an aggregate such as `min`"),
    "autoinc": ("counters with side effects", "number the facts before they are read"),
    "range": ("generators", "list the numbers in a relation, or derive them by `n + 1` with a bound"),
    "<=": ("subsumption rules", "use an aggregate such as `min` or `max`"),
}
_REFUSED_DIRECTIVE = {
    **dict.fromkeys((".comp", ".init", ".override"), ("components", "write the rules out")),
    ".functor": ("user-defined functors", "compute the value before it is read, or in rules"),
    **dict.fromkeys((".include", ".once"), ("included files", "put everything into one file")),
    ".lattice": ("lattices", "use an aggregate such as `min` or `max`"),
}
_READABLE = {
    "WORD": "a name",
    **dict.fromkeys(("NUMBER", "FLOAT"), "a number"),
    "STRING": "a string",
    "IRI": "an IRI",
    "PREFIXED": "a prefixed name",
    "BLANK": "a blank node",
    "PREFIX_NAME": "a prefix such as `ub:`",
    "COMPARISON": "a comparison",
    "FUNCTION": "a function",
    "QUALIFIER": "a qualifier",
    "$END": "the next statement",
}
_FUNCTIONS = [name for name, terminal in CALLABLE.items() if terminal == "FUNCTION"]
_FOREIGN = {  # how other languages write things: what is unexpected, and how it is written here
    "==": "equality is written `=`",
    "&&": "`,` stands for 'and'",
    "||": "`;` stands for 'or'",
    "<-": "a rule is written `head :- body.`",
    "not": "negation is written `!`",
    "'": "strings stand in double quotes",
}


def report(token: Token, accepted: set[str], tokens: Tokens, source: Source, problems: Problems) -> None:
    """Says what is wrong at a token that cannot stand where it stands."""
    text, last = token.value, tokens.last
    if tokens.read and last is not None and (token.type == "$END" or begins_directive(token)):
        end = last.end_pos
        problems.add(errors.UNEXPECTED_END, Span(end - 1, end), expected=_expected(accepted, tokens))
        return
    span = span_of(token)
    if token.type == "PROBLEM" and text.startswith("/*"):
        problems.add(errors.OPEN_COMMENT, Span(span.start, span.start + 2))
    elif token.type == "PROBLEM" and text.startswith('"'):
        problems.add(errors.OPEN_STRING, Span(span.start, span.start + len(text.rstrip())))
    elif text in REFUSED_DIRECTIVES:
        what, instead = _REFUSED_DIRECTIVE[text]
        problems.add(errors.REFUSED, span, what=what, name=text, instead=instead)
    elif token.type == "PROBLEM" and begins_directive(token):
        problems.add(errors.BAD_DIRECTIVE, span, did_you_mean(text, lexer().directives), name=text)
    elif refused := _refusal(token, tokens, source):
        (what, instead), name, place = refused
        problems.add(errors.REFUSED, place, what=what, name=name, instead=instead)
    elif token.type == "PROBLEM" and _is_word(text):
        known = ", ".join(f"`{name}`" for name in sorted(QUALIFIERS))
        problems.add(errors.BAD_QUALIFIER, span, did_you_mean(text, QUALIFIERS), name=text, known=known)
    elif token.type == "PROBLEM":
        hint = _FOREIGN.get(text, "")
        problems.add(errors.BAD_CHARACTER, Span(span.start, span.start + 1), hint, character=text[0])
    elif (prefix := _unknown_prefix(token, last, source)) is not None:
        hint = prefix_hint(prefix.value, declared_prefixes(source.text[: prefix.start_pos]))
        problems.add(errors.UNKNOWN_PREFIX, Span(prefix.start_pos, (prefix.end_pos) + 1), hint, name=prefix.value)
    elif token.type == "LPAR" and last is not None and last.type == "WORD" and "OPERATOR" in accepted:
        problems.add(errors.UNKNOWN_FUNCTION, span_of(last), did_you_mean(last.value, _FUNCTIONS), name=last.value)
    elif what := _reserved_for(token, accepted, tokens):
        problems.add(errors.RESERVED, span, name=text, what=what)
    else:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        hint = _hint(token, accepted, tokens, source)
        problems.add(errors.UNEXPECTED, span, hint, found=f"`{shown}`", expected=_expected(accepted, tokens))


def _is_word(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None


def _unknown_prefix(token: Token, last: Token | None, source: Source) -> Token | None:
    """The word before a colon that would be a prefix if it were declared."""
    if token.type == "COLON":
        return last if last is not None and last.type == "WORD" and last.end_pos == token.start_pos else None
    after_datatype = token.type == "WORD" and last is not None and last.type == "DATATYPE"
    return token if after_datatype and source.text.startswith(":", token.end_pos) else None


def _reserved_for(token: Token, accepted: set[str], tokens: Tokens) -> str:
    """What a reserved word was meant to name, if it was."""
    if not _is_word(token.value):
        return ""
    last = tokens.last.type if tokens.last is not None and tokens.read else ""
    if token.type in ("FUNCTION", "TEST", "AS") and last in ("", "DECL", "COMMA"):
        return "a relation"
    if token.type in _WORDS and last in ("", "DECL", "IO"):
        return "a relation"
    if token.type in _WORDS and last in ("TYPE", "OLD_TYPE"):
        return "a type"
    if token.type in _WORDS and last in ("LPAR", "COMMA") and "WORD" in accepted:
        return "a column or variable"
    return ""


_WORDS = frozenset(["TRUE", "FALSE", "COUNT", "SUM", "EXTREMUM", "OPERATOR", "UNARY"])


def _hint(token: Token, accepted: set[str], tokens: Tokens, source: Source) -> str:
    """How to write what other languages write otherwise, or where a dot is missing."""
    last, start = tokens.last, token.start_pos
    if last is not None and last.value in _FOREIGN:
        return _FOREIGN[last.value]
    for begin in (start, start - 1):
        if hint := _FOREIGN.get(source.text[begin : begin + 2]):
            return hint
    if last is not None and "DOT" in accepted and tokens.begins_line(indented=True):
        return f"is a `.` missing at the end of line {source.position(last.start_pos).line}?"
    return ""


def _refusal(token: Token, tokens: Tokens, source: Source) -> tuple[tuple[str, str], str, Span] | None:
    """What a token stands for in Soufflé, if that is something that is not supported; its name and place."""
    text, last, span = token.value, tokens.last, span_of(token)
    if token.type == "PROBLEM":
        name = text if text in _REFUSED_PUNCTUATION else text[0]
        if name in _REFUSED_PUNCTUATION:
            shown = name
            if name == "#":
                shown = text.split(None, 1)[0]
            elif name == "choice" and source.text.startswith("-domain", span.end):
                shown = "choice-domain"
            elif name in "@$" and (word := _IDENTIFIER.match(source.text, span.start + 1)):
                shown = name + word.group()
            return _REFUSED_PUNCTUATION[name], shown, Span(span.start, span.start + len(shown))
    if token.type == "LANGUAGE":
        return _REFUSED_PUNCTUATION["@"], text, span
    if text == "{" and last is not None and last.type == "WORD":
        return _REFUSED_PUNCTUATION["{"], last.value, span_of(last)
    if text == "<=" and last is not None and last.type == "RPAR":
        return _REFUSED_PUNCTUATION["<="], "<=", span
    if tokens.is_qualified and last is not None and (word := _IDENTIFIER.match(source.text, span.end)):
        return _REFUSED_DIRECTIVE[".comp"], f"{last.value}.{word.group()}", Span(last.start_pos, word.end())
    return None


def _expected(accepted: set[str], tokens: Tokens) -> str:
    """What could have come instead, in words."""
    accepted = set(accepted)
    names = []
    in_clause = not tokens.statement or not begins_directive(tokens.statement[0])
    if "DECL" in accepted:
        return "a fact, a rule or a directive"
    if accepted == {"COLON"}:
        return "`:` and the body of an aggregate, as in `n = count : { a(x) }`" if in_clause else "`:` and a type"
    if not in_clause and tokens.peek().type == "DOT" and "$END" in accepted:
        return "the next statement: a directive ends without a dot"
    if "MINUS" in accepted and "WORD" in accepted:  # an expression may begin here: do not list all ways
        accepted -= {"MINUS", "UNARY", "NUMBER", "FLOAT", "STRING", "IRI", "PREFIXED", "BLANK", "LPAR", "UNDERSCORE"}
        accepted -= {"FUNCTION", "EXTREMUM", "SUM", "COUNT", "AS", "WORD"}
        formula = {"NOT", "TRUE", "FALSE", "TEST"}
        names = ["an atom or a comparison" if formula <= accepted else "an expression"]
        accepted -= formula
    if accepted >= {"WORD", "IRI"}:
        accepted -= {"IRI", "PREFIXED", "BLANK"}
    if "COMPARISON" in accepted:
        accepted -= {"EQUAL"}
    if "OPERATOR" in accepted:
        accepted -= {"OPERATOR", "MINUS", "LANGUAGE", "DATATYPE"}
        names.append("an operator")
    names += sorted({_READABLE.get(name) or _quoted(name) for name in accepted})
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}" if names else "nothing more"


@cache
def _quoted(terminal: str) -> str:
    for definition in lark_parser().terminals:
        if definition.name == terminal and definition.pattern.type == "str":
            return f"`{definition.pattern.value}`"
    return f"`{terminal.lower()}`"
