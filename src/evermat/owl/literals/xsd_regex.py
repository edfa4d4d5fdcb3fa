r"""Regular expressions of XML Schema as ones of RE2 that match the same texts as they stand in N-Triples.

There `"`, `\` and control characters are two characters or more: what matches one of them in the one syntax must match
its escape sequence in the other. Left out are names of XML (`\i`, `\c`), differences of classes (`[a-z-[aeiou]]`) and
blocks (`\p{IsGreek}`).
"""

from __future__ import annotations

import re

_SHORT = {"\n": r"\\n", "\t": r"\\t", "\r": r"\\r", '"': r"\\" + '"', "\\": r"\\\\"}
_CONTROLS = r"\\u00[0-9A-F]{2}|\\[bf]"
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_QUANTIFIER = re.compile(r"[*+?]|\{(?P<low>[0-9]{1,3})(?P<to>,(?P<high>[0-9]{0,3}))?\}")
_CATEGORY = re.compile(r"\\(?P<sign>[pP])\{(?P<name>[A-Z][a-z]?)\}")
_PLAIN_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"} | {c: c for c in "\\|.?*+(){}-[]^$,/\"'"}
# What a class of characters has in it: a part of a class in RE2, and the characters that are written as escape sequences.
_CLASSES = {
    "d": (r"\p{Nd}", frozenset[str]()),
    "s": (" ", frozenset("\t\n\r")),
    "w": (r"\p{L}\p{M}\p{N}\p{S}", frozenset[str]()),
}
_ESCAPED = frozenset('\n\t\r"\\')


class UnreadableError(ValueError):
    """The pattern is not one of XML Schema, or has no counterpart."""


def translated(pattern: str) -> str:
    """The pattern as one of RE2 over the escaped text, in parentheses."""
    found, at = _choice(pattern, 0)
    if at != len(pattern):
        raise UnreadableError(pattern)
    return found


def _choice(pattern: str, at: int, depth: int = 0) -> tuple[str, int]:
    """Alternatives, up to the end or to a closing parenthesis."""
    if depth > 50:
        raise UnreadableError(pattern)
    pieces = ["(?:"]
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            pieces.append("|")
            at += 1
            continue
        if pattern[at] == "(":
            atom, at = _choice(pattern, at + 1, depth + 1)
            if not pattern.startswith(")", at):
                raise UnreadableError(pattern)
            at += 1
        else:
            atom, at = _atom(pattern, at)
        pieces.append(atom)
        if quantifier := _QUANTIFIER.match(pattern, at):
            pieces.append(quantifier.group())
            at = quantifier.end()
    return "".join(pieces) + ")", at


def _atom(pattern: str, at: int) -> tuple[str, int]:
    """One character, or one of several; what it gives can be repeated."""
    character = pattern[at]
    if character == "[":
        return _class(pattern, at + 1)
    if character == ".":
        return _complement("", frozenset("\n\r")), at + 1
    if character == "\\":
        found, at = _escape(pattern, at)
        if isinstance(found, str):
            return _literal(found), at
        inside, escaped, negated = found
        return (_complement if negated else _set)(inside, escaped), at
    if character in "*+?{}])":
        raise UnreadableError(pattern)
    return _literal(character), at + 1


def _escape(pattern: str, at: int) -> tuple[str | tuple[str, frozenset[str], bool], int]:
    """The character that an escape sequence stands for, or the class: its parts, and whether it is the complement."""
    code = pattern[at + 1 : at + 2]
    if code in _PLAIN_ESCAPES and code:
        return _PLAIN_ESCAPES[code], at + 2
    if code and code.lower() in _CLASSES:
        return (*_CLASSES[code.lower()], code.isupper()), at + 2
    category = _CATEGORY.match(pattern, at)
    if category is None or category["name"][0] in "CP":  # those have characters in them that are escaped
        raise UnreadableError(pattern)
    escaped = frozenset[str]()
    return (rf"\p{{{category['name']}}}", escaped, category["sign"] == "P"), category.end()


def _class(pattern: str, at: int) -> tuple[str, int]:
    """A class in brackets, from after the opening one."""
    negated = pattern.startswith("^", at)
    at += negated
    inside: list[str] = []
    escaped: set[str] = set()
    begin = at
    while not pattern.startswith("]", at) or at == begin:
        if at >= len(pattern) or pattern[at] == "[":
            raise UnreadableError(pattern)
        first, at = _escape(pattern, at) if pattern[at] == "\\" else (pattern[at], at + 1)
        if not isinstance(first, str):
            if first[2]:
                raise UnreadableError(pattern)
            inside.append(first[0])
            escaped |= first[1]
            continue
        last = first
        if pattern.startswith("-", at) and not pattern.startswith(("-]", "-["), at):
            found, at = (
                _escape(pattern, at + 1) if pattern[at + 1 : at + 2] == "\\" else (pattern[at + 1 : at + 2], at + 2)
            )
            if not isinstance(found, str) or not found or found < first:
                raise UnreadableError(pattern)
            last = found
        elif pattern.startswith("-[", at):
            raise UnreadableError(pattern)
        escaped |= {c for c in _ESCAPED if first <= c <= last}
        if first < " " or "\x7f" in (first, last):
            if first != last:
                raise UnreadableError(pattern)
        else:
            inside.append(_span(first, last))
    return (_complement if negated else _set)("".join(inside), frozenset(escaped)), at + 1


def _span(first: str, last: str) -> str:
    """The characters from one to another, but for those that are always written as escape sequences."""
    for escaped in '"\\':
        if first <= escaped <= last:
            before, after = chr(ord(escaped) - 1), chr(ord(escaped) + 1)
            return f"{_span(first, before)}{_span(after, last)}"
    if first > last:
        return ""
    return _point(first) if first == last else f"{_point(first)}-{_point(last)}"


def _point(character: str) -> str:
    return rf"\x{{{ord(character):X}}}" if not character.isalnum() else character


def _literal(character: str) -> str:
    if character in _SHORT:
        return f"(?:{_SHORT[character]})"
    if not character.isprintable() and character != " ":
        raise UnreadableError(character)
    return _META.sub(r"\\\g<0>", character)


def _set(inside: str, escaped: frozenset[str]) -> str:
    """The characters of a class; those that are written as escape sequences stand beside it."""
    choices = [_SHORT[c] for c in sorted(escaped)]
    if inside:
        choices.insert(0, f"[{inside}]")
    return f"(?:{'|'.join(choices)})"


def _complement(inside: str, escaped: frozenset[str]) -> str:
    others = rf'[^"\\{inside}]'
    return "|".join([f"(?:{others}", *(_SHORT[c] for c in sorted(_ESCAPED - escaped)), f"{_CONTROLS})"])
