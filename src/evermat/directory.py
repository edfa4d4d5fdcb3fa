"""Deprecated: `evermat.FolderStream` is the class that was `evermat.directory.Directory`."""

from __future__ import annotations

import warnings

from evermat.runtime import FolderStream as Directory  # noqa: F401

warnings.warn("evermat.directory.Directory is evermat.FolderStream now", DeprecationWarning, stacklevel=2)
