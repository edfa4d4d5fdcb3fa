"""Closures as graphs that change."""
