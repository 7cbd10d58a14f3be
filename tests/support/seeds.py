"""Seeds of what tests pick at random."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONG = bool(os.environ.get("PYCONNECT_TEST_LONG"))
"""Whether `scripts/test --long` runs: more seeds and examples than each change is judged by."""


def chosen(always: Sequence[T], *, long: Sequence[T]) -> tuple[T, ...]:
    """Return the cases of this run: those of `long` are added by `scripts/test --long`."""
    return (*always, *(long if LONG else ()))


def picked_seed() -> int:
    """Return the same each time: a change is judged by what it changes.

    With `scripts/test --long` another one each time.
    """
    if LONG:
        return random.SystemRandom().randrange(1_000_000)
    return 1
