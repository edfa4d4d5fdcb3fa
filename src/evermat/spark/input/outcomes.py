"""What becomes of the outcomes of tasks that read inputs: checked, and with their problems where they are in whole files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evermat.core import Problem, ResourceError, Source
from evermat.core import error_catalogue as errors
from evermat.io import merge_findings, relocate
from evermat.spark.input.read_task import Outcome
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import is_seen, no_exchange
from evermat.store import location_of


def succeeded(rows: Iterable[Any], scratch: Scratch) -> list[Outcome]:
    """The outcomes that rows hold; raises a `ResourceError` if one could not be written, or not where the driver sees it."""
    outcomes = [Outcome.of(row) for row in rows]
    for outcome in outcomes:
        if outcome.failure:
            raise no_exchange(outcome.file, outcome.failure)
        if not outcome.problems and not all(is_seen(location_of(file)) for file in outcome.files):
            raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": scratch.path}))
    return outcomes


def located(outcomes: Sequence[Outcome]) -> list[Problem]:
    """The problems of one input, with their line numbers in the whole files."""
    by_file: dict[str, list[list[Problem]]] = {}
    lines: dict[str, int] = {}
    for outcome in outcomes:
        before = lines.get(outcome.path, 0)
        lines[outcome.path] = before + outcome.lines
        by_file.setdefault(outcome.path, []).append([relocate(problem, before) for problem in outcome.problems])
    return [problem for path, pieces in by_file.items() for problem in merge_findings(path, pieces)]


def renamed(problem: Problem, shown: Mapping[str, str]) -> Problem:
    """The same problem with the name that the user has for its file."""
    source = problem.source
    if source is not None and source.name in shown:
        source = Source(shown[source.name], source.text, source.first_line)
    details = {key: shown.get(str(value), value) for key, value in problem.details.items()}
    return replace(problem, details=details, source=source)
