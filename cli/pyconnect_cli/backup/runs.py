"""The journal of restores: a directory for each run, in the user's state directory.

restores/ID/run.json   the backup, the cluster, and the connectors whose offsets are set
restores/ID/before/    a backup of the connectors from before the run, without secrets
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pyconnect_cli.backup.files import BackupWriter
from pyconnect_cli.backup.plan import Manifest, SavedConnector
from pyconnect_cli.directories import expired, new_identity
from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.parsing.durations import utc_text
from pyconnect_cli.render.styles import json_text
from pyconnect_cli.render.whole_files import write_whole
from pyconnect_cli.rest.masking import mask_config

RUN = "run.json"
BEFORE = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBefore:
    """What a restore may change; `manifest` names the cluster and the connectors to delete."""

    manifest: Manifest
    connectors: Sequence[SavedConnector] = ()
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class RestoreRun:
    """One restore of a backup on a cluster; `placed`: connectors whose offsets are set.

    Nothing is written before `begin`. Threads call `begin` and `place`.
    """

    def __init__(self, path: Path, target: Mapping[str, str], placed: Sequence[str] = ()) -> None:
        self.before = path / BEFORE
        self.placed = list(placed)
        self.begun = False
        self._file = path / RUN
        self._target = dict(target)
        self._lock = threading.Lock()
        self._time = utc_text(datetime.now(UTC))

    @classmethod
    def of(cls, directory: Path, target: Mapping[str, str]) -> RestoreRun:
        """Return the unfinished run with the same backup and cluster, or a new one."""
        for file in sorted(directory.glob(f"*/{RUN}"), reverse=True):
            try:
                document = json.loads(file.read_text("utf-8"))
                if document["target"] == target and not document["finished"]:
                    return cls(file.parent, target, document["placed"])
                if document["target"] == target:
                    break
            except (OSError, ValueError, KeyError):
                continue  # not a run of this version
        return cls(directory / new_identity(datetime.now(UTC)), target)

    @property
    def interrupted(self) -> bool:
        """Whether an earlier command has begun this run."""
        return self._file.exists() and not self.begun

    def begin(self, before: StateBefore) -> None:
        """Write the state before the run, once; PreconditionFailed if it cannot be written."""
        with self._lock:
            if self.begun:
                return
            try:
                if not self._file.exists():
                    self._write_before(before)
                self._write()
            except OSError as exc:
                raise PreconditionFailed(
                    f"{self.before.parent}: the journal cannot be written: {exc.strerror}; nothing"
                    " was changed",
                    hint="set XDG_STATE_HOME to a directory you can write",
                ) from exc
            self.begun = True

    def place(self, name: str) -> None:
        """Note that a connector has its offsets, before it may move on from them."""
        with self._lock:
            if name not in self.placed:
                self.placed.append(name)
                self._write()

    def finish(self) -> None:
        """Note that everything is restored: the next restore of the backup is another run."""
        if self._file.exists():
            self._write(finished=True)

    def _write(self, *, finished: bool = False) -> None:
        document = {
            "time": self._time,
            "target": self._target,
            "placed": self.placed,
            "finished": finished,
        }
        write_whole(self._file, json_text(document, indent=1) + "\n")

    def _write_before(self, before: StateBefore) -> None:
        now = datetime.now(UTC)
        self.before.mkdir(parents=True, mode=0o700)
        for path in self.before.parent.parent.iterdir():
            if expired(path.name, now):
                shutil.rmtree(path)
        writer = BackupWriter(self.before)
        for each in before.connectors:
            writer.connector(replace(each, config=mask_config(each.config)))
        writer.loggers(before.levels)
        writer.finish(replace(before.manifest, files=dict(writer.files), time=utc_text(now)))
