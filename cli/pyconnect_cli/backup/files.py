"""The directories of backups and of restores: written file by file, verified before they are used.

ID/manifest.json          cluster, time, digests; written last
ID/connectors/NAME.json   configuration and target state, as `apply` accepts them
ID/offsets/NAME.json      offsets, as `offsets import` accepts them
ID/loggers.json           levels of each worker

In the user's state directory, for each run of `restore`:

restores/ID/run.json   the backup, the cluster, and the connectors whose offsets are set
restores/ID/before/    a backup of the connectors from before the run, without secrets
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pyconnect_cli.backup.plan import Manifest, SavedConnector, read_manifest
from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.directories import IDENTITY, expired, new_identity
from pyconnect_cli.errors import NotFound, OutputLost, PreconditionFailed, UsageError
from pyconnect_cli.offsets.plan.change import read_snapshot
from pyconnect_cli.parsing.values import parse_json, utc_text
from pyconnect_cli.render.streams import file_name, write_whole
from pyconnect_cli.render.styles import json_text
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.rest.model import bind

MANIFEST = "manifest.json"
CONNECTORS = "connectors"
OFFSETS = "offsets"
LOGGERS = "loggers.json"
PRIVATE_DIRECTORY = 0o700

Levels = Mapping[str, Mapping[str, str]]
"""The levels of each worker: address -> logger -> level."""


class BackupWriter:
    """Writes one backup. Threads may write connectors; the files are for their owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, str] = {}
        self._lock = threading.Lock()

    def connector(self, saved: SavedConnector) -> None:
        """Write a connector's files; OutputLost when that is not possible."""
        state = {} if saved.state is None else {"initial_state": saved.state}
        document = {"name": saved.name, "config": dict(saved.config), **state}
        if saved.offsets is not None:
            self._write(OFFSETS, file_name(saved.name), saved.offsets.to_json())
        self._write(CONNECTORS, file_name(saved.name), document)

    def loggers(self, levels: Levels) -> None:
        self._write("", LOGGERS, levels)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, which makes the backup complete."""
        self._write("", MANIFEST, manifest.to_json())

    def _write(self, folder: str, name: str, document: object) -> None:
        text = json_text(document, indent=2) + "\n"
        file = self.path / folder / name
        try:
            for directory in (self.path, file.parent):
                directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
            if file.exists():
                # Some file systems do not distinguish `Orders` and `orders`.
                raise OutputLost(f"{file}: holds another connector already")
            write_whole(file, text)
        except OSError as exc:
            raise OutputLost(f"{file}: cannot be written: {exc.strerror}") from exc
        with self._lock:
            self.files[str(Path(folder, name))] = _digest(text.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCluster:
    """A backup whose files have the digests of its manifest; `digest`: the manifest's own."""

    path: Path
    digest: str
    manifest: Manifest
    connectors: Mapping[str, SavedConnector]
    levels: Levels


def find_backup(place: Path, is_ours: Callable[[Manifest], bool]) -> tuple[Path, list[Path]]:
    """Return the backup at a place, and the newer backups there that were not finished.

    A place is a backup, or a directory of backups, of which the newest of this cluster counts.
    Raises NotFound without one, UsageError for one that was not finished.
    """
    if (place / MANIFEST).is_file():
        return place, []
    if IDENTITY.fullmatch(place.name) or (place / CONNECTORS).is_dir():
        raise UsageError(
            f"{place}: is half-written: the run that made it did not finish, so it has no"
            f" {MANIFEST}",
            hint=f"take an earlier one: ls {place.parent}",
        )
    unfinished = []
    for path in reversed(_backups_in(place)):
        if not (path / MANIFEST).is_file():
            unfinished.append(path)
        elif is_ours(manifest_of(path)):
            return path, unfinished
    raise NotFound(
        f"{place}: contains no backup of this cluster",
        hint="make one: pyconnect backup DIR; a backup of another cluster is named by its own"
        " directory",
    )


def manifest_of(path: Path) -> Manifest:
    """Read the manifest of a backup."""
    file = path / MANIFEST
    return read_manifest(_content(file).decode("utf-8", errors="replace"), str(file))


