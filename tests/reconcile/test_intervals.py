"""Masks and intervals, against sets of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_reconcile.findings import holes_within, numbers_of, runs_of


def signed(mask: int) -> int:
    """As Spark's longs are."""
    return mask - 2**64 if mask >= 2**63 else mask


@given(st.integers(-3, 3), st.sets(st.integers(0, 63), min_size=1))
def test_a_mask_holds_the_numbers_it_was_made_of(bucket: int, bits: set[int]) -> None:
    """Bit 63 is the sign; buckets may be negative."""
    mask = signed(sum(1 << bit for bit in bits))
    expected = sorted(bucket * 64 + bit for bit in bits)
    assert list(numbers_of(bucket, mask)) == expected
    holes = holes_within(bucket, mask)
    missing = {n for hole in holes for n in range(hole.first, hole.last + 1)}
    assert missing == set(range(expected[0], expected[-1] + 1)) - set(expected)


@given(st.sets(st.integers(-50, 50)))
def test_runs_are_the_numbers_and_maximal(numbers: set[int]) -> None:
    """No two runs touch."""
    runs = runs_of(sorted(numbers))
    assert [n for run in runs for n in range(run.first, run.last + 1)] == sorted(numbers)
    assert all(a.last + 1 < b.first for a, b in pairwise(runs))
