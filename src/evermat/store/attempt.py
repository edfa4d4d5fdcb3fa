"""Names of what a writer makes in a bucket, where several may write at a time: no two of them use the same (see `intent`)."""

from __future__ import annotations

import os
import re

_NAMED = re.compile(r"-w(\d+)x[0-9a-f]{8}\b")
_TABLE = re.compile(r"-v(\d+)")


def new_attempt(number: int) -> str:
    """The name of an attempt to write an entry of the commit table."""
    return f"w{number}x{os.urandom(4).hex()}"


def attempt_of(name: str) -> int | None:
    """The number of the entry that the writer of a file aimed at; None if the file is not one of an attempt."""
    found = _NAMED.search(name)
    return None if found is None else int(found.group(1))


def table_name(folder: str, version: int) -> str:
    """The folder of a table that begins with a version: no table after it has the same."""
    return folder if version == 1 else f"{folder}-v{version}"


def born(folder: str) -> int:
    """The version with which the table in a folder began, or a later one."""
    found = _TABLE.fullmatch(folder, folder.rfind("-v"))
    return 1 if found is None else int(found.group(1))
