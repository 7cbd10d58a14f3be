"""Seeds of what tests pick at random."""

from __future__ import annotations

import os
import random


def picked_seed() -> int:
    """Return the same each time: a change is judged by what it changes.

    With `scripts/test --long` another one each time.
    """
    if os.environ.get("PYCONNECT_TEST_LONG"):
        return random.SystemRandom().randrange(1_000_000)
    return 1
