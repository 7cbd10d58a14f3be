"""`pyconnect`, killed by itself before or after the journal of upgrades gets an entry.

The environment names the point: the entry, `before` or `after`, and which one of its kind.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime

from pyconnect_cli.upgrade.journal import Journal
from pyconnect_cli.upgrade.plan.run import Entry

KILLED_AT = "PYCONNECT_TEST_KILLED_AT"
append = Journal.append
seen: list[str] = []


def append_or_die(self: Journal, entry: Entry, now: datetime | None = None) -> None:
    kind, when, number = os.environ[KILLED_AT].split()
    seen.append(type(entry).__name__)
    is_there = seen[-1] == kind and seen.count(kind) == int(number)
    if is_there and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, entry, now)
    if is_there:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    from pyconnect_cli.__main__ import main

    Journal.append = append_or_die  # type: ignore[method-assign]
    sys.exit(main())
