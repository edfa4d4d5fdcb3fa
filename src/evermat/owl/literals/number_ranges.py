"""Numbers between two others, as patterns of their decimal spellings."""

from __future__ import annotations

from decimal import Decimal

_DIGIT = "[0-9]"
_NONZERO = r"(?:0*[1-9][0-9]*(?:\.[0-9]*)?|0*\.[0-9]*[1-9][0-9]*)"


def integers_between(low: int | None, high: int | None) -> str:
    """The whole numbers from `low` to `high`, both included, with any sign and zeros that say nothing; None is no bound."""
    if low is None and high is None:
        return "[+-]?[0-9]+"
    choices = []
    if low is None or low < 0:
        smallest = 1 if high is None or high >= 0 else -high
        choices.append(f"-0*{_naturals(smallest, None if low is None else -low)}")
    if (low is None or low <= 0) and (high is None or high >= 0):
        choices.append("[+-]?0+")
    if high is None or high > 0:
        smallest = 1 if low is None or low <= 0 else low
        choices.append(rf"\+?0*{_naturals(smallest, high)}")
    return _any(choices)


def _naturals(low: int, high: int | None) -> str:
    """The numbers from `low` to `high` without leading zeros; `low` is at least 1."""
    if low == 1 and high is None:
        return "[1-9][0-9]*"
    choices = []
    width = len(str(low))
    while high is None or width <= len(str(high)):
        if high is None and width > len(str(low)):
            choices.append(f"[1-9]{_times(width - 1)[:-1]},}}" if width > 2 else "[1-9][0-9]+")
            break
        first = str(low) if width == len(str(low)) else "1" + "0" * (width - 1)
        last = str(high) if high is not None and width == len(str(high)) else "9" * width
        choices.append(_same_width(first, last))
        width += 1
    return _any(choices)


def _same_width(first: str, last: str) -> str:
    """The texts of digits from `first` to `last`, which are equally long."""
    if first == last:
        return first
    if set(first) == {"0"} and set(last) == {"9"}:
        return _times(len(first))
    if first[0] == last[0]:
        return first[0] + _same_width(first[1:], last[1:])
    rest = len(first) - 1
    begin, end = int(first[0]), int(last[0])
    choices = []
    if rest and set(first[1:]) != {"0"}:
        choices.append(first[0] + _same_width(first[1:], "9" * rest))
        begin += 1
    tail = ""
    if rest and set(last[1:]) != {"9"}:
        tail = last[0] + _same_width("0" * rest, last[1:])
        end -= 1
    if begin <= end:
        digits = str(begin) if begin == end else _DIGIT if (begin, end) == (0, 9) else f"[{begin}-{end}]"
        choices.append(digits + (_times(rest) if rest else ""))
    return _any([*choices, tail] if tail else choices)


def between(low: Decimal | None = None, high: Decimal | None = None, *, open_: bool = False) -> str:
    """The decimal numbers from `low` on, or up to `high`; `open_` leaves the bound itself out."""
    bound = low if low is not None else high
    assert bound is not None
    upwards = low is not None
    zero = r"[+-]?(?:0+(?:\.0*)?|\.0+)"
    if bound == 0:
        away = rf"{_plus(upwards)}{_NONZERO}"
        return away if open_ else _any([zero, away])
    if (bound > 0) == upwards:  # away from zero
        return _plus(upwards) + _from(abs(bound), open_=open_)
    other = _plus(upwards) + _NONZERO
    return _any([other, zero, _plus(not upwards) + _up_to(abs(bound), open_=open_)])


def _plus(positive: bool) -> str:
    return r"\+?" if positive else "-"


def _parts(number: Decimal) -> tuple[int, str]:
    """The whole part, and the digits behind the point without the zeros at their end."""
    whole, _, fraction = f"{number:f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _from(number: Decimal, *, open_: bool) -> str:
    """What is not less than a number above zero, or greater."""
    whole, fraction = _parts(number)
    choices = [rf"0*{_naturals(whole + 1, None)}(?:\.[0-9]*)?"]
    front = f"0*{whole}" if whole else "0*"
    digits = [f"{fraction[:i]}{_above(digit)}[0-9]*" for i, digit in enumerate(fraction) if digit != "9"]
    digits.append(f"{fraction}[0-9]*[1-9][0-9]*" if open_ else f"{fraction}[0-9]*")
    if not fraction and not open_:
        choices.append(rf"{front}(?:\.[0-9]*)?")
    else:
        choices.append(rf"{front}\.{_any(digits)}")
    return _any(choices)


def _up_to(number: Decimal, *, open_: bool) -> str:
    """What is above zero and not greater than a number, or less."""
    whole, fraction = _parts(number)
    choices = []
    if whole > 1:
        choices.append(rf"0*{_naturals(1, whole - 1)}(?:\.[0-9]*)?")
    if whole:
        choices.append(r"0*\.[0-9]*[1-9][0-9]*")
    front = f"0*{whole}" if whole else "0*"
    digits = [f"{fraction[:i]}{_below(digit)}[0-9]*" for i, digit in enumerate(fraction) if digit != "0"]
    digits += [f"{fraction[:i]}0*" for i in range(1, len(fraction))]
    if not open_:
        digits.append(f"{fraction}0*")
    if whole and (fraction or not open_):
        choices.append(rf"{front}(?:\.0*)?")
    if fraction:
        choices.append(rf"{front}\.{_any(digits)}")
    return _any(choices)


def _above(digit: str) -> str:
    return "9" if digit == "8" else f"[{int(digit) + 1}-9]"


def _below(digit: str) -> str:
    return "0" if digit == "1" else f"[0-{int(digit) - 1}]"


def _times(count: int) -> str:
    return _DIGIT if count == 1 else f"{_DIGIT}{{{count}}}"


def _any(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
