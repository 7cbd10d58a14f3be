"""Apache's Java Connect worker, distributed or standalone, to be compared with or joined.

`org.apache.kafka.connect.cli.ConnectDistributed` and `ConnectStandalone`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_sandbox.connect_worker import ConnectWorker, WorkerLaunch
from pyconnect_sandbox.runtime import QUICK_START_OPTIONS, KafkaRuntime, write_log_configuration

DISTRIBUTED_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"
STANDALONE_CLASS = "org.apache.kafka.connect.cli.ConnectStandalone"


class JavaConnectWorker(ConnectWorker):
    """A Java worker process. `jvm_options` may ask for a JVM tuned to run, not to start."""

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
