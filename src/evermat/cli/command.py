"""What all commands have in common: `--sandbox`, and hints for names that are nearly right."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand

from evermat.cli.sandbox import sandbox_of
from evermat.core import did_you_mean

_NO_CHOICE = re.compile(r"'(.*)' is not one of (.*)\.", re.DOTALL)  # as Typer says it


class Command(TyperCommand):
    """A command with the option `--sandbox`, which names the nearest choice for a value that is none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if found := _NO_CHOICE.search(error.message):
                hint = did_you_mean(found[1], re.findall("'([^']*)'", found[2]))
                error.message += hint and f" {hint[0].upper()}{hint[1:]}"
            raise

    def invoke(self, ctx: Any) -> Any:
        if not ctx.params["sandbox"]:
            return super().invoke(ctx)
        with sandbox_of(ctx.params):
            return super().invoke(ctx)
