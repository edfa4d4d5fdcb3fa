"""The PySpark of this machine: whether there is one, where, and which version; found without loading it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from evermat.core import Problem, ProgramError, ResourceError
from evermat.core import error_catalogue as errors

INSTALL = "pip install 'evermat[spark]'"
OLDEST = (4, 0)
"""The oldest version of PySpark that has what Evermat uses."""


def has_spark() -> bool:
    """Whether PySpark can be imported here."""
    return find_spec("pyspark") is not None


def no_spark(what: str) -> ProgramError:
    """The error for what needs Spark where it is not installed."""
    return ProgramError(Problem(errors.NO_SPARK, {"what": what}, help=f"install it: `{INSTALL}`"))


def spark_home() -> Path:
    """The folder of Spark in the package PySpark.

    Raises:
        ProgramError: it is not installed.
        ResourceError: it is too old.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise no_spark("a SparkSession")
    home = Path(found.origin).parent
    version = spark_version(home)
    if version is not None and version < OLDEST:
        details = {"version": ".".join(map(str, version)), "oldest": ".".join(map(str, OLDEST))}
        raise ResourceError(Problem(errors.OLD_SPARK, details, help=f"install a newer one: `{INSTALL}`"))
    return home


def spark_version(home: Path) -> tuple[int, int] | None:
    """The major and minor version of the PySpark in a folder; None if it does not state them.

    >>> spark_version(Path("nowhere"))
    """
    try:
        text = (home / "version.py").read_text("utf-8")
    except OSError:
        return None
    found = re.search(r"""__version__[^=]*=\s*["'](\d+)\.(\d+)""", text)
    return None if found is None else (int(found[1]), int(found[2]))
