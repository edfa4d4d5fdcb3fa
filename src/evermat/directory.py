"""Deprecated: `evermat.FolderStream` is the class that was `evermat.directory.Directory`."""

from __future__ import annotations

import warnings

from evermat.runtime.folder_stream import Directory as Directory  # noqa: PLC0414

warnings.warn("evermat.directory.Directory is evermat.FolderStream now", DeprecationWarning, stacklevel=2)
