"""Locations that callers name: paths of this machine, which may be written as `file:` URIs, and URIs of other places.

A URI is never taken for a path: that would make a folder called `s3:`, and lose what is written there.
"""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from evermat.core.arguments import check_type
from evermat.core.error_catalogue import BAD_LOCATION
from evermat.core.errors import ArgumentError, Problem

# One slash is enough, because `Path` removes the other one; a single letter before it is no scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/|([^/]*)://", re.DOTALL)
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?!//))(/.*)", re.IGNORECASE | re.DOTALL)
_USER = re.compile(r"^([^:/]+:/+)(?:[^/@]*|[^/@:]*:[^@]*)@")  # keys of AWS may have slashes

_LOCAL = "give a path, or a URI such as `file:///folder`"


def scheme_of(name: str | PathLike[str]) -> str | None:
    """The scheme of a URI, in lower case; None for a path."""
    found = _SCHEME.match(os.fspath(name))
    return None if found is None else (found.group(1) or found.group(2)).lower()


def local_path(what: str, name: str, value: Any, rule: str = _LOCAL) -> Path:
    """The path of this machine that an argument names; `what` is to be there, `rule` is a sentence about where it may be.

    Raises:
        ArgumentError: it is a URI, and not one of a file of this machine.
        TypeError: it is no path.
    """
    check_type(name, value, (str, PathLike), "a path")
    text = os.fspath(value)
    scheme = scheme_of(text)
    if scheme is None:
        return Path(value)
    if scheme != "file":
        raise bad_location(what, text, f"the scheme `{scheme}` is not supported", rule)
    found = _FILE.fullmatch(text)
    if found is None:
        raise bad_location(what, text, "it names another machine", rule)
    path = unquote(found.group(1))
    if "\0" in path:
        raise bad_location(what, text, "it is not the URI of a file", rule)
    return Path("/" + path.lstrip("/"))


def bad_location(what: str, uri: str, why: str, rule: str) -> ArgumentError:
    """The error for a URI where something cannot be."""
    return ArgumentError(Problem(BAD_LOCATION, {"what": what, "uri": without_secrets(uri), "why": why, "rule": rule}))


def without_secrets(uri: str) -> str:
    """A URI without what may be a password, a key or a signature in it."""
    return _USER.sub(r"\1…@", uri).partition("?")[0]
