"""Journals of work that outlives its process: a file per subject, a line per entry.

Lines are JSON: the entry's name, its members, the time; each is synchronised when it is written. A
kill at any point loses no entry: a last line that was written only in part is ignored, all lines
before it count. A run locks the file beside the journal, so that this host has no second run.
"""

import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pyconnect_cli.errors import Conflict, PreconditionFailed, UsageError
from pyconnect_cli.parsing.values import utc_text
from pyconnect_cli.rest.model import as_object, bind
from pyconnect_clients.appended_lines import append_line

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class JournalFile:
    """The journal of one subject, whose names make its path. One process writes it: in `lock`.

    Entries are dataclasses. `busy` is the error of a lock that another run holds.
    """

    def __init__(self, directory: Path, *names: str, busy: Conflict) -> None:
        name = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02x}", "-".join(names))
        self.path = directory / f"{name}.jsonl"
        self._busy = busy

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other runs of this user on this host away; Conflict (exit 6) if there is one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = self.path.with_suffix(".lock").open("w")
        except OSError as exc:
            raise self._unwritable(exc) from exc
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise self._busy from exc
            yield

    def append(self, entry: Any, now: datetime | None = None) -> None:
        """Write an entry; it is on the disk when this returns."""
        line = json.dumps(
            {
                "entry": type(entry).__name__,
                "at": utc_text(now or datetime.now(UTC)),
                **asdict(entry),
            },
            ensure_ascii=False,
        )
        try:
            append_line(self.path, line.encode())
        except OSError as exc:
            raise self._unwritable(exc) from exc

    def _unwritable(self, error: OSError) -> PreconditionFailed:
        return PreconditionFailed(
            f"{self.path.parent}: the journal cannot be written: {error.strerror}",
            hint="set XDG_STATE_HOME to a directory you can write",
        )


def entries_of(path: Path, kinds: Any) -> list[Any]:
    """Return a journal's entries, dataclasses of a union, without a last line that a kill cut off.

    UsageError for a line that this version cannot read.
    """
    try:
        text = path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc
    known = {kind.__name__: kind for kind in get_args(kinds)}
    found = []
    # Not splitlines: texts may contain other line separators.
    for line in text.split("\n"):
        try:
            members = dict(as_object(json.loads(line)))
        except (ValueError, TypeError):
            continue
        try:
            kind = known[str(members.pop("entry"))]
            members.pop("at", None)
            for name in members.keys() - {each.name for each in fields(kind)}:
                raise ValueError(f"`{name}` is not known")
            found.append(bind(kind, members))
        except (KeyError, TypeError, ValueError) as exc:
            raise UsageError(f"it has a line that this version cannot read: {exc}") from exc
    return found
