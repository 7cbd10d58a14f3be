"""Every audit on a real standalone cluster: a master and two workers in separate directories."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import pyconnect_reconcile
from pyconnect_cli.reconcile.spark_jars import (
    OPTIONS_VARIABLE,
    SparkArchive,
    avro_jars,
    kafka_source_jars,
)
from tests.support.audits.every_audit import SeededAudit, check, every_audit, specs
from tests.support.commands.processes import python_environment
from tests.support.commands.reconcile_command import (
    QUICK_CONF,
    RUNS_S,
    ended_runs,
    run_specs,
    written_specs,
)
from tests.support.seeds import LONG
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.spark_connect import (
    WORKERS,
    connect_server,
    spark_environment,
    spark_home,
    standalone_cluster,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

OF_ALL_SIDES = {"sequence", "source-topic", "topic-sink"}


def jars() -> list[str]:
    return [*map(str, (*kafka_source_jars(), *avro_jars()))]


class Cluster:
    """A running cluster; `master` is its URL."""

    def __init__(self, directory: Path, environment: Mapping[str, str], master: str) -> None:
        self.directory = directory
        self.environment = environment
        self.master = master
        self.java = f"-XX:TieredStopAtLevel=1 {environment[OPTIONS_VARIABLE]}"
        self._before: set[Path] = set()

    def settings(self) -> dict[str, str]:
        """Return session settings that require both executors."""
        return {
            "spark.executor.memory": "512m",
            "spark.executor.defaultJavaOptions": self.java,
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.cores.max": str(WORKERS),
            **QUICK_CONF,
            "spark.ui.enabled": "false",
        }

    def executors(self) -> int:
        """Return the number of workers that have run an executor since the last call."""
        logs = set(self.directory.glob("worker-*/work/app-*/*/stderr"))
        new, self._before = logs - self._before, logs
        return len({log.relative_to(self.directory).parts[0] for log in new})


@pytest.fixture(scope="module")
def cluster(
    spark_archive: SparkArchive, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    environment = spark_environment(spark_archive.environment())
    with standalone_cluster(directory, environment) as master:
        yield Cluster(directory, environment, master)


@pytest.fixture(scope="module")
def audits(
    kafka_broker: SharedBroker, schema_registry_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[SeededAudit]:
    directory = tmp_path_factory.mktemp("seeds")
    return every_audit(kafka_broker.bootstrap_servers, schema_registry_url, directory)


@pytest.mark.long
def test_every_audit_runs_in_client_mode(
    cluster: Cluster, audits: Sequence[SeededAudit], kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Executors on both workers find the same as a local session.

    Without --long only the audits run that read more than topics or ask a registry.
    """
    if not LONG:
        audits = [audit for audit in audits if audit.asked["job"] in OF_ALL_SIDES]
    spark = {"master": cluster.master, "conf": cluster.settings(), "jars": jars()}
    asked = specs(audits, kafka_broker.bootstrap_servers, spark)
    check(audits, run_specs(asked, tmp_path / "runs"))
    assert cluster.executors() == WORKERS


@pytest.mark.long(only=True)
def test_every_audit_runs_under_spark_submit(
    cluster: Cluster, audits: Sequence[SeededAudit], kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Paths of specs and reports are relative to the driver's directory, not a worker's."""
    asked = specs(audits, kafka_broker.bootstrap_servers, {})
    arguments = written_specs(asked, tmp_path / "runs")
    settings = cluster.settings().items()
    done = subprocess.run(
        [
            str(spark_home() / "bin" / "spark-submit"),
            *("--master", cluster.master, "--jars", ",".join(jars())),
            *(part for key, value in settings for part in ("--conf", f"{key}={value}")),
            str(Path(pyconnect_reconcile.__file__).parent / "__main__.py"),
            *(each.removeprefix(f"{tmp_path}/runs/") for each in arguments),
        ],
        env={**python_environment(cluster.environment), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path / "runs",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=RUNS_S,
    )
    check(audits, ended_runs(done, len(asked), tmp_path / "runs"))
    assert cluster.executors() == WORKERS


@pytest.mark.long(only=True)
def test_every_audit_runs_through_spark_connect(
    cluster: Cluster, audits: Sequence[SeededAudit], kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A Spark Connect server finds the same with the cluster's executors."""
    memory = {"memory": "512m", "defaultJavaOptions": cluster.java}
    environment = cluster.environment
    with connect_server(tmp_path, environment, cluster.master, **memory) as server:
        spark = {"remote": server.url, "jars": [*map(str, avro_jars())]}
        asked = specs(audits, kafka_broker.bootstrap_servers, spark)
        check(audits, run_specs(asked, tmp_path / "runs"))
    assert cluster.executors() >= 1
