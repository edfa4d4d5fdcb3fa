"""Fewer, unhurried examples: the folder is to run in seconds."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("files", deadline=None, max_examples=40)
settings.load_profile("files")
