"""The state of a named sandbox between commands: its processes, addresses and settings.

Each sandbox has a directory below the user's state directory, with `state.json`, the servers' own
directories and `sandbox.lock`, an exclusive `flock` that `up` and `down` take. A record does not
prove that a process is alive: its identity is checked each time (see `processes`). A context that
`pyconnect sandbox` makes is named after its sandbox.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from pyconnect_sandbox.errors import InvalidSandboxRequest, SandboxError
from pyconnect_sandbox.processes import ProcessIdentity, is_running

STATE_FILE = "state.json"
FORMAT_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def sandboxes_root() -> Path:
    """Return the directory that holds one directory per sandbox."""
    return user_state_path("pyconnect") / "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    kind: str
    """broker, agent or java-worker."""
    pid: int
    start_mark: str
    addresses: Mapping[str, str]
    """Addresses by name: `plaintext` and `sasl` of a broker, `rest` of a worker."""
    log: str
    output: str

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, start_mark=self.start_mark)

    @property
    def is_running(self) -> bool:
        return is_running(self.identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    name: str
    data_directory: str
    libs: str
    acl: bool
    sasl_users: tuple[str, ...]
    """Names only: passwords are in the broker's own file."""
    ports: Mapping[str, int]
    """The ports that `up` takes again after `down`, by name: plaintext, controller, sasl."""
    servers: tuple[ServerRecord, ...] = field(default=())

    def server(self, kind: str) -> ServerRecord | None:
        return next((record for record in self.servers if record.kind == kind), None)

    def running(self, kind: str) -> ServerRecord | None:
        record = self.server(kind)
        return record if record is not None and record.is_running else None


def from_json(document: Mapping[str, Any]) -> SandboxState:
    """Return the state in a document; raise SandboxError when it is not one of this format."""
    if document.get("version") != FORMAT_VERSION:
        raise SandboxError(
            f"The sandbox state has format {document.get('version')}, not {FORMAT_VERSION}",
            hint="another version of pyconnect wrote it: stop that sandbox with the other one",
        )
    fields = {key: value for key, value in document.items() if key != "version"}
    fields["sasl_users"] = tuple(fields["sasl_users"])
    fields["servers"] = tuple(ServerRecord(**record) for record in fields["servers"])
    return SandboxState(**fields)


class SandboxDirectory:
    def __init__(self, name: str, root: Path | None = None) -> None:
        """Raise InvalidSandboxRequest when `name` is not a plain file name."""
        if not _NAME.fullmatch(name):
            raise InvalidSandboxRequest(
                f"`{name}` is not a valid name of a sandbox",
                hint="use letters, digits, `-`, `_` and `.`, a letter or digit first",
            )
        self.name = name
        self.path = (sandboxes_root() if root is None else root) / name

    def load(self) -> SandboxState | None:
        """Return the recorded state; None when there is none."""
        path = self.path / STATE_FILE
        try:
            return from_json(json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SandboxError(
                f"{path} is damaged: {error}", hint="end its processes and remove the file"
            ) from error

    def save(self, state: SandboxState) -> None:
        """Replace the recorded state as a whole."""
        partial = self.path / f"{STATE_FILE}.partial"
        document = {"version": FORMAT_VERSION, **asdict(state)}
        partial.write_text(json.dumps(document, indent=1))
        partial.replace(self.path / STATE_FILE)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for the right to change this sandbox and hold it; make the sandbox's directory."""
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(
            self.path / "sandbox.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def sandbox_names(root: Path | None = None) -> tuple[str, ...]:
    """Return the names of all recorded sandboxes, sorted."""
    root = sandboxes_root() if root is None else root
    return tuple(sorted(path.parent.name for path in root.glob(f"*/{STATE_FILE}")))


_PREFIX = "sandbox"
_DEFAULT = "default"


def context_name(sandbox: str) -> str:
    return _PREFIX if sandbox == _DEFAULT else f"{_PREFIX}-{sandbox}"


def start_hint(context: str, root: Path | None = None) -> str | None:
    """Return a hint to start the sandbox of a context; None for a context of another kind."""
    prefix, dash, rest = context.partition("-")
    if prefix != _PREFIX or bool(dash) != bool(rest):
        return None
    sandbox = rest or _DEFAULT
    state = SandboxDirectory(sandbox, root).load()
    if state is None and rest:
        return None
    ports = {} if state is None else state.ports
    worker = "--java-worker" if "java-worker" in ports and "agent" not in ports else "--agent"
    name = f" --name {rest}" if rest else ""
    return f"start the sandbox: pyconnect sandbox up{name} {worker} --use"
