"""What Spark says when it cannot read something, as errors of Evermat: one sentence that names what was read, without Java's stack trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evermat.core import DataError, Problem, ResourceError, scheme_of, without_secrets
from evermat.core import error_catalogue as errors
from evermat.spark.jdbc import driver_help
from evermat.spark.jobs import essential, is_full_disk, silenced, whole_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: what a job says that found a malformed record; which ones there are shows in another job
MALFORMED = "evermat: malformed record"

_NO_FORMAT = re.compile(r"\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (\S+?)\. ")
_NO_PATH = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?)\.\s+SQLSTATE")
_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (.+?)\.\s+(?:SQLSTATE|File)")
_GONE = re.compile(r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\]|java\.io\.FileNotFoundException")
_NO_HOST = re.compile(r"java\.net\.UnknownHostException: ([\w.-]+)")
_DATA = re.compile(
    r"\[(?:FAILED_READ_FILE|PATH_NOT_FOUND|MALFORMED_RECORD_IN_PARSING|MALFORMED_CSV_RECORD|CAST_INVALID_INPUT|CAST_OVERFLOW|CANNOT_MERGE_SCHEMAS|"
    r"CANNOT_PARSE_\w+|NUMERIC_VALUE_OUT_OF_RANGE|ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|INVALID_FORMAT)"
)


def analysed(frame: Callable[[], DataFrame], name: str, what: str, secrets: Sequence[str] = ()) -> DataFrame:
    """The frame, after Spark has analysed it; over Connect only access to the schema has it analysed.

    Raises:
        DataError: what it names does not exist, or cannot be read.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        with silenced():
            made = frame()
            _ = made.schema
    except (PySparkException, Py4JError) as error:
        # The Java stack trace would reveal secrets, and does not help.
        raise read_error(error, name, what, secrets) from None
    return made


def read_error(error: BaseException, name: str, what: str, secrets: Sequence[str] = ()) -> DataError:
    """The error for something that cannot be read."""
    text = whole_text(error)
    if found := _NO_FORMAT.search(text):
        return DataError(Problem(errors.UNKNOWN_FORMAT, {"format": found[1]}))
    if found := _NO_PATH.search(text):
        return DataError(Problem(errors.NO_FILE, {"path": without_secrets(found[1]), "what": what}))
    file = _FILE.search(text)
    shown = name if file is None else without_secrets(file[1])
    if file is not None and _GONE.search(text):
        return DataError(Problem(errors.CHANGED_INPUT, {"path": shown}))
    host = _NO_HOST.search(text)
    why = essential(error) if host is None else f"the host `{host[1]}` is unknown"
    for secret in filter(None, secrets):
        why = why.replace(secret, "…")
    is_database = name.startswith("jdbc:") or scheme_of(name) is None
    help_ = driver_help(text) if is_database else ""
    return DataError(Problem(errors.CANNOT_READ, {"path": shown, "why": why, "what": what}, help=help_))


@contextmanager
def reported(name: str, what: str, *, always: bool = False, listed: bool = False) -> Iterator[None]:
    """Has jobs in the block that read `name` fail with an error of the data, if it is what they read that is wrong; `always` if nothing else can be.

    What has been `listed` was there before.
    """
    try:
        yield
    except ResourceError as error:
        cause = error.__cause__
        if cause is None or is_full_disk(cause) or not (always or _DATA.search(whole_text(cause))):
            raise
        if listed and (gone := _NO_PATH.search(whole_text(cause))):
            raise DataError(Problem(errors.CHANGED_INPUT, {"path": without_secrets(gone[1])})) from None
        raise read_error(cause, name, what) from None


def is_malformed(error: BaseException) -> bool:
    """Whether a job has found a malformed record."""
    return MALFORMED in whole_text(error)
