"""Seeds of random tests."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONG = bool(os.environ.get("PYCONNECT_TEST_LONG"))
"""Whether `scripts/test --long` runs, which has more seeds and examples."""


def chosen(always: Sequence[T], *, long: Sequence[T]) -> tuple[T, ...]:
    """Return the cases of this run; those of `long` come only with `scripts/test --long`."""
    return (*always, *(long if LONG else ()))


def picked_seed() -> int:
    """Return a constant, so that a change fails only by its own effect.

    With `scripts/test --long` return a random seed.
    """
    if LONG:
        return random.SystemRandom().randrange(1_000_000)
    return 1