def read_backup(path: Path) -> SavedCluster:
    """Read a backup; UsageError names a file that is missing or was changed."""
    manifest = manifest_of(path)
    for name, digest in manifest.files.items():
        if _digest(_content(path / name)) != digest:
            raise UsageError(
                f"{path / name}: is corrupt: it is not the file that was written (its SHA-256"
                f" differs from {MANIFEST})",
                hint=f"take another backup: ls {path.parent}",
            )
    found = {}
    for file in read_connector_files(
        [str(path / name) for name in manifest.files if name.startswith(f"{CONNECTORS}/")]
    ):
        offsets = str(Path(OFFSETS, file_name(file.name)))
        text = _content(path / offsets).decode() if offsets in manifest.files else None
        found[file.name] = SavedConnector(
            name=file.name,
            config=file.config,
            state=file.initial_state,
            offsets=None if text is None else read_snapshot(text, str(path / offsets)),
        )
    levels: Levels = {}
    if LOGGERS in manifest.files:
        document = parse_json(_content(path / LOGGERS).decode(), str(path / LOGGERS))
        levels = bind(dict[str, dict[str, str]], document)
    return SavedCluster(
        path=path,
        digest=_digest(_content(path / MANIFEST)),
        manifest=manifest,
        connectors=found,
        levels=levels,
    )


def prune(
    directory: Path, keep: int, is_ours: Callable[[Manifest], bool], now: datetime
) -> list[Path]:
    """Remove the backups that are older than the `keep` newest whole ones; return their paths.

    Backups of this cluster are removed, whole or with missing parts, and unfinished ones after a
    day: a younger one may still be written.
    """
    ours: list[tuple[Path, bool]] = []
    for path in _backups_in(directory):
        manifest = manifest_of(path) if (path / MANIFEST).is_file() else None
        if expired(path.name, now, days=1) if manifest is None else is_ours(manifest):
            ours.append((path, manifest is not None and manifest.whole))
    whole = [path for path, is_whole in ours if is_whole]
    doomed = [path for path, _ in ours if len(whole) > keep and path < whole[-keep]]
    for path in doomed:
        # The manifest goes first: a directory without one is not a backup, even if only a part is
        # left.
        (path / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(path)
    return doomed


def _backups_in(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if IDENTITY.fullmatch(path.name))
    except OSError as exc:
        raise UsageError(f"{directory}: cannot be read: {exc.strerror}") from exc


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as exc:
        raise UsageError(f"{file}: is missing: the backup is not complete") from exc
    except OSError as exc:
        raise UsageError(f"{file}: cannot be read: {exc.strerror}") from exc


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


RUN = "run.json"
BEFORE = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBefore:
    """The state before a restore; `manifest` names the cluster and the connectors to delete."""

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
        """Whether an earlier command has started this run."""
        return self._file.exists() and not self.begun

    def begin(self, before: StateBefore) -> None:
        """Write the state before the run, once; PreconditionFailed if it cannot be written."""
        with self._lock:
            if self.begun:
                return
            try:
                if not self._file.exists():
                    now = datetime.now(UTC)
                    self.before.mkdir(parents=True, mode=0o700)
                    for path in self.before.parent.parent.iterdir():
                        if expired(path.name, now):
                            shutil.rmtree(path)
                    writer = BackupWriter(self.before)
                    for each in before.connectors:
                        writer.connector(replace(each, config=mask_config(each.config)))
                    writer.loggers(before.levels)
                    manifest = replace(
                        before.manifest, files=dict(writer.files), time=utc_text(now)
                    )
                    writer.finish(manifest)
                self._write()
            except OSError as exc:
                raise PreconditionFailed(
                    f"{self.before.parent}: the journal cannot be written: {exc.strerror}; nothing"
                    " was changed",
                    hint="set XDG_STATE_HOME to a directory you can write",
                ) from exc
            self.begun = True

    def place(self, name: str) -> None:
        """Note that a connector's offsets are set, before its tasks can commit later ones."""
        with self._lock:
            if name not in self.placed:
                self.placed.append(name)
                self._write()

    def finish(self) -> None:
        """Note that everything is restored, so that the next restore of the backup is a new run."""
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
