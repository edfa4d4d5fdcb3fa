"""A kernel that finds plain RDF terms among texts, in one pass over their bytes.

It accepts a text only if `evermat.language.is_held` does, and nearly every one that it does; about the others that function decides.
Where texts are alike, most of their bytes are looked at eight at a time: the beginning of an IRI, up to its path, and the datatype of a
literal are compared with the last ones that were looked at.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.kernels.jit import compiled, load_word


def _bits(text: str, first: int) -> np.uint64:
    """Which of 64 characters occur."""
    return np.uint64(sum(1 << (ord(c) - first) for c in set(text) if first <= ord(c) < first + 64))


def _all(byte: int) -> np.uint64:
    """Eight times the same byte."""
    return np.uint64(byte * 0x0101010101010101)


_ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LETTERS = _ALNUM + "-._~!$&'()*+,;=:@"
_LOW, _HIGH = _bits(_LETTERS, 0), _bits(_LETTERS, 64)
_ALNUM_LOW, _ALNUM_HIGH = _bits(_ALNUM, 0), _bits(_ALNUM, 64)

_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_CASE = _all(0x20)
_TOP = _all(0x80)
_REST = _all(0x7F)
_FILL = _all(ord("a"))
# What is added to a byte below 128 to set its highest bit: from this character on, and from the one after this.
_FROM_AMP, _AFTER_SEMICOLON = _all(0x80 - ord("&")), _all(0x7F - ord(";"))
_FROM_A, _AFTER_Z = _all(0x80 - ord("a")), _all(0x7F - ord("z"))
_UNDERSCORES, _HASHES, _QUOTES, _BACKSLASHES, _BRACKETS = (_all(ord(c)) for c in '_#"\\<')
_ONES = _all(1)

_LT, _GT, _QUOTE, _COLON, _SLASH, _HASH, _PERCENT, _QUESTION, _BACKSLASH, _DASH, _DOT, _UNDERSCORE, _AT, _CARET = (
    np.uint8(ord(c)) for c in '<>":/#%?\\-._@^'
)

_DELETE = np.uint8(0x7F)
_ESCAPED = tuple(np.uint8(ord(c)) for c in 'tbnrf"\\')  # what follows a backslash


@compiled()
def _last_word(data, at, end):
    """The bytes before `end`, at most seven, and letters after them; there are eight bytes before `end`."""
    kept = np.uint64(8 * (end - at))
    return (load_word(data, end - 8) >> (np.uint64(64) - kept)) | (_FILL << kept)


@compiled()
def _same(data, one, other, length):
    """Whether two pieces of at least eight bytes are equal."""
    at = 0
    while at + 8 <= length:
        if load_word(data, one + at) != load_word(data, other + at):
            return False
        at += 8
    return at == length or load_word(data, one + length - 8) == load_word(data, other + length - 8)


@compiled()
def _among(low, high, byte):
    """Whether a byte below 128 is one of some characters."""
    number = np.uint64(byte)
    return ((low if number < np.uint64(64) else high) >> (number & np.uint64(63))) & _ONE != _ZERO


@compiled()
def _is_alnum(byte):
    return byte < 128 and _among(_ALNUM_LOW, _ALNUM_HIGH, byte)


@compiled()
def _is_letter(byte):
    """Whether a byte may belong to an IRI wherever one of its letters may: the first of U+00C0 … U+DFFF, and what follows it, too."""
    if byte < 128:
        return _among(_LOW, _HIGH, byte)
    return byte < 0xC0 or 0xC3 <= byte < 0xEE


@compiled()
def _is_hex(byte):
    return 48 <= byte < 58 or 97 <= byte | 32 < 103


@compiled()
def _path_word(word):
    """The highest bit of each byte that a path surely may have, or `#`, and of each that is `#`; both are 0 beyond ASCII."""
    if word & _TOP:
        return _ZERO, _ZERO
    small = word | _CASE
    marks = (word + _FROM_AMP) & ~(word + _AFTER_SEMICOLON)
    letters = (small + _FROM_A) & ~(small + _AFTER_Z)
    hashes = ~((word ^ _HASHES) + _REST)
    return (marks | letters | hashes | ~((word ^ _UNDERSCORES) + _REST)) & _TOP, hashes & _TOP


@compiled()
def _is_path(data, at, end, begin):
    """Whether a path, a query and a fragment follow in data[at:end], perhaps none of them; they belong to a text that begins at `begin`."""
    hashes = 0
    while at + 8 <= end or (at < end and end - 8 >= begin):
        good, found = _path_word(load_word(data, at) if at + 8 <= end else _last_word(data, at, end))
        if good != _TOP:
            break
        if found != _ZERO:
            hashes += 1 if found & (found - _ONE) == _ZERO else 2
        at += 8
    while at < end:
        byte = data[at]
        at += 1
        if byte == _HASH:
            hashes += 1
        elif byte == _PERCENT:
            if end - at < 2 or not _is_hex(data[at]) or not _is_hex(data[at + 1]):
                return False
            at += 2
        elif not (byte in (_SLASH, _QUESTION) or _is_letter(byte)):
            return False
    return hashes < 2


@compiled()
def _after_head(data, at, end):
    """Where the path of an IRI in data[at:end] begins, which has no brackets, or what takes its place; -1 if there is none."""
    if at >= end or not 97 <= data[at] | 32 < 123:
        return -1
    at += 1
    while at < end and (_is_alnum(data[at]) or data[at] == 43 or data[at] == _DASH or data[at] == _DOT):
        at += 1
    if at >= end or data[at] != _COLON:
        return -1
    at += 1
    if end - at < 2 or data[at] != _SLASH or data[at + 1] != _SLASH:
        return at + 1 if at < end and _is_letter(data[at]) else -1
    at += 2
    first = at
    while at < end and (_is_alnum(data[at]) or data[at] == _DASH or data[at] == _DOT):
        at += 1
    if at == first:
        return -1
    if at < end and data[at] == _COLON:
        at += 1
        first = at
        while at < end and 48 <= data[at] < 58:
            at += 1
        if at == first:
            return -1
    return at if at == end or data[at] == _SLASH or data[at] == _QUESTION or data[at] == _HASH else -1


@compiled()
def _is_text(data, at, end, begin):
    """Whether data[at:end] may stand between quotes; it belongs to a text that begins at `begin`."""
    while at + 8 <= end or (at < end and end - 8 >= begin):
        word = load_word(data, at) if at + 8 <= end else _last_word(data, at, end)
        quotes, slashes, deleted = word ^ _QUOTES, word ^ _BACKSLASHES, word ^ _REST
        bad = (word - _CASE) & ~word
        bad |= (quotes - _ONES) & ~quotes
        bad |= (slashes - _ONES) & ~slashes
        bad |= (deleted - _ONES) & ~deleted
        if bad & _TOP:
            break
        at += 8
    while at < end:
        byte = data[at]
        at += 1
        if byte == _BACKSLASH:
            if at == end:
                return False
            byte = data[at]
            at += 1
            if byte not in _ESCAPED:
                return False
        elif byte < 32 or byte in (_QUOTE, _DELETE):
            return False
    return True


@compiled()
def _small_letters(data, first, end):
    """How many letters from a to z stand before `end`, at most four; `first` is the first byte that is looked at."""
    at = end
    while at > first and end - at < 4 and 97 <= data[at - 1] < 123:
        at -= 1
    return end - at


@compiled()
def _before_language(data, begin, end):
    """Where the closing quote of a text with a language stands, -1 if there is none."""
    at = end - _small_letters(data, begin, end)
    if at > begin and data[at - 1] == _DASH:
        if end - at != 2:
            return -1
        end = at - 1
        at = end - _small_letters(data, begin, end)
    if not 2 <= end - at <= 3 or at - begin < 2 or data[at - 1] != _AT or data[at - 2] != _QUOTE:
        return -1
    return at - 2


@compiled()
def _before_datatype(data, begin, end):
    """Where the closing quote of a text with a datatype stands, -1 if there is none, or a datatype that ends as xsd:string does."""
    at = end - 2
    while at - 8 >= begin:
        brackets = load_word(data, at - 7) ^ _BRACKETS
        if (brackets - _ONES) & ~brackets & _TOP:
            break
        at -= 8
    while at > begin and data[at] != _LT:
        at -= 1
    if at - begin < 4 or data[at - 1] != _CARET or data[at - 2] != _CARET or data[at - 3] != _QUOTE:
        return -1
    head = _after_head(data, at + 1, end - 1)
    if head < 0 or not _is_path(data, head, end - 1, begin):
        return -1
    # …tring>
    if data[end - 2] == 103 and data[end - 3] == 110 and data[end - 4] == 105 and data[end - 5] == 114:
        return -1
    return at - 3


@compiled()
def _is_blank(data, begin, end):
    if end - begin < 3 or data[begin + 1] != _COLON or data[begin + 2] == _DASH:
        return False
    for at in range(begin + 2, end):  # noqa: SIM110  (numba has no generators)
        if not (_is_alnum(data[at]) or data[at] == _UNDERSCORE or data[at] == _DASH):
            return False
    return True


_TEXTS = "Array(u1, 1, 'C', readonly=True), Array({}, 1, 'C', readonly=True), i8, i8, b1[::1]"


@compiled(_TEXTS.format("i4"), _TEXTS.format("i8"), steps="start:n")
def find_terms(data, offsets, start, n, accepted):
    """Marks plain terms among the texts start … n that are not marked yet; returns how many are left.

    Text i is `data[offsets[i]:offsets[i + 1]]`, in UTF-8.
    """
    left = 0
    # The beginning of an IRI and the end of a literal that are known to be good: where, and how long they are.
    head, head_length = np.int64(0), np.int64(0)
    tail, tail_length = np.int64(0), np.int64(0)
    for i in range(start, n):
        if accepted[i]:
            continue
        begin, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        good = False
        if end - begin < 3:
            good = end - begin == 2 and data[begin] == _QUOTE and data[begin + 1] == _QUOTE
        elif data[begin] == _LT and data[end - 1] == _GT:
            if head_length and end - begin > head_length and _same(data, begin, head, head_length):
                path = begin + head_length
            else:
                path = _after_head(data, begin + 1, end - 1)
                # without the slash, another letter could follow that does not belong there
                length = path + 1 - begin
                if path >= 0 and path < end - 1 and data[path] == _SLASH and length >= 8:
                    head, head_length = begin, length
            good = path >= 0 and _is_path(data, path, end - 1, begin)
        elif data[begin] == _QUOTE:
            last = data[end - 1]
            if last == _QUOTE:
                quote = end - 1
            elif last != _GT:
                quote = _before_language(data, begin, end)
            elif tail_length and end - begin > tail_length and _same(data, end - tail_length, tail, tail_length):
                quote = end - tail_length
            else:
                quote = _before_datatype(data, begin, end)
                if quote >= 0 and end - quote >= 8:
                    tail, tail_length = quote, end - quote
            good = quote > begin and _is_text(data, begin + 1, quote, begin)
        elif data[begin] == _UNDERSCORE:
            good = _is_blank(data, begin, end)
        if good:
            accepted[i] = True
        else:
            left += 1
    return left
