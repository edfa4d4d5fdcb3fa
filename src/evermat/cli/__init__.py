"""The command line. Every command imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from evermat import __version__
from evermat.errors import EvermatError

app = typer.Typer(
    name="evermat",
    help="A Datalog engine that keeps its answers true.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM.dl", help="The program.", show_default=False)]


def _version(value: bool) -> None:
    if value:
        print(f"evermat {__version__}")
        raise typer.Exit


@app.callback()
def evermat(
    *,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """A Datalog engine that keeps its answers true."""
    del version


@app.command()
def check(program: ProgramFile) -> None:
    """Show types, strata, recursive and nonrecursive rules, and plans of a program."""
    from evermat.cli.check import describe
    from evermat.program.compile import read_program

    checked = read_program(program)
    warn(checked.warnings)
    sys.stdout.write(describe(checked))


def warn(warnings: tuple[object, ...]) -> None:
    """Says on stderr what is worth knowing."""
    for warning in warnings:
        print(warning.render(), file=sys.stderr, end="\n\n")  # type: ignore[attr-defined]


def main() -> None:
    """Runs the command line; errors become their text on stderr and their exit code."""
    try:
        app()
    except EvermatError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has had enough. Python would complain again when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
