"""Audits through a real Spark Connect server that has other users; `test_standalone` runs all."""

import io
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_api import INT64_SCHEMA, SchemaBuilder
from pyconnect_cli.reconcile.spark_jars import SparkArchive, avro_jars
from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.sessions import spark_session
from pyconnect_reconcile.spec import SparkSettings
from pyconnect_sandbox.broker import BrokerSecurity
from pyconnect_sandbox.server import LOOPBACK, free_port
from tests.support.audits.seeding import Record, seed_topic
from tests.support.commands.processes import run_python
from tests.support.commands.reconcile_command import RUN_S, Reconcile
from tests.support.eventually import eventually
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.proxy import Proxy
from tests.support.servers.spark_connect import ConnectServer, connect_server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

UNREACHABLE_S = 120.0
NUMBER = ("--sequence", r"regex:n=(\d+)")
LONG = 100_000
ORDER = SchemaBuilder.struct().name("com.example.Order").field("id", INT64_SCHEMA).build()
PASSWORD = "hunter2-is-secret"
SHALLOW = """
import sys
from pathlib import Path
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.bench import read_topics
from pyconnect_reconcile.sessions import spark_session
from pyconnect_reconcile.topics.snapshot import PartitionRange
from pyconnect_reconcile.spec import Cluster, SparkSettings
url, topic, bootstrap, properties = sys.argv[1:]
part = PartitionRange(
    topic=topic, partition=0, start=0, end=2, earliest=0, last_stable=2, high_watermark=2
)
cluster = Cluster(bootstrap=bootstrap, properties=properties)
settings, events = SparkSettings(remote=url), Events(machine=False)
with spark_session(settings, app_name="x", work_directory=Path("."), events=events) as spark:
    print(read_topics(spark, cluster, [part], isolation="read_committed").count())
"""

# The functions for Avro are in a jar that only one of two sessions brings.
BESIDE_AVRO = """
import sys
from pathlib import Path
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.sessions import spark_session
from pyconnect_reconcile.spec import SparkSettings
url, *jars = sys.argv[1:]
def session(*jars):
    settings = SparkSettings(remote=url, jars=jars)
    return spark_session(
        settings, app_name="x", work_directory=Path("."), events=Events(machine=False)
    )
with session() as other:
    other.catalog.clearCache()
    with session(*jars) as brings:
        bytes_of_longs = brings.range(1).selectExpr("X'02' AS value", "id").where("id < 5")
        longs = bytes_of_longs.selectExpr("from_avro(value, '\\"long\\"', map()) AS n").persist()
        print(other.range(3).count(), [row.n for row in longs.collect()])
        longs.unpersist()
"""


@pytest.fixture(scope="module")
def server(
    spark_archive: SparkArchive, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectServer]:
    """One server for all tests of the module."""
    environment = spark_archive.environment()
    with connect_server(tmp_path_factory.mktemp("connect"), environment) as running:
        yield running


@pytest.fixture
def reconcile(kafka_broker: SharedBroker, tmp_path: Path) -> Reconcile:
    return Reconcile(tmp_path, PYCONNECT_KAFKA_BOOTSTRAP=kafka_broker.bootstrap_servers)


@dataclass(frozen=True)
class Secured:
    """A topic with work for seconds, on brokers that ask for a password."""

    topic: str
    bootstrap: str
    properties: Path

    def ask(self) -> tuple[str, ...]:
        """Return the arguments of a run over the topic."""
        brokers = ("--kafka-bootstrap", self.bootstrap, "--kafka-properties", str(self.properties))
        return ("sequence", self.topic, *NUMBER, *brokers)


@pytest.fixture(scope="module")
def secured(module_servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Secured:
    directory = tmp_path_factory.mktemp("secured")
    properties = directory / "client.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="auditor" password="{PASSWORD}";\n'
    )
    broker = module_servers.broker(security=BrokerSecurity(sasl_users={"auditor": PASSWORD}))
    seed = seed_topic(broker.bootstrap_servers)
    seed.write([Record(f"n={n}".encode()) for n in range(LONG)])
    return Secured(seed.topic, broker.sasl_bootstrap_servers, properties)


def lines(texts: list[str]) -> list[Record]:
    return [Record(text.encode()) for text in texts]


def test_sessions_without_a_jar_run_beside_cached_plans_that_need_it(server: ConnectServer) -> None:
    """A session without a jar is not disturbed by another one's cached plan that needs it.

    The server compares each query with the cached plans, with the classes of the query's session.
    No other plan is cached here, as when an audit of Avro is the first to cache one.
    """
    done = run_python(["-c", BESIDE_AVRO, server.url, *map(str, avro_jars())], os.environ, RUN_S)
    assert done.stdout == "3 [1]\n", done.stderr


