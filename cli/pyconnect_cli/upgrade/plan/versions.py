"""The versions of Kafka Connect with the features that an upgrade needs. Pure."""

from __future__ import annotations

import re

FIRST_WITH_PHASES = (3, 3, 0)
FIRST_WITHOUT_KNOWN_FAULTS = (3, 4, 1)
FIRST_WITH_STOPPED = (3, 5, 0)
_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def numbers(version: str) -> tuple[int, int, int] | None:
    """Return `4.3.1-rc0` as (4, 3, 1); None for a text that is not a version."""
    match = _NUMBERS.match(version)
    if match is None:
        return None
    major, minor, patch = match.groups(default="0")
    return int(major), int(minor), int(patch)


def is_before(version: str, first: tuple[int, int, int]) -> bool:
    """Whether a version is known to be older than `first`."""
    found = numbers(version)
    return found is not None and found < first
