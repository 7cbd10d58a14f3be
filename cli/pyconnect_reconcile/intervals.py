"""Intervals of numbers and the 64-bit masks they are folded into. Pure.

A mask stands for the 64 numbers of one bucket, `bucket * 64` to `bucket * 64 + 63`; bit i is set
when number i of them is there. Spark's longs are signed: bit 63 is the sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

MASK_BITS = 64


class Interval(NamedTuple):
    """The numbers from `first` to `last`, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """The count of its numbers."""
        return self.last - self.first + 1


def numbers_of(bucket: int, mask: int) -> Iterator[int]:
    """Yield the numbers that a mask holds, ascending."""
    base = bucket * MASK_BITS
    for bit in range(MASK_BITS):
        if mask >> bit & 1:
            yield base + bit


def holes_within(bucket: int, mask: int, lowest: int, highest: int) -> list[Interval]:
    """Return the numbers between `lowest` and `highest` of the bucket that the mask lacks."""
    present = [number for number in numbers_of(bucket, mask) if lowest <= number <= highest]
    return [
        Interval(before + 1, after - 1) for before, after in pairwise(present) if after > before + 1
    ]


def runs_of(numbers: Iterable[int]) -> list[Interval]:
    """Return ascending numbers as the intervals that they fill."""
    runs: list[Interval] = []
    for number in numbers:
        if runs and number == runs[-1].last + 1:
            runs[-1] = Interval(runs[-1].first, number)
        else:
            runs.append(Interval(number, number))
    return runs


def joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals with adjacent and overlapping ones made one."""
    result: list[Interval] = []
    for interval in sorted(intervals):
        if result and interval.first <= result[-1].last + 1:
            result[-1] = Interval(result[-1].first, max(result[-1].last, interval.last))
        else:
            result.append(interval)
    return result
