"""The prefixes that RDF files declare, as far as the beginning of a file shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from evermat.core import DataError, SandboxError, check_input
from evermat.io.locate import file_ref
from evermat.io.open import failing, open_text
from evermat.io.rdf.json_ld import context_prefixes
from evermat.io.rdf.read import sniff

_START = 1 << 16  # bytes in which prefixes are looked for
_TURTLE = re.compile(r"(?:^|\.|(?<=>))\s*@?prefix\s+([\w.-]*):\s*<([^<>]*)>", re.IGNORECASE | re.MULTILINE)
_XML = re.compile(r"""\bxmlns(?::([\w.-]+))?\s*=\s*["']([^"']*)["']""")
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+["']([^"']*)["']\s*>""")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")


def prefixes_in(start: bytes, syntax: str) -> list[tuple[str, str]]:
    """The prefixes that stand in the beginning of a text, in their order, with what they abbreviate."""
    text = start[:_START].decode(errors="replace")
    if syntax == "jsonld":
        return context_prefixes(text)
    if syntax in ("ttl", "trig"):
        return _TURTLE.findall(text)
    if syntax != "rdf":
        return []
    entities = dict(_ENTITY.findall(text))
    return [(name, re.sub(r"&([\w.-]+);", lambda m: entities.get(m[1], m[0]), iri)) for name, iri in _XML.findall(text)]


def common_prefixes(paths: Iterable[Path]) -> dict[str, str]:
    """The prefixes of some files that a program can use; one that stands for several namespaces is left out.

    A file that cannot be read has none: reading its triples reports the error.
    """
    found: dict[str, set[str]] = {}
    for path in paths:
        ref = file_ref(path)
        if not ref.is_rdf or ref.syntax in ("nt", "nq"):
            continue
        with suppress(DataError, SandboxError), failing(path, "prefixes are"):
            check_input(path)
            if not path.is_file():  # what is read of a pipe is gone
                continue
            with open_text(ref) as text:
                start = text.read(_START)
            for name, namespace in prefixes_in(start, sniff(start, path.name)):
                if _NAME.fullmatch(name) and _NAMESPACE.fullmatch(namespace):
                    found.setdefault(name, set()).add(namespace)
    return {name: next(iter(namespaces)) for name, namespaces in found.items() if len(namespaces) == 1}
