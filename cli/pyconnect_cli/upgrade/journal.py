"""The journal of upgrades: a file per Connect cluster, a line per entry, appended and synchronised.

Lines are JSON: the entry's name, its members, the time. A kill at any point loses no run: a last
line that was written only in part is ignored, all lines before it count. A run locks the file
beside the journal, so that this host has no second run.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pyconnect_cli.errors import Conflict, PreconditionFailed, UsageError
from pyconnect_cli.offsets.backups import utc_text
from pyconnect_cli.rest.model import as_object, bind
from pyconnect_cli.settings.state_directory import state_directory
from pyconnect_cli.upgrade.plan.run import Entry, Run, replay

_ENTRIES: Mapping[str, type[Entry]] = {kind.__name__: kind for kind in get_args(Entry)}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Journal:
    """The journal of one Connect cluster. One process writes it: in `lock`."""

    def __init__(self, directory: Path, cluster_id: str, group_id: str) -> None:
        name = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02x}", f"{cluster_id}-{group_id}")
        self.path = directory / f"{name}.jsonl"

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
                raise Conflict(
                    "another upgrade of this cluster is running on this host",
                    hint="show it: pyconnect upgrade status",
                ) from exc
            yield

    def append(self, entry: Entry, now: datetime | None = None) -> None:
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
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                end = os.lseek(descriptor, 0, os.SEEK_END)
                cut = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
                content = (("\n" if cut else "") + line + "\n").encode()
                if os.write(descriptor, content) < len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise self._unwritable(exc) from exc

    def lines(self) -> list[dict[str, Any]]:
        return read_lines(self.path)

    def run(self) -> Run | None:
        """Return the last run; None when there was none."""
        return read_run(self.path)

    def _unwritable(self, error: OSError) -> PreconditionFailed:
        return PreconditionFailed(
            f"{self.path.parent}: the journal cannot be written: {error.strerror}",
            hint="set XDG_STATE_HOME to a directory you can write",
        )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return a journal's lines as JSON objects, without a last line that a kill cut off."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc
    found = []
    # Not splitlines: texts may hold other separators of lines.
    for line in text.split("\n"):
        try:
            found.append(dict(as_object(json.loads(line))))
        except (ValueError, TypeError):
            continue
    return found


def read_run(path: Path) -> Run | None:
    """Return the last run of a journal; UsageError names a file that cannot be read."""
    try:
        return replay([read_entry(line) for line in read_lines(path)])
    except (UsageError, KeyError) as exc:
        reason = exc.message if isinstance(exc, UsageError) else f"an entry of {exc} has no step"
        raise UsageError(
            f"{path}: {reason}",
            hint="move the file away: the next run reads the state from the cluster; a newer"
            " version of this command may have written the file",
        ) from exc


def last_runs(directory: Path) -> tuple[list[Run], list[str]]:
    """Return the last run of each journal in a directory, and the faults of unreadable ones."""
    found, broken = [], []
    for path in sorted(directory.glob("*.jsonl")):
        try:
            run = read_run(path)
        except UsageError as error:
            broken.append(error.message)
            continue
        if run is not None:
            found.append(run)
    return found, broken


def unfinished_group(directory: Path, cluster_id: str, urls: Iterable[str]) -> str | None:
    """Return the group of an unfinished run on this Kafka with one of these workers, if any.

    The worker may be down during the run; then only the journal knows the group.
    """
    wanted = set(urls)
    found, _ = last_runs(directory)
    for run in found:
        same = run.started.cluster_id == cluster_id and wanted & set(run.urls)
        if same and not run.finished:
            return run.started.group_id
    return None


def journal_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's journals. Raises PreconditionFailed."""
    return state_directory(environ) / "upgrades"


def read_entry(line: Mapping[str, Any]) -> Entry:
    """Return the entry of a line; UsageError for a line that this version cannot read."""
    members = {key: value for key, value in line.items() if key not in {"entry", "at"}}
    try:
        kind = _ENTRIES[str(line["entry"])]
        for name in members.keys() - {each.name for each in fields(kind)}:
            raise ValueError(f"`{name}` is not known")
        return bind(kind, members)
    except (KeyError, TypeError, ValueError) as exc:
        raise UsageError(f"it has a line that this version cannot read: {exc}") from exc
