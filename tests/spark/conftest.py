"""One Spark session for the tests of a process: a JVM takes longer than most of them."""

import io
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.reconcile.spark_jars import (
    JDBC,
    OPTIONS_VARIABLE,
    SparkArchive,
    avro_jars,
    iceberg_jars,
    jdbc_jars,
    kafka_source_jars,
    require_java,
)
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.sessions import spark_session
from pyconnect_reconcile.spec import SparkSettings
from tests.support.audits.audits import Audit
from tests.support.eventually import eventually
from tests.support.servers.kafka import SharedBroker

ARCHIVE_S = 240.0
# Quick compilation: no test runs long enough for the better one. Each partition of a shuffle is a
# task, and Spark describes each plan, although its UI is off.
CONF = {
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": (
        "-XX:TieredStopAtLevel=1 -Dderby.stream.error.file=/dev/null"
    ),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
}


@pytest.fixture(scope="session")
def spark_archive() -> SparkArchive:
    """The archive of Spark's classes, which another test process may make first."""
    archive = SparkArchive(require_java(), os.environ)

    def made() -> bool:
        archive.make()
        return archive.is_complete()

    eventually(made, ARCHIVE_S)
    return archive


@pytest.fixture(scope="session")
def spark(
    spark_archive: SparkArchive, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A local session with Spark's Kafka source, Avro, Iceberg, and database drivers."""
    drivers = {jar for name in JDBC for jar in jdbc_jars(f"jdbc:{name}:")}
    jars = [*kafka_source_jars(), *avro_jars(), *drivers]
    with suppress(PreconditionFailed):  # Iceberg supports a new release of Spark later.
        jars += iceberg_jars()
    settings = SparkSettings(master="local[2]", conf=CONF, jars=tuple(map(str, jars)))
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv(OPTIONS_VARIABLE, spark_archive.environment()[OPTIONS_VARIABLE])
        session = stack.enter_context(
            spark_session(
                settings,
                app_name="tests",
                work_directory=tmp_path_factory.mktemp("spark"),
                events=Events(machine=True, stream=io.StringIO()),
            )
        )
        patch.undo()
        yield session


@pytest.fixture
def audit(spark: SparkSession, kafka_broker: SharedBroker, tmp_path: Path) -> Audit:
    """Jobs in the session's Spark against the session's broker."""
    return Audit(spark, kafka_broker.bootstrap_servers, tmp_path)


def pytest_itemcollected(item: pytest.Item) -> None:
    # py4j leaves its sockets to the garbage collector.
    item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
