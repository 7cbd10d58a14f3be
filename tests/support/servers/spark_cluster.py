"""A standalone Spark master with two workers, from PySpark's wheel."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.reconcile.spark_jars import OPTIONS_VARIABLE
from pyconnect_sandbox.server import free_port
from tests.support.eventually import eventually

START_S = 90.0
WORKERS = 2


def spark_home() -> Path:
    """Return the directory in which PySpark's wheel has put Spark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(next(iter(found.submodule_search_locations)))


def spark_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with what Spark's own scripts read; daemons get the archive's options, too."""
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

    Each worker has a directory of its own as its working directory, `worker-0/work` is that of the
    first one's executors.
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
