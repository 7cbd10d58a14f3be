"""A Spark Connect server from PySpark's wheel, and a standalone master with two workers."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.reconcile.spark_jars import OPTIONS_VARIABLE, kafka_source_jars
from pyconnect_sandbox.server import LOOPBACK, accepts_connections, free_port
from tests.support.eventually import eventually
from tests.support.servers.kafka import free_ports

START_S = 90.0
WORKERS = 2


def spark_home() -> Path:
    """Return the directory in which PySpark's wheel has put Spark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(next(iter(found.submodule_search_locations)))


def spark_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with variables of Spark's scripts; daemons get the archive's options too."""
    options = base.get(OPTIONS_VARIABLE, "")
    return {
        **base,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {options}",
    }


@contextmanager
def standalone_cluster(directory: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the master's URL once its workers have registered.

    Each worker has its own working directory; `worker-0/work` is that of the first one's executors.
    """
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    small = ("--cores", "1", "--memory", "600m")
    log = directory / "master.log"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, place: Path, *arguments: str) -> None:
        main_class = f"org.apache.spark.deploy.{name.lower()}.{name}"
        place.mkdir(exist_ok=True)
        with place.with_suffix(".log").open("wb") as stream:
            started.append(
                subprocess.Popen(
                    [str(spark_home() / "bin" / "spark-class"), main_class, *host, *arguments],
                    env=environment,
                    cwd=place,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    start_new_session=True,
                )
            )

    try:
        start("Master", directory / "master", "--port", str(port))
        eventually(lambda: "I have been elected leader" in log.read_text(), START_S)
        for number in range(WORKERS):
            worker = directory / f"worker-{number}"
            start("Worker", worker, *small, "--work-dir", str(worker / "work"), master)
        eventually(
            lambda: log.read_text().count("Registering worker") == WORKERS, START_S, log.read_text
        )
        yield master
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
# Pages of its UI that show requests, users and settings.
PAGES = ("connect", "jobs", "stages", "SQL", "environment")
HTTP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectServer:
    """A running server; `log` has all its output."""

    port: int
    ui: str
    log: Path

    @property
    def url(self) -> str:
        return f"sc://{LOOPBACK}:{self.port}"

    def running_jobs(self) -> int:
        """Return the number of running jobs of all its sessions."""
        return len(json.loads(self._get(f"{self._application()}/jobs?status=running")))

    def jobs(self) -> int:
        """Return the number of jobs that its sessions have run or run now."""
        return len(json.loads(self._get(f"{self._application()}/jobs")))

    def shown(self) -> str:
        """Return the text of its UI, including the details of every query, and of its log."""
        base = self._application()
        queries = json.loads(self._get(f"{base}/sql?details=true&length=1000"))
        pages = [self._get(f"{page}/") for page in PAGES]
        pages += [self._get(f"SQL/execution/?id={query['id']}") for query in queries]
        return "\n".join([*pages, json.dumps(queries), self._get(f"{base}/environment")]) + (
            self.log.read_text("utf-8", "replace")
        )

    def _application(self) -> str:
        [application] = json.loads(self._get("api/v1/applications"))
        return f"api/v1/applications/{application['id']}"

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.ui}/{path}", timeout=HTTP_S) as answer:
            text: str = answer.read().decode()
            return text


@contextmanager
def connect_server(
    directory: Path, environment: Mapping[str, str], master: str = "local[2]", **more: str
) -> Iterator[ConnectServer]:
    """Yield a server on a master once it listens; `more`: settings of its executors."""
    port, ui_port = free_ports(2)
    server = ConnectServer(
        port=port, ui=f"http://{LOOPBACK}:{ui_port}", log=directory / "connect-server.log"
    )
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.port": str(ui_port),
        "spark.port.maxRetries": "0",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        # No test runs long enough to profit from more compilation.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # The default is 200, each of them a task.
        "spark.sql.shuffle.partitions": "4",
        **{f"spark.executor.{name}": value for name, value in more.items()},
    }
    command = [
        *(str(spark_home() / "bin" / "spark-submit"), "--class", MAIN_CLASS),
        *("--master", master),
        *("--jars", ",".join(map(str, kafka_source_jars()))),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        "spark-internal",
    ]
    with server.log.open("wb") as output:
        process = subprocess.Popen(
            command,
            # Spark treats the main class as a daemon, whose memory is not the driver's.
            env={**spark_environment(environment), "SPARK_DAEMON_MEMORY": "1g"},
            cwd=server.log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        eventually(
            lambda: process.poll() is not None or accepts_connections(port),
            START_S,
            server.log.read_text,
        )
        assert process.poll() is None, server.log.read_text()
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
