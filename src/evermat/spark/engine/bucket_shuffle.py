"""The shuffle that takes every packet to the task of its bucket."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEED = 42  # of Spark's hash partitioning
_WORD = 0xFFFFFFFF


def to_buckets(packets: DataFrame, buckets: int) -> DataFrame:
    """Has task i of the next stage get the packets whose column `bucket` is i.

    Spark 4.0 divides rows only by a hash: there each bucket is replaced by a number whose hash leads to it.
    """
    if hasattr(packets, "repartitionById"):
        return packets.repartitionById(buckets, "bucket")
    from pyspark.sql.functions import expr  # noqa: PLC0415

    keys = ", ".join(map(str, keys_of_tasks(buckets)))
    return packets.repartition(buckets, expr(f"element_at(array({keys}), bucket + 1)"))


@cache
def keys_of_tasks(tasks: int) -> tuple[int, ...]:
    """For each task the least number that Spark's hash partitioning sends there.

    >>> keys_of_tasks(4)
    (12, 6, 2, 0)
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < tasks:
        found.setdefault(hash_of_int(number) % tasks, number)
        number += 1
    return tuple(found[task] for task in range(tasks))


def hash_of_int(number: int) -> int:
    """The hash of an `int` column in Spark: Murmur3 of 32 bits, signed.

    >>> hash_of_int(0), hash_of_int(1)
    (933211791, -559580957)
    """
    mixed = _SEED ^ (_rotated(number * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD)
    mixed = (_rotated(mixed, 13) * 5 + 0xE6546B64) & _WORD
    mixed ^= 4  # bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD
