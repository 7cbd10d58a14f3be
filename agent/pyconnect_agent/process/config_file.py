"""Read Java properties files of workers and connectors.

Corresponds to ``Utils.loadProps`` of Kafka. All inner code takes typed configurations.

`POST /agent/phase` rewrites one key of the worker's own file. A new file replaces the old one.
The same directory has a copy from before each run, `FILE.before-RUN`, and `FILE.last-upgrade`,
which names the last run. All functions block: call them in a thread.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from pyconnect_agent.core.errors import ConflictError, InternalError
from pyconnect_api.errors import ConfigException


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesFile:
    """A properties file as it was read; `entries` may hold secrets. `path` is absolute."""

    path: Path
    sha256: str
    entries: Mapping[str, str] = field(repr=False)


def load_properties(path: str | Path) -> dict[str, str]:
    """Return the entries of a properties file, in its order; of repeated keys the last one counts.

    Raises ConfigException with the file, the line if known, and the remedy.
    """
    return dict(read_properties_file(path).entries)


def read_properties_file(path: str | Path) -> PropertiesFile:
    """Read a properties file as `load_properties` does, and return its digest too."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise ConfigException(f"{file}: there is no such file; check the path.") from error
    except IsADirectoryError as error:
        raise ConfigException(f"{file}: this is a directory; name the file in it.") from error
    except OSError as error:
        raise ConfigException(
            f"{file}: cannot be read ({error.strerror}); give this user read access."
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Java reads it so; this never fails.
        text = data.decode("iso-8859-1")
    entries = parse_properties(text, source=str(file))
    return PropertiesFile(path=file.absolute(), sha256=_digest(data), entries=entries)


def parse_properties(text: str, *, source: str) -> dict[str, str]:
    """Return the entries of a properties text; ``source`` names it in errors."""
    try:
        lines = [
            line for line in javaproperties.parse(text) if isinstance(line, javaproperties.KeyValue)
        ]
    except javaproperties.InvalidUEscapeError as error:
        line = _line_of(text, error.escape)
        raise ConfigException(
            f"{source}, line {line}: '{error.escape}' is not a character; write \\u and four "
            "hexadecimal digits, or \\\\ for a backslash."
        ) from error
    for entry in lines:
        if not entry.key:
            line = _line_of(text, entry.source)
            raise ConfigException(
                f"{source}, line {line}: the property has no name; write name=value."
            )
    return {entry.key: entry.value for entry in lines}


def _line_of(text: str, part: str) -> int:
    return text.count("\n", 0, max(text.find(part), 0)) + 1


PHASE_KEY = "exactly.once.source.support"
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """The last change by a run of `pyconnect upgrade`; `sha256`: of the file after the change."""

    run_id: str
    phase: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFile:
    """The properties file at `path`, an absolute path."""

    path: Path

    def last_change(self) -> PhaseRecord | None:
        """Return the last change; None if no run changed the file, or if the record is damaged."""
        try:
            found = json.loads(self._record_path.read_text("utf-8"))
            return PhaseRecord(
                run_id=str(found["run_id"]), phase=str(found["phase"]), sha256=str(found["sha256"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def change(self, phase: str, run_id: str, expected_sha256: str) -> str:
        """Set the phase; return the digest of the changed file. Safe to repeat.

        ConflictError if the file is neither the expected one nor the result of this same change;
        InternalError if it cannot be read or replaced: it is then unchanged.
        """
        try:
            return self._change(phase, run_id, expected_sha256)
        except OSError as error:
            raise InternalError(
                f"{self.path} cannot be changed ({error.strerror}): give the worker's user write"
                " access to the file and its directory, or set the phase yourself and restart."
            ) from error

    def _change(self, phase: str, run_id: str, expected_sha256: str) -> str:
        data = self.path.read_bytes()
        sha256 = _digest(data)
        if sha256 != expected_sha256:
            if self.last_change() == PhaseRecord(run_id=run_id, phase=phase, sha256=sha256):
                return sha256
            raise ConflictError(
                f"{self.path} is not the file that was expected: its SHA-256 is {sha256}, not"
                f" {expected_sha256}. Check the change, then send the new digest."
            )
        changed = with_phase(data, phase)
        record = PhaseRecord(run_id=run_id, phase=phase, sha256=_digest(changed))
        members = {"run_id": record.run_id, "phase": record.phase, "sha256": record.sha256}
        # The content before the run's first change.
        backup = self.path.with_name(f"{self.path.name}.before-{run_id}")
        if changed != data and not backup.exists():
            _replace(backup, data, like=self.path)
        # Written before the file, so that a changed file always has the record of its run.
        _replace(self._record_path, f"{json.dumps(members)}\n".encode(), like=self.path)
        if changed != data:
            _replace(self.path.resolve(), changed, like=self.path)
        return record.sha256

    @property
    def _record_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.last-upgrade")


def with_phase(data: bytes, phase: str) -> bytes:
    """Return the properties file `data` with the phase set; all other bytes stay.

    Of repeated keys the last one counts and is rewritten; without the key a line is added.
    """
    try:
        text, encoding = data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = data.decode("iso-8859-1"), "iso-8859-1"
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    lines = list(javaproperties.parse(text.removeprefix(mark)))
    sources = [line.source for line in lines]
    found = [
        (at, line)
        for at, line in enumerate(lines)
        if isinstance(line, javaproperties.KeyValue) and line.key == PHASE_KEY
    ]
    if found and found[-1][1].value.lower() == phase:
        return data
    new_line = f"{PHASE_KEY}={phase}"
    newline = "\r\n" if "\r\n" in text else "\n"
    if found:
        at = found[-1][0]
        ending = sources[at][len(sources[at].rstrip("\r\n")) :]
        sources[at] = new_line + ending
    else:
        if sources and not sources[-1].endswith(("\n", "\r")):
            sources.append(newline)
        sources.append(new_line + newline)
    changed = mark + "".join(sources)
    if parse_properties(changed.removeprefix(mark), source="it").get(PHASE_KEY) != phase:
        raise ConfigException("The phase cannot be set in a file that ends within a line.")
    return changed.encode(encoding)


def _replace(path: Path, data: bytes, *, like: Path) -> None:
    """Write a file at `path`, with the owner and mode of `like`; it is on the disk at return."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(like, temporary)
        owner = like.stat()
        # Only root may change a file's owner; otherwise the file belongs to the worker's user.
        with suppress(PermissionError):
            os.chown(temporary, owner.st_uid, owner.st_gid)
        Path(temporary).replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
