"""Backups from before changes of offsets, for `undo`: files in the user's state directory.

A file is a snapshot: the origin of the offsets and the list that REST returns; never a
configuration or a credential. Files are readable by their owner only and kept for KEPT_DAYS.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pyconnect_cli.directories import (
    IDENTITY,
    KEPT_DAYS,
    expired,
    new_identity,
    state_directory,
)
from pyconnect_cli.errors import NotFound, PreconditionFailed, UsageError
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot, read_snapshot
from pyconnect_cli.render.whole_files import write_whole


class Backups:
    """The backups of one user: a directory with a file each; the newest has the greatest name."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stored: list[str] = []
        """The ids of this command's backups."""

    def require_writable(self) -> None:
        """Raise PreconditionFailed if backups cannot be written; call it before a change."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=self.directory):
                pass
        except OSError as exc:
            raise self._unwritable(exc) from exc

    def store(self, snapshot: OffsetsSnapshot, now: datetime) -> OffsetsSnapshot:
        """Write a backup, synchronised to the disk; return the snapshot with its id."""
        identity = new_identity(now)
        stored = replace(snapshot, id=identity)
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self._path(identity), _text(stored))
            for path in self.directory.glob("*.json"):
                if IDENTITY.fullmatch(path.stem) and expired(path.stem, now):
                    path.unlink(missing_ok=True)
        except OSError as exc:
            raise self._unwritable(exc) from exc
        self.stored.append(identity)
        return stored

    def mark_failed(self, stored: OffsetsSnapshot) -> None:
        """Note in a backup that its change failed; ignore a failure to write the note.

        The backup itself stays valid, and the caller reports the error of the change.
        """
        with suppress(OSError):
            write_whole(self._path(stored.id), _text(replace(stored, failed=True)))

    def discard(self, identity: str) -> None:
        """Remove the backup of a change that did not happen."""
        self.stored.remove(identity)
        self._path(identity).unlink(missing_ok=True)

    def find(self, identity: str, now: datetime) -> OffsetsSnapshot:
        """Return a backup; NotFound when it is missing or expired."""
        if IDENTITY.fullmatch(identity) is None:
            raise UsageError(
                f"`{identity}` is not the id of a backup",
                hint="list them: pyconnect offsets history",
            )
        if expired(identity, now):
            raise NotFound(
                f"backup {identity} has expired: backups are kept for {KEPT_DAYS} days",
                hint="list the backups: pyconnect offsets history",
            )
        path = self._path(identity)
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError as exc:
            raise NotFound(
                f"{self.directory} contains no backup {identity}",
                hint="list the backups: pyconnect offsets history",
            ) from exc
        except (OSError, UnicodeDecodeError) as exc:
            raise UsageError(f"{path}: cannot be read: {exc}") from exc
        return read_snapshot(text, str(path))

    def all(self, now: datetime) -> tuple[list[OffsetsSnapshot], dict[str, str]]:
        """Return the backups that have not expired, newest first, and other files' faults by id."""
        found, broken = [], {}
        try:
            names = [path.stem for path in self.directory.glob("*.json")]
        except OSError as exc:
            raise UsageError(f"{self.directory}: cannot be read: {exc.strerror}") from exc
        for identity in sorted((name for name in names if not expired(name, now)), reverse=True):
            try:
                found.append(self.find(identity, now))
            except UsageError as error:
                broken[identity] = error.message
        return found, broken

    def _path(self, identity: str) -> Path:
        return self.directory / f"{identity}.json"

    def _unwritable(self, error: OSError) -> PreconditionFailed:
        return PreconditionFailed(
            f"{self.directory}: a backup cannot be written: {error.strerror}; nothing was changed",
            hint="set XDG_STATE_HOME to a directory you can write, or give --no-backup",
        )


def _text(snapshot: OffsetsSnapshot) -> str:
    return json.dumps(snapshot.to_json(), indent=1, ensure_ascii=False) + "\n"


def backup_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's backups. Raises PreconditionFailed."""
    return state_directory(environ) / "offsets"