def test_ctrl_c_cancels_the_work_and_leaves_the_server(
    server: ConnectServer, reconcile: Reconcile, secured: Secured
) -> None:
    """Ctrl-C ends the command and its work on the server, whose UI and log show no secret."""
    process = reconcile.start(*secured.ask(), "--remote", server.url)
    eventually(server.running_jobs, RUN_S)
    process.send_signal(signal.SIGINT)
    ended = reconcile.end(process)
    assert ended.code == 130
    assert ended.report is None or ended.report["verdict"] == "unknown"
    eventually(lambda: server.running_jobs() == 0, RUN_S)
    assert PASSWORD not in server.shown()


def test_credentials_show_nowhere_on_a_shared_server(
    server: ConnectServer, secured: Secured, tmp_path: Path
) -> None:
    """A password is neither in the server's UI, which shows requests as text, nor in its log.

    The address is in the environment, so that a token in it is on no command line.
    """
    before = server.jobs()
    ended = Reconcile(tmp_path, SPARK_REMOTE=server.url)(*secured.ask())
    assert ended.code == 0, ended.err
    assert server.jobs() > before
    # The UI cuts deep requests, but shows this one whole.
    arguments = (server.url, secured.topic, secured.bootstrap, str(secured.properties))
    counted = run_python(["-c", SHALLOW, *arguments], os.environ)
    assert counted.stdout == "2\n", counted.stderr
    shown = server.shown()
    assert "kafka.receive.buffer.bytes" in shown
    assert PASSWORD not in shown + ended.out + ended.err + json.dumps(ended.report)


@pytest.mark.long(only=True)
def test_a_lost_server_gives_an_undecided_result(
    server: ConnectServer, reconcile: Reconcile, secured: Secured
) -> None:
    """A lost connection ends the run with code 11 and a report, long before PySpark gives up."""
    with Proxy(server.port) as proxy:
        process = reconcile.start(*secured.ask(), "--remote", f"sc://{LOOPBACK}:{proxy.port}")
        eventually(server.running_jobs, RUN_S)
        proxy.cut()
        ended = reconcile.end(process)
    assert (ended.code, ended.found) == (11, [("failed", [])])
    assert "the connection to the Spark Connect server was lost" in ended.err


def test_where_no_server_is_it_says_so(kafka_broker: SharedBroker, reconcile: Reconcile) -> None:
    """An address that is silent, closed or invalid is an error that does not show its token."""
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write(lines(["n=1"]))

    ask = ("sequence", seed.topic, *NUMBER, "--remote")
    free = free_port()
    with socket.create_server((LOOPBACK, 0)) as silent:
        addresses = [f"{LOOPBACK}:{port}" for port in (free, silent.getsockname()[1])]
        before = time.monotonic()
        started = [reconcile.start(*ask, f"sc://{each}/;token=hunter2") for each in addresses]
        started.append(reconcile.start(*ask, "sc://127.0.0.1:1/;token=hunter2="))
        *unanswered, refused = map(reconcile.end, started)
    assert time.monotonic() - before < UNREACHABLE_S
    for address, ended in zip(addresses, unanswered, strict=True):
        assert f"no Spark Connect server answers at {address}" in ended.err
    assert "is not sc://HOST:PORT" in refused.err
    assert [ended.code for ended in (*unanswered, refused)] == [11, 11, 2]
    assert refused.report is None
    for ended in (*unanswered, refused):
        assert "hunter2" not in ended.out + ended.err


def test_settings_that_a_shared_server_cannot_take_are_refused(
    kafka_broker: SharedBroker, server: ConnectServer, reconcile: Reconcile
) -> None:
    """Settings of the server's JVM, and packages, are usage errors."""
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write(lines(["n=1"]))
    ask = ("sequence", seed.topic, *NUMBER, "--remote", server.url)
    started = [
        reconcile.start(*ask, "--conf", "spark.driver.memory=8g"),
        reconcile.start(*ask, "--packages", "org.example:x:1"),
    ]
    memory, packages = map(reconcile.end, started)
    assert (memory.code, "refuses the setting spark.driver.memory" in memory.err) == (2, True)
    assert (packages.code, "does not accept packages" in packages.err) == (2, True)


def test_spark_connect_names_the_packages_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error for a missing package of the client has the command that installs it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    session = spark_session(
        SparkSettings(remote="sc://127.0.0.1:1"),
        app_name="tests",
        work_directory=tmp_path,
        events=Events(machine=True, stream=io.StringIO()),
    )
    with pytest.raises(ReconcileError, match="Spark Connect needs more packages") as refused:
        session.__enter__()
    assert refused.value.hint == f"install them: {install_command('reconcile-connect')}"
