"""The sandbox's Connect workers, Apache's and pyconnect's, and their plugins.

Both read a `worker.properties` and answer GET /health with 200 (KIP-1017) once they have joined
their group and read its config topic. Apache's is `ConnectDistributed` or `ConnectStandalone`.
Ours is started as `python -m pyconnect_agent` and never imported. Not thread-safe.
"""

import os
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import javaproperties

from pyconnect_sandbox.errors import InvalidSandboxRequest
from pyconnect_sandbox.runtime import QUICK_START_OPTIONS, KafkaRuntime, write_log_configuration
from pyconnect_sandbox.server import LOOPBACK, Server, free_port, require_free

WORKER_FILE = "worker.properties"
"""The name of a worker's properties in its directory."""
_JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def worker_properties(bootstrap_servers: str, group_id: str) -> dict[str, str]:
    """Return the properties of a distributed worker whose internal topics are its group's own."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group_id,
        "key.converter": _JSON_CONVERTER,
        "value.converter": _JSON_CONVERTER,
        "config.storage.topic": f"{group_id}-configs",
        "config.storage.replication.factor": "1",
        "offset.storage.topic": f"{group_id}-offsets",
        "offset.storage.replication.factor": "1",
        # A broker on a small machine takes long to create the default of 25 partitions.
        "offset.storage.partitions": "5",
        "status.storage.topic": f"{group_id}-status",
        "status.storage.replication.factor": "1",
        "offset.flush.interval.ms": "1000",
    }


def rest_status(port: int, path: str, timeout_s: float) -> int | None:
    """Return the status of GET `path` on the loopback address; None when there is no answer."""
    connection = HTTPConnection(LOOPBACK, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLaunch:
    directory: Path
    """The directory of this worker only: configuration and logs."""
    properties: Mapping[str, str]
    """Worker properties; `listeners` is added when it is absent."""
    port: int | None = None
    """The port of the REST server when `listeners` is absent; None: a free one is chosen."""
    connectors: Sequence[Mapping[str, str]] | None = None
    """Connectors of a standalone worker; None: a distributed worker."""
    start_timeout_s: float = 150
    stop_timeout_s: float = 20
    hold_file: Path | None = None
    """See `Server`; None: the worker outlives this process."""


class ConnectWorker(Server):
    """A Connect worker process; its REST port stays the same over restarts."""

    def __init__(self, config: WorkerLaunch) -> None:
        super().__init__(
            directory=config.directory,
            start_timeout_s=config.start_timeout_s,
            stop_timeout_s=config.stop_timeout_s,
            hold_file=config.hold_file,
        )
        self.config = config
        self._port: int | None = None
        self._has_answered = False

    @abstractmethod
    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        """Return the command that runs the worker."""

    def _default_properties(self) -> Mapping[str, str]:
        """Return the properties that this worker gets by default."""
        return {}

    @property
    def port(self) -> int:
        """Port of the REST server, chosen at the first access."""
        if self._port is None:
            listeners = self.config.properties.get("listeners")
            if listeners:
                # The port of the last listener, such as `http://127.0.0.1:8083`.
                self._port = int(listeners.rsplit(":", 1)[1])
            elif self.config.port is not None:
                require_free(self.config.port)
                self._port = self.config.port
            else:
                self._port = free_port()
        return self._port

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def _give_up_ports(self) -> bool:
        asked_for = self.config.port is not None or "listeners" in self.config.properties
        if self._has_answered or asked_for:
            return False
        self._port = None
        return True

    def _prepare(self) -> Sequence[str]:
        properties = {"listeners": self.url, **self._default_properties(), **self.config.properties}
        worker_file = self._write_properties(WORKER_FILE, properties)
        connector_files = [
            self._write_properties(f"connector-{index}.properties", connector)
            for index, connector in enumerate(self.config.connectors or ())
        ]
        return self._command(worker_file, connector_files)

    def _write_properties(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_text(javaproperties.dumps(properties, timestamp=None, sort_keys=True))
        return path

    def _answers(self, timeout_s: float) -> bool:
        # A worker whose REST interface requires credentials answers 401.
        if rest_status(self.port, "/health", timeout_s) not in (200, 401):
            return False
        self._has_answered = True
        return True


DISTRIBUTED_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"
STANDALONE_CLASS = "org.apache.kafka.connect.cli.ConnectStandalone"


class JavaConnectWorker(ConnectWorker):
    """A Java worker process. `jvm_options` may prefer throughput to a quick start."""

    name = "java-worker"

    def __init__(
        self,
        runtime: KafkaRuntime,
        config: WorkerLaunch,
        *,
        heap_mb: int = 512,
        jvm_options: Sequence[str] = QUICK_START_OPTIONS,
    ) -> None:
        super().__init__(config)
        self._runtime = runtime
        self._heap_mb = heap_mb
        self._jvm_options = jvm_options

    def _default_properties(self) -> Mapping[str, str]:
        # Plugins on the class path are found by their service manifests: 2 s instead of 7.
        return {"plugin.discovery": "service_load"}

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        log_configuration = self.directory / "log4j2.properties"
        write_log_configuration(log_configuration, self.log_path)
        standalone = self.config.connectors is not None
        return self._runtime.command(
            STANDALONE_CLASS if standalone else DISTRIBUTED_CLASS,
            *map(str, (worker_file, *connector_files)),
            heap_mb=self._heap_mb,
            server_directory=self.directory,
            log_configuration=log_configuration,
            jvm_options=self._jvm_options,
        )


class AgentProcess(ConnectWorker):
    """An agent process with its children; standalone when it is given connectors.

    `kill` ends and `suspend` freezes the whole group, as the death or the freeze of a host does.
    """

    name = "agent"

    @property
    def log_path(self) -> Path:
        return self.output_path

    def _environment(self) -> Mapping[str, str]:
        # In a source tree the agent is beside this package, otherwise it is installed.
        roots = (str(Path(entry).resolve()) for entry in sys.path if entry)
        return {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        mode = [] if self.config.connectors is None else ["--standalone"]
        files = map(str, (worker_file, *connector_files))
        return [sys.executable, "-m", "pyconnect_agent", *mode, *files]


def plugin_path_of(entries: Sequence[Path]) -> str:
    """Return entries as a plugin path. Raises InvalidSandboxRequest if an entry does not exist."""
    for entry in entries:
        if not entry.exists():
            raise InvalidSandboxRequest(
                f"{entry.absolute()} of the plugin path does not exist",
                hint="name directories of plugins, or jars",
            )
    return ",".join(str(entry.absolute()) for entry in entries)


def former_property(directory: Path, key: str) -> str:
    """Return a property of the worker's last start; "" if there is none."""
    try:
        properties = javaproperties.loads((directory / WORKER_FILE).read_text())
    except FileNotFoundError:
        return ""
    return properties.get(key, "")


def plugin_properties(plugin_path: str, libs: str) -> Mapping[str, str]:
    """Return the plugin properties of a worker; `libs`: Kafka's jars for Java plugins."""
    if not plugin_path:
        return {}
    return {
        "plugin.path": plugin_path,
        # By default a sandbox's worker reads service files only, and not all plugins have them.
        "plugin.discovery": "hybrid_warn",
        "agent.java.kafka.home": libs,
    }
