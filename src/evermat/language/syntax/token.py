"""A token: what lark's tables are fed with. lark's own is a string with ten attributes, which takes three times as long to make."""

from __future__ import annotations


class Token:
    """A terminal of the grammar at a place of the text."""

    __slots__ = ("end_pos", "start_pos", "type", "value")

    def __init__(self, type_: str, value: str, start_pos: int = 0, end_pos: int = 0) -> None:
        self.type, self.value = type_, value
        self.start_pos, self.end_pos = start_pos, end_pos

    def __repr__(self) -> str:
        return f"Token({self.type}, {self.value!r})"
