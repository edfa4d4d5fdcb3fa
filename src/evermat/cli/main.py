"""The command line as a process: signals, standard streams, errors and exit codes.

The functions import what they need: signals are handled before anything is loaded that takes long.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from evermat.cli.signals import (
    Interrupted,
    Terminated,
    catch_signals,
    end_on_signals,
    forget_signals,
    ignore_signals,
    stop_text,
)

TYPE_CHECKING = False  # as in `evermat`: nothing may take long before signals are handled
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

_RDF_ENDINGS = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".owl", ".xml", ".ofn", ".owx")


def script() -> None:
    """Runs the command line in a process of its own: what the command `evermat` calls.

    Nothing here needs pandas, and in this process there is no other code that could.
    """
    end_on_signals()
    from contextlib import suppress

    from evermat.cli.watchdog import STOPPED, start_watchdog
    from evermat.core import await_completion, block_pandas, open_standard_streams

    open_standard_streams()
    block_pandas()
    # Programs are many small objects that stay: looking for garbage is rarely worth it.
    gc.set_threshold(100_000, 50, 50)
    start_watchdog()
    try:
        _run()
    except SystemExit as ended:
        if ended.code and ended.code not in STOPPED:
            with suppress(OSError):
                sys.stdout.flush()
        if ended.code:
            _discard_stdout()  # its reader may never come, or its disk be full
        if ended.code in STOPPED and "pyspark" not in sys.modules:
            # All is unwound. The end of an interpreter may take seconds, and would wait for calls that were left to themselves.
            await_completion()
            with suppress(OSError):
                sys.stderr.flush()
            os._exit(int(ended.code))
        raise


def main() -> None:
    """Runs the command line in a process that goes on: a signal that has ended it is forgotten."""
    try:
        _run()
    finally:
        forget_signals()


def _run() -> None:
    """Runs the command line; errors become their text on stderr and their exit code."""
    from evermat.cli.app import ClosedPipe, app
    from evermat.cli.watchdog import LimitReached, limit_text
    from evermat.core import EvermatError, LimitError, Problem, ResourceError
    from evermat.core import error_catalogue as errors

    try:
        catch_signals()
        app(args=list(_one_by_one(sys.argv[1:])))
    except LimitError as error:
        _fail(limit_text(error), error.exit_code)
    except EvermatError as error:
        _fail(str(error), error.exit_code)
    except MemoryError as error:
        details = {"why": str(error) or "the system has no more"}
        _fail(str(ResourceError(Problem(errors.OUT_OF_MEMORY, details))), ResourceError.exit_code)
    except OSError as error:
        details = {"path": error.filename or "<stdout>", "why": error.strerror or str(error), "rest": ""}
        _discard_stdout()
        _fail(str(ResourceError(Problem(errors.CANNOT_WRITE, details))), ResourceError.exit_code)
    except ClosedPipe:
        _discard_stdout()
        sys.exit(0)
    except Interrupted:
        _fail(stop_text(signal.SIGINT), 130)
    except Terminated:
        _fail(stop_text(signal.SIGTERM), 143)
    except LimitReached as limit:
        _fail(limit_text(limit.error), limit.error.exit_code)


def _one_by_one(arguments: list[str]) -> Iterator[str]:
    """The arguments with `--rdf` before each of its files: a shell makes several of `--rdf data/*.nt`."""
    option, expected = "", False  # whose files these are, and whether there must be one now
    for argument in arguments:
        if argument in ("--rdf", "--ontology"):
            option, expected = argument, True
        elif expected:
            expected = False
        elif option and argument.lower().removesuffix(".gz").endswith(_RDF_ENDINGS):
            yield option
        else:
            option = ""
        yield argument


def _discard_stdout() -> None:
    """Discards what is left of the output: Python would complain again when it flushes on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> NoReturn:
    from evermat.cli.watchdog import leave

    ignore_signals()
    leave(code)
    print(text, file=sys.stderr)
    sys.exit(code)
