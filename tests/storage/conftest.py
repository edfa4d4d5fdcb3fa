"""The command line as a fixture."""

from __future__ import annotations

from tests.cli.commands import compiled_kernels, evermat_command, kept_signals

__all__ = ["compiled_kernels", "evermat_command", "kept_signals"]
