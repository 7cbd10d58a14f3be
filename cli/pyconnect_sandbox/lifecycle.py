"""Named sandboxes that outlive the command that starts them: up, down, status, logs.

`up` starts the servers that do not run and leaves the others alone. A starting server is tethered
to the command until it answers and is recorded, so a killed `up` leaves nothing behind.
"""

import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import javaproperties

from pyconnect_sandbox import processes
from pyconnect_sandbox.broker import (
    BrokerConfig,
    BrokerSecurity,
    KafkaBroker,
    answers_metadata,
    sasl_properties,
)
from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    ConnectWorker,
    JavaConnectWorker,
    WorkerLaunch,
    former_property,
    plugin_path_of,
    plugin_properties,
    rest_status,
    worker_properties,
)
from pyconnect_sandbox.errors import InvalidSandboxRequest, SandboxNotRunning
from pyconnect_sandbox.jars import Progress, find_runtime
from pyconnect_sandbox.runtime import KafkaRuntime, cache_root, keep_archives
from pyconnect_sandbox.server import Server, is_free
from pyconnect_sandbox.state import SandboxDirectory, SandboxState, ServerRecord, sandbox_names

DEFAULT_NAME = "default"
STOP_GRACE_S = 20.0
PROBE_TIMEOUT_S = 2.0
_CLAIM = ".pyconnect-sandbox"
_EXACTLY_ONCE = {"exactly.once.source.support": "enabled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    name: str = DEFAULT_NAME
    data_directory: Path | None = None
    """The broker's data; None: that of the last `up`, at first in the sandbox's directory."""
    port: int | None = None
    acl: bool = False
    sasl_users: Mapping[str, str] = field(default_factory=dict)
    kafka_dir: Path | None = None
    kafka_version: str | None = None
    """One of `SERVER_VERSIONS`; None: the Kafka of KAFKA_HOME, else the first of them."""
    timeout_s: float = 60
    """The time for each server to answer."""
    agent: bool = False
    java_worker: bool = False
    plugin_path: tuple[Path, ...] = ()
    """The plugin path of the workers; empty: that of their last start, at first none."""
    exactly_once: bool = False
    """Whether source connectors of the workers may deliver exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The present state of one server of a sandbox."""

    kind: str
    state: str
    """running, unresponsive (alive, does not answer) or crashed (recorded, not alive)."""
    pid: int
    addresses: Mapping[str, str]
    resident_bytes: int
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxStatus:
    """The present state of a sandbox."""

    name: str
    state: str
    """The state of its broker, or stopped."""
    bootstrap_servers: str | None
    sasl_bootstrap_servers: str | None
    acl: bool
    data_directory: str
    servers: tuple[ServerStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOutcome:
    started: tuple[str, ...]
    """Kinds of the servers that `up` started; empty: all were running."""
    status: SandboxStatus


def up(request: UpRequest, progress: Progress, *, root: Path | None = None) -> UpOutcome:
    """Start the servers that do not run and return once all answer.

    Raises InvalidSandboxRequest when the sandbox runs with other options or an entry of the plugin
    path does not exist, and the errors of finding jars and starting servers; servers that this
    call started are then stopped, unless they had been recorded.
    """
    directory = SandboxDirectory(request.name, root)
    with directory.locked():
        starter = _Starter(request, directory, progress)
        starter.broker()
        if request.agent:
            starter.agent()
        if request.java_worker:
            starter.java_worker()
        return UpOutcome(started=tuple(starter.started), status=_status_of(starter.state))


class _Starter:
    """One `up` in progress; the sandbox is locked meanwhile."""

    def __init__(self, request: UpRequest, directory: SandboxDirectory, progress: Progress) -> None:
        self._request = request
        self._directory = directory
        self._progress = progress
        self.started: list[str] = []
        self._plugin_path = plugin_path_of(request.plugin_path)
        known = directory.load()
        former = directory.path / "broker" if known is None else Path(known.data_directory)
        broker_directory = str((request.data_directory or former).absolute())
        if known is not None and known.running("broker") is not None:
            _require_same_options(known, request, broker_directory)
            self.state = known
        else:
            self.state = SandboxState(
                name=request.name,
                data_directory=broker_directory,
                libs="",
                acl=request.acl,
                sasl_users=tuple(sorted(request.sasl_users)),
                ports={} if known is None else known.ports,
                servers=() if known is None else known.servers,
            )

    def broker(self) -> None:
        if self.state.running("broker") is not None:
            return
        runtime = self._runtime()
        self.state = replace(self.state, libs=str(runtime.libs))
        data_directory = Path(self.state.data_directory)
        _claim(data_directory)
        self._progress("starting the broker")
        broker = KafkaBroker(
            BrokerConfig(
                runtime=runtime,
                directory=data_directory,
                port=self._request.port or self._former_port("plaintext"),
                sasl_port=self._former_port("sasl"),
                security=BrokerSecurity(acl=self._request.acl, sasl_users=self._request.sasl_users),
                start_timeout_s=self._request.timeout_s,
                hold_file=self._hold_file,
            )
        ).start()
        addresses = {"plaintext": broker.bootstrap_servers}
        if broker.ports.sasl is not None:
            addresses["sasl"] = broker.sasl_bootstrap_servers
        self._record(broker, addresses)

    def _runtime(self) -> KafkaRuntime:
        request = self._request
        return find_runtime(
            request.kafka_dir, version=request.kafka_version, progress=self._progress
        )

    def agent(self) -> None:
        self._worker("agent", AgentProcess)

    def java_worker(self) -> None:
        runtime = self._runtime()
        self._worker("java-worker", lambda config: JavaConnectWorker(runtime, config))

    def _worker(self, kind: str, make: Callable[[WorkerLaunch], ConnectWorker]) -> None:
        directory = self._directory.path / kind
        plugins = self._plugins(kind, directory)
        if self.state.running(kind) is not None:
            return
        broker = self.state.running("broker")
        if broker is None:
            raise SandboxNotRunning("The broker ended while the sandbox was coming up")
        self._progress(f"starting the {kind}")
        worker = make(
            WorkerLaunch(
                directory=directory,
                properties={
                    **worker_properties(broker.addresses["plaintext"], f"sandbox-{kind}"),
                    **plugins,
                    **(_EXACTLY_ONCE if self._request.exactly_once else {}),
                },
                port=self._former_port(kind),
                start_timeout_s=self._request.timeout_s,
                hold_file=self._hold_file,
            )
        ).start()
        self._record(worker, {"rest": worker.url})

    def _plugins(self, kind: str, directory: Path) -> Mapping[str, str]:
        """Return the plugin properties; InvalidSandboxRequest if the worker runs with others."""
        former = former_property(directory, "plugin.path")
        path = self._plugin_path or former
        difference = f"with the plugin path {former or '(none)'}" if path != former else ""
        if self._request.exactly_once and not former_property(directory, *_EXACTLY_ONCE):
            difference = "without exactly-once delivery"
        if self.state.running(kind) is not None and difference:
            raise InvalidSandboxRequest(
                f"The {kind} of sandbox {self.state.name} runs {difference}",
                hint=f"stop it first: pyconnect sandbox down --name {self.state.name}",
            )
        return plugin_properties(path, self.state.libs)

    @property
    def _hold_file(self) -> Path:
        return self._directory.path / "starting.hold"

    def _former_port(self, name: str) -> int | None:
        port = self.state.ports.get(name)
        return port if port is not None and is_free(port) else None

    def _record(self, server: Server, addresses: Mapping[str, str]) -> None:
        record = ServerRecord(
            kind=server.name,
            pid=server.identity.pid,
            start_mark=server.identity.start_mark,
            addresses=addresses,
            log=str(server.log_path),
            output=str(server.output_path),
        )
        others = tuple(other for other in self.state.servers if other.kind != record.kind)
        taken = {
            server.name if name == "rest" else name: int(address.rpartition(":")[2])
            for name, address in addresses.items()
        }
        self.state = replace(
            self.state, servers=(*others, record), ports={**self.state.ports, **taken}
        )
        try:
            self._directory.save(self.state)
        except OSError:
            server.stop()
            raise
        server.detach()
        self.started.append(server.name)


def _claim(directory: Path) -> None:
    """Mark `directory` as the sandbox's; raise InvalidSandboxRequest when it holds other files."""
    if directory.exists() and not (directory / _CLAIM).exists() and any(directory.iterdir()):
        raise InvalidSandboxRequest(
            f"{directory} contains files that are not from a sandbox",
            hint="choose a new or an empty --data-dir",
        )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _CLAIM).touch()


def _require_same_options(running: SandboxState, request: UpRequest, broker_directory: str) -> None:
    """Raise InvalidSandboxRequest when the running broker was started with other options."""
    differences = []
    if request.data_directory is not None and running.data_directory != broker_directory:
        differences.append(f"its data is in {running.data_directory}")
    if request.port is not None and request.port != running.ports["plaintext"]:
        differences.append(f"it listens on port {running.ports['plaintext']}")
    if request.acl and not running.acl:
        differences.append("it has no ACL authorizer")
    if request.sasl_users:
        properties = javaproperties.loads(
            (Path(running.data_directory) / "server.properties").read_text()
        )
        if not sasl_properties(request.sasl_users).items() <= properties.items():
            differences.append("it has other SASL users or passwords")
    if request.kafka_version is not None and (
        Path(running.libs) != cache_root() / request.kafka_version / "libs"
    ):
        differences.append(f"its Kafka is that of {running.libs}")
    if differences:
        raise InvalidSandboxRequest(
            f"Sandbox {running.name} runs with other options: {'; '.join(differences)}",
            hint=f"stop it first: pyconnect sandbox down --name {running.name}",
        )


def down(name: str, *, remove_data: bool = False, root: Path | None = None) -> tuple[str, ...]:
    """Stop a sandbox's servers, the broker last; return the kinds of those that ran.

    Data and ports are kept for the next `up`, unless `remove_data`. No process of the sandbox is
    alive afterwards. Raises SandboxNotRunning for a name that was never up, except the default one.
    """
    directory = SandboxDirectory(name, root)
    if directory.load() is None:
        if name == DEFAULT_NAME:
            return ()
        raise _unknown(name, root)
    with directory.locked():
        state = directory.load()
        if state is None:
            return ()
        stopped = []
        # Workers need the broker to commit and to leave their groups.
        for record in sorted(state.servers, key=lambda record: record.kind == "broker"):
            if record.is_running:
                stopped.append(record.kind)
            if processes.end_group(record.identity, STOP_GRACE_S):
                keep_archives(Path(record.output).parent)
        directory.save(replace(state, servers=()))
        if remove_data:
            # A directory without the mark of `_claim` may belong to the user.
            if (Path(state.data_directory) / _CLAIM).exists():
                shutil.rmtree(state.data_directory)
            shutil.rmtree(directory.path)
    return tuple(stopped)


def status(name: str, *, root: Path | None = None) -> SandboxStatus:
    """Return the present state of a sandbox; SandboxNotRunning for a name that was never up."""
    state = SandboxDirectory(name, root).load()
    if state is None:
        raise _unknown(name, root)
    return _status_of(state)


def all_statuses(*, root: Path | None = None) -> tuple[SandboxStatus, ...]:
    return tuple(status(name, root=root) for name in sandbox_names(root))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLog:
    """The log of a server that runs, or ran before."""

    path: Path
    goes_on: Callable[[], bool]
    """Whether that server is still alive."""


def server_log(name: str, kind: str, *, root: Path | None = None) -> ServerLog:
    """Return a server's log; raise SandboxNotRunning when it was never started."""
    directory = SandboxDirectory(name, root)
    state = directory.load()
    if state is None:
        raise _unknown(name, root)
    if (record := state.server(kind)) is not None:
        return ServerLog(path=Path(record.log), goes_on=lambda: record.is_running)
    stopped = Path(state.data_directory) if kind == "broker" else directory.path / kind
    candidates = (stopped / f"{kind}.log", stopped / f"{kind}.out")
    if (path := next((path for path in candidates if path.exists()), None)) is None:
        raise SandboxNotRunning(
            f"Sandbox {name} never had a server {kind}",
            hint=f"start one: pyconnect sandbox up --name {name} --{kind}",
        )
    return ServerLog(path=path, goes_on=lambda: False)


def _unknown(name: str, root: Path | None) -> SandboxNotRunning:
    known = ", ".join(sandbox_names(root))
    return SandboxNotRunning(
        f"There is no sandbox {name}",
        hint=f"known: {known}" if known else "start one: pyconnect sandbox up",
    )


def _status_of(state: SandboxState) -> SandboxStatus:
    servers = tuple(_server_status(record) for record in state.servers)
    broker = next((server for server in servers if server.kind == "broker"), None)
    addresses = {} if broker is None else broker.addresses
    return SandboxStatus(
        name=state.name,
        state="stopped" if broker is None else broker.state,
        bootstrap_servers=addresses.get("plaintext"),
        sasl_bootstrap_servers=addresses.get("sasl"),
        acl=state.acl,
        data_directory=state.data_directory,
        servers=servers,
    )


def _server_status(record: ServerRecord) -> ServerStatus:
    if not record.is_running:
        condition = "crashed"
    else:
        if record.kind == "broker":
            answers = answers_metadata(record.addresses["plaintext"], PROBE_TIMEOUT_S)
        else:
            port = int(record.addresses["rest"].rpartition(":")[2])
            answers = rest_status(port, "/", PROBE_TIMEOUT_S) == 200
        condition = "running" if answers else "unresponsive"
    return ServerStatus(
        kind=record.kind,
        state=condition,
        pid=record.pid,
        addresses=record.addresses,
        resident_bytes=processes.resident_bytes(record.pid) if record.is_running else 0,
        log=record.log,
    )


FOLLOW_INTERVAL_S = 0.2


def print_end(path: Path, count: int, write: Callable[[str], None]) -> int:
    """Write the last `count` lines of a file, none if it does not exist; return where they end.

    The position is in bytes, for `follow`, which also gets a last line that is not complete.
    """
    position = 0
    lines: deque[bytes] = deque(maxlen=count)
    try:
        with path.open("rb") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                position += len(line)
                lines.append(line)
    except FileNotFoundError:
        return 0
    for line in lines:
        write(_text(line))
    return position


def follow(path: Path, goes_on: Callable[[], bool], position: int) -> Iterator[str]:
    """Yield each complete line after `position` until `goes_on` returns False.

    After log4j has renamed the file, the new file of the name is read.
    """
    stream = path.open("rb")
    try:
        stream.seek(position)
        partial = b""
        while True:
            # Check before the rest is read: nothing is added to a file once it was rolled.
            last_round, rolled = not goes_on(), _was_rolled(path, stream.fileno())
            for chunk in stream:
                partial += chunk
                if partial.endswith(b"\n"):
                    yield _text(partial)
                    partial = b""
            if rolled:
                stream.close()
                stream = path.open("rb")
            elif last_round:
                return
            else:
                time.sleep(FOLLOW_INTERVAL_S)
    finally:
        stream.close()


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def _was_rolled(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
