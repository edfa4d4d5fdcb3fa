"""Data ranges and literals."""
