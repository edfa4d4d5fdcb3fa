"""`--sandbox`: what a command may read and write, by what its command line names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evermat.core import check_input, check_output, sandboxed, wrong_argument

#: what commands without `-F` and `-D` read, and write: the names of parameters in Python
_READ = ("changes", "source")
_WRITTEN = ("output", "changes_out", "stats", "file")


@contextmanager
def sandbox_of(given: Mapping[str, Any]) -> Iterator[None]:
    """The sandbox of a command with these parameters. A state is no part of it: programs name no file in it, and it checks its own files.

    Raises:
        SandboxError: the command line itself names a file that lies elsewhere.
        ArgumentError: the engine cannot keep what a sandbox promises.
    """
    if given.get("engine") == "spark" or given.get("master") is not None:
        raise wrong_argument(
            "`--sandbox` needs `--engine memory`: Spark opens network connections, and its tasks read any file"
        )
    if "rdf" not in given:
        beside = [Path(path).parent for path in _paths(given.get("ontology"))]  # where imports are looked for
        reads = [*_paths(*map(given.get, _READ)), *beside]
        named = _paths(*map(given.get, _WRITTEN))
        homes = [Path(os.path.realpath(path)).parent for path in named]  # files are written beside what they replace
        with sandboxed(reads, [*named, *homes]):
            yield
        return
    with sandboxed([given["facts"]], [given["output"]]):
        for path in _paths(given["rdf"], given["ontology"]):
            check_input(path)
        for path in _paths(given["export"], given["stats"]):
            check_output(path)
        yield


def _paths(*given: str | Path | Iterable[Path] | None) -> list[str | Path]:
    """What some parameters name; standard input and output are no files."""
    paths: list[str | Path] = []
    for one in given:
        paths += [] if one is None else [one] if isinstance(one, str | Path) else one
    return [path for path in paths if str(path) not in ("-", "/dev/stdout")]
