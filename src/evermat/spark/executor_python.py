"""Failures of the Python that runs tasks: it is missing, of another version, or lacks packages."""

from __future__ import annotations

import re
from typing import Any

from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors

_SETTING = "spark.pyspark.python"
_REMEDY = "docs/deployment.md has a recipe for executors"
_LATER = 200  # characters of a reason

# What Java says of a program that it cannot start, in the stack trace of what starts Python for tasks.
_NOT_STARTED = re.compile(
    r'Cannot run program "([^"\n]+)"(?: \([^\n]*?\))?: (?:error=\d+, )?(?:Exec failed, error: )?([^\n]+)'
)
_STARTS_PYTHON = "PythonWorkerFactory"
_SAID = re.compile(r"Error from python worker:\s*\n((?:[ \t]*\S[^\n]*\n)+?)\s*(?:PYTHONPATH was|\n|$)")
_VERSIONS = re.compile(
    r"PYTHON_VERSION_MISMATCH\][^\n]*?worker[^\n]*?version:? (\d+\.\d+)[^\n]*?driver:? (\d+\.\d+)", re.IGNORECASE
)
_NO_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): ([^\n]+)")
_CONTROL = re.compile(r"\s*(?:SQLSTATE: \w+)?\s*$")


def executor_python(spark: Any) -> str:
    """The Python that tasks of a session run with, as far as the driver knows."""
    context = getattr(type(spark), "sparkContext", None)
    if context is not None and not type(spark).__module__.startswith("pyspark.sql.connect"):
        return str(spark.sparkContext.pythonExec)
    return str(spark.conf.get(_SETTING, None) or "the Python of the server")


def python_failure(text: str, python: str) -> ResourceError | None:
    """The error for a job whose exceptions have this text, if the reason is the Python of its tasks.

    >>> print(python_failure('at PythonWorkerFactory Caused by: java.io.IOException: Cannot run program "/no": error=2, No such file', "/no"))
    error[E626]: tasks cannot run with the Python `/no`: No such file
      = note: `PYSPARK_PYTHON` or `--conf spark.pyspark.python=…` names the Python of executors
      = help: docs/deployment.md has a recipe for executors
    """
    started = _NOT_STARTED.search(text)
    if started is not None and _STARTS_PYTHON in text:
        return _error(started[1], started[2])
    if (versions := _VERSIONS.search(text)) is not None:
        return _error(python, f"it is Python {versions[1]}, but the driver runs Python {versions[2]}")
    if (said := _SAID.search(text)) is not None and _STARTS_PYTHON in text:
        return _error(python, said[1].strip().splitlines()[-1].strip())
    if "Traceback (most recent call last)" in text and (missing := _NO_MODULE.search(text)) is not None:
        return _error(python, missing[1])
    return None


def _error(python: str, why: str) -> ResourceError:
    details = {"python": python, "why": _CONTROL.sub("", why)[:_LATER].rstrip(".")}
    return ResourceError(Problem(errors.EXECUTOR_PYTHON, details, help=_REMEDY))
