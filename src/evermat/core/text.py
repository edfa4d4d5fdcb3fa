"""How messages spell numbers of things."""

from __future__ import annotations


def count_of(number: int, noun: str) -> str:
    """`no columns`, `1 column`, `2 columns`."""
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"
