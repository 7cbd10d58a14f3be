"""Apache's Java Connect worker, distributed or standalone, to be compared with or joined.

`org.apache.kafka.connect.cli.ConnectDistributed` and `ConnectStandalone`. Ready when GET /health
says 200 (KIP-1017): a distributed worker has then joined its group and read its config topic.
Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import javaproperties

from pyconnect_cli.sandbox import ports
from pyconnect_cli.sandbox.runtime import (
    KafkaRuntime,
    write_log_configuration,
)
from pyconnect_cli.sandbox.server import Server

DISTRIBUTED_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"
STANDALONE_CLASS = "org.apache.kafka.connect.cli.ConnectStandalone"
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
        # The default of 25 takes a broker on a small machine a while to create.
        "offset.storage.partitions": "5",
        "status.storage.topic": f"{group_id}-status",
        "status.storage.replication.factor": "1",
        "offset.flush.interval.ms": "1000",
    }


def rest_status(port: int, path: str, timeout_s: float) -> int | None:
    """Return the status of GET `path` on the loopback address; None when there is no answer."""
    connection = HTTPConnection(ports.LOOPBACK, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaWorkerConfig:
    """How to start a Java worker."""

    runtime: KafkaRuntime
    directory: Path
    """Of this worker alone: configuration and logs."""
    properties: Mapping[str, str]
    """Worker properties; `listeners` is added when it is absent."""
    connectors: Sequence[Mapping[str, str]] | None = None
    """Not None: a standalone worker with these connectors."""
    plugin_directories: Sequence[Path] = ()
    heap_mb: int = 512
    jvm_options: Sequence[str] = field(default=("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
    start_timeout_s: float = 90
    stop_timeout_s: float = 20
    hold_file: Path | None = None
    """See `Server`; None: the worker outlives this process."""


class JavaConnectWorker(Server):
    """A Java Connect worker process; its REST port stays the same over restarts."""

    name = "java-worker"

    def __init__(self, config: JavaWorkerConfig) -> None:
        super().__init__(
            directory=config.directory,
            start_timeout_s=config.start_timeout_s,
            stop_timeout_s=config.stop_timeout_s,
            hold_file=config.hold_file,
        )
        self.config = config
        self._port: int | None = None
        self._has_answered = False

    @property
    def port(self) -> int:
        """Port of the REST server, chosen when first asked for."""
        if self._port is None:
            listeners = self.config.properties.get("listeners")
            # The last of several: `http://127.0.0.1:8083`.
            self._port = int(listeners.rsplit(":", 1)[1]) if listeners else ports.free_port()
        return self._port

    @property
    def url(self) -> str:
        """Where its REST server answers."""
        return f"http://{ports.LOOPBACK}:{self.port}"

    def _give_up_ports(self) -> bool:
        if self._has_answered or "listeners" in self.config.properties:
            return False
        self._port = None
        return True

    def _prepare(self) -> Sequence[str]:
        # Classes on the class path are found by their service manifests: seconds less than a scan.
        properties = {
            "listeners": self.url,
            "plugin.discovery": "service_load",
            **self.config.properties,
        }
        if self.config.plugin_directories:
            properties["plugin.path"] = ",".join(map(str, self.config.plugin_directories))
        files = [self._write_properties("worker.properties", properties)]
        for index, connector in enumerate(self.config.connectors or ()):
            files.append(self._write_properties(f"connector-{index}.properties", connector))
        log_configuration = self.directory / "log4j2.properties"
        write_log_configuration(log_configuration, self.log_path)
        return self.config.runtime.command(
            DISTRIBUTED_CLASS if self.config.connectors is None else STANDALONE_CLASS,
            *map(str, files),
            heap_mb=self.config.heap_mb,
            log_configuration=log_configuration,
            jvm_options=self.config.jvm_options,
        )

    def _write_properties(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_text(javaproperties.dumps(properties, timestamp=None, sort_keys=True))
        return path

    def _answers(self, timeout_s: float) -> bool:
        if rest_status(self.port, "/health", timeout_s) != 200:
            return False
        self._has_answered = True
        return True
