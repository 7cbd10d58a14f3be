"""`pyconnect`, which kills itself before or after an entry of its journal.

The environment names the point: the entry, `before` or `after`, and its number among its kind.
"""

import os
import signal
import sys
from datetime import datetime

from pyconnect_cli.acting.journal import JournalFile

KILLED_AT = "PYCONNECT_TEST_KILLED_AT"
WITHOUT_AUDIT = "PYCONNECT_TEST_WITHOUT_AUDIT"
"""With this variable repairs end without the audit, which takes a minute."""
append = JournalFile.append
seen: list[str] = []


def append_or_die(self: JournalFile, entry: object, now: datetime | None = None) -> None:
    kind, when, number = os.environ.get(KILLED_AT, "none after 1").split()
    seen.append(type(entry).__name__)
    is_there = seen[-1] == kind and seen.count(kind) == int(number)
    if is_there and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, entry, now)
    if is_there:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    from pyconnect_cli.__main__ import main
    from pyconnect_cli.reconcile import repair

    JournalFile.append = append_or_die  # type: ignore[method-assign]
    if os.environ.get(WITHOUT_AUDIT):
        repair.reconcile_each = lambda *_: None
    sys.exit(main())
