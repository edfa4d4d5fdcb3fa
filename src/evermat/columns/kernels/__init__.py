"""Compiled loops over columns."""
