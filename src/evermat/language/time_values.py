"""Dates, times and durations of XML Schema as values.

Two times are of one value if all that they say is the same, the distance to UTC too: XML Schema calls noon in Berlin and eleven
o'clock UTC equal, but not identical, and OWL asks whether values are identical.
"""

from __future__ import annotations

import re

_YEAR = "(?P<year>-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_MONTH, _DAY = "(?P<month>0[1-9]|1[0-2])", "(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = (
    r"(?P<time>(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]|24:00:00(?=(?:\.0+)?(?:[Z+-]|\Z)))(?:\.(?P<fraction>[0-9]+))?"
)
_ZONE = "(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))"
_FORMS = {
    "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}?",
    "dateTimeStamp": f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}",
    "date": f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}?",
    "time": f"{_TIME}{_ZONE}?",
    "gYear": f"{_YEAR}{_ZONE}?",
    "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}?",
    "gMonth": f"--{_MONTH}{_ZONE}?",
    "gMonthDay": f"--{_MONTH}-{_DAY}{_ZONE}?",
    "gDay": f"---{_DAY}{_ZONE}?",
}
_TIMES = {kind: re.compile(form, re.ASCII) for kind, form in _FORMS.items()}
TIME_KINDS = frozenset(_TIMES)
_DURATION = re.compile(
    r"(?P<sign>-?)P(?=.)(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)(?:\.(?P<fraction>[0-9]+))?S)?)?",
    re.ASCII,
)
_OTHERS = {  # the parts that durations of these datatypes do not have
    "duration": "",
    "yearMonthDuration": "DT",
    "dayTimeDuration": "Y",
}
DURATION_KINDS = frozenset(_OTHERS)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_YEAR = 4  # stands for the year of a day that has none


def time_value(text: str, kind: str) -> str | None:
    """The spelling of a date or a time that has no zeros at its end, midnight at the beginning of a day, and Z for UTC."""
    found = _TIMES[kind].fullmatch(text)
    if found is None:
        return None
    part = found.groupdict()
    year = int(part["year"]) if part.get("year") else _LEAP_YEAR
    month, day = int(part.get("month") or 1), int(part.get("day") or 1)
    if day > _days(year, month):
        return None
    time = part.get("time") or ""
    if time.startswith("24"):
        time = "00:00:00"
        year, month, day = _next_day(year, month, day)
    fraction = (part.get("fraction") or "").rstrip("0")
    dated = "-".join(
        [
            ("-" * (year < 0) + f"{abs(year):04d}") if "year" in part else "-",
            *([f"{month:02d}"] if "month" in part else [""] if "day" in part else []),
            *([f"{day:02d}"] if "day" in part else []),
        ]
    )
    clock = f"{time}.{fraction}" if fraction else time
    zone = part["zone"] or ""
    zone = "Z" if zone.endswith("00:00") else zone
    if kind == "time":
        return clock + zone
    return f"{dated}T{clock}{zone}" if clock else dated + zone


def _days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 28 if month == 2 and not leap else _DAYS[month - 1]


def _next_day(year: int, month: int, day: int) -> tuple[int, int, int]:
    if day < _days(year, month):
        return year, month, day + 1
    return (year, month + 1, 1) if month < len(_DAYS) else (year + 1, 1, 1)


def duration_value(text: str, kind: str) -> str | None:
    """The spelling of a duration in months and seconds alone."""
    found = _DURATION.fullmatch(text)
    if found is None or any(part in text for part in _OTHERS[kind]) or (kind == "dayTimeDuration" and found["months"]):
        return None
    months = 12 * int(found["years"] or 0) + int(found["months"] or 0)
    hours = 24 * int(found["days"] or 0) + int(found["hours"] or 0)
    seconds = 3600 * hours + 60 * int(found["minutes"] or 0) + int(found["seconds"] or 0)
    fraction = (found["fraction"] or "").rstrip("0")
    sign = found["sign"] if months or seconds or fraction else ""
    clock = f"T{seconds}.{fraction}S" if fraction else f"T{seconds}S" if seconds or not months else ""
    return f"{sign}P{f'{months}M' if months else ''}{clock}"
