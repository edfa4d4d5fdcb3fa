"""Closures as intervals of node numbers."""
