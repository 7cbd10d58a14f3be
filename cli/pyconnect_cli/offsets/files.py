"""Offsets in files: REST bodies as `get -o json` prints them, snapshots of `export`, backups.

A backup is a snapshot from before a change, for `undo`: the origin of the offsets and the list that
REST returns; never a configuration or a credential. Backups are in the user's state directory,
readable by their owner only and kept for KEPT_DAYS.
"""

import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pyconnect_cli.directories import IDENTITY, KEPT_DAYS, expired, new_identity, state_directory
from pyconnect_cli.errors import NotFound, OutputLost, PreconditionFailed, UsageError
from pyconnect_cli.offsets.plan.change import FORMAT, OffsetsSnapshot, read_snapshot
from pyconnect_cli.offsets.plan.entries import read_entries
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.streams import write_whole
from pyconnect_cli.render.styles import counted, json_text
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_cli.session import Session
from pyconnect_cli.settings.given_files import read_given, yaml_documents
from pyconnect_cli.verbs import option


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsFile:
    """The content of a file; `snapshot` is None for a REST body, which has no origin."""

    place: str
    entries: tuple[OffsetEntry, ...]
    snapshot: OffsetsSnapshot | None = None


def read_offsets_file(place: str, connector_type: str) -> OffsetsFile:
    """Read a REST body or a snapshot, JSON or YAML; `-` is stdin. UsageError says what is wrong."""
    text, shown = read_given(place)
    if Path(place).suffix.lower() in {".yaml", ".yml"}:
        document = next(iter(yaml_documents(text, shown)), None)
    else:
        document = parse_json(text, shown)
    if isinstance(document, Mapping) and document.get("format") == FORMAT:
        snapshot = read_snapshot(text, shown)
        return OffsetsFile(place=shown, entries=snapshot.offsets, snapshot=snapshot)
    if not isinstance(document, Mapping) or "offsets" not in document:
        raise UsageError(
            f"{shown}: an object with `offsets` was expected",
            hint="for an example: pyconnect offsets get NAME -o json",
        )
    if unknown := sorted(str(key) for key in document if key != "offsets"):
        raise UsageError(f"{shown}: unknown member {', '.join(unknown)}")
    return OffsetsFile(
        place=shown, entries=read_entries(document["offsets"], connector_type, shown)
    )


def read_snapshot_file(place: str) -> OffsetsSnapshot:
    """Read a snapshot that `export` wrote."""
    text, shown = read_given(place)
    return read_snapshot(text, shown)


ExportFileOption = Annotated[
    Path | None, option("--file/-f FILE", "file to write instead of stdout")
]


def export_snapshot(session: Session, snapshot: OffsetsSnapshot, file: Path | None) -> None:
    """Print a snapshot's JSON if `file` is None or `-`, else write it there whole.

    Raises OutputLost when it cannot be written.
    """
    text = json_text(snapshot.to_json(), indent=2)
    if file is None or str(file) == "-":
        session.output.line(text)
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text + "\n")
    except OSError as exc:
        raise OutputLost(f"{file}: cannot be written: {exc.strerror}") from exc
    session.output.message(
        f"{snapshot.connector}: {counted(len(snapshot.offsets), 'partition')} written to {file}"
    )


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


def backups_of(session: Session) -> Backups:
    """Return the backups of the user. Raises PreconditionFailed."""
    return Backups(state_directory(session.environ) / "offsets")
