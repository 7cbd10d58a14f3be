"""Every job through a real Spark Connect server that others use too."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_api import INT64_SCHEMA, SchemaBuilder, Struct
from pyconnect_cli.reconcile.spark_jars import avro_jars
from pyconnect_sandbox import ports
from pyconnect_sandbox.broker_properties import BrokerSecurity
from tests.support.eventually import eventually
from tests.support.kafka import Servers, SharedBroker
from tests.support.processes import run_python
from tests.support.proxy import Proxy
from tests.support.reconcile_command import RUN_S, Reconcile
from tests.support.seeding import Record, seed_topic
from tests.support.spark_connect import ConnectServer, connect_server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

UNREACHABLE_S = 120.0
NUMBER = ("--sequence", r"regex:n=(\d+)")
LONG = 200_000
ORDER = SchemaBuilder.struct().name("com.example.Order").field("id", INT64_SCHEMA).build()
PASSWORD = "hunter2-is-secret"
SHALLOW = """
import sys
from pathlib import Path
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.topics.reading import read_topics
from pyconnect_reconcile.spark.session import spark_session
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

# Avro's functions are in a jar that one of two sessions brings.
BESIDE_AVRO = """
import sys
from pathlib import Path
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.spark.session import spark_session
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """One server for the module: the sessions of the tests share it."""
    with connect_server(tmp_path_factory.mktemp("connect")) as running:
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

    def ask(self, url: str) -> tuple[str, ...]:
        """A run over the topic, by way of a server."""
        brokers = ("--kafka-bootstrap", self.bootstrap, "--kafka-properties", str(self.properties))
        return ("sequence", self.topic, *NUMBER, "--remote", url, *brokers)


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


def test_seeded_faults_are_found_over_connect(
    kafka_broker: SharedBroker, server: ConnectServer, reconcile: Reconcile, tmp_path: Path
) -> None:
    """A hole, a repetition, a lost and a foreign line, at their offsets and lines."""
    seed = seed_topic(kafka_broker.bootstrap_servers, partitions=2)
    texts = [f"n={n}" for n in range(40) if n not in {7, 8}]
    seed.write(lines(texts[:20]), outcome="commit")
    seed.write(lines(["n=20", "n=21"]), outcome="abort")
    [again] = seed.write(lines(["n=3"]))
    seed.write(lines(texts[20:]), outcome="commit")
    offsets = {number: offset for offset, number in enumerate(texts[:20])}
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    source.write_text("".join(f"{text}\n" for text in [*texts, "n=40", "n=3"]))
    written = [text for text in [*texts, "n=3"] if text != "n=11"]
    sink.write_text("".join(f"{text}\n" for text in [*written, "foreign"]))
    remote = ("--remote", server.url)
    started = {
        "sequence": reconcile.start("sequence", seed.topic, *NUMBER, "--unordered", *remote),
        "duplicates": reconcile.start("duplicates", seed.topic, *remote),
        "source": reconcile.start(
            "source-topic", "--topic", seed.topic, "--files", str(source), *remote
        ),
        "sink": reconcile.start("topic-sink", "--topic", seed.topic, "--files", str(sink), *remote),
    }
    ended = {name: reconcile.end(process) for name, process in started.items()}
    assert {name: each.code for name, each in ended.items()} == dict.fromkeys(ended, 1)
    twice = [(0, offsets["n=3"]), again]
    sequence = ended["sequence"].report
    assert sequence is not None
    assert [(f["kind"], f["first"], f["last"]) for f in sequence["findings"]] == [
        ("missing", 7, 8),
        ("repeated", 3, 3),
    ]
    assert ("repeated", twice) in ended["sequence"].found
    assert ended["duplicates"].found == [("duplicate", twice)]
    assert ended["source"].found == [("missing", [("source.txt", len(texts) + 1)])]
    assert sorted(ended["sink"].found) == [
        ("extra", [("sink.txt", len(written) + 1)]),
        ("missing", [(0, offsets["n=11"])]),
    ]


def test_offsets_avro_and_the_order_of_keys_are_audited_over_connect(
    kafka_broker: SharedBroker,
    server: ConnectServer,
    reconcile: Reconcile,
    schema_registry_url: str,
    tmp_path: Path,
) -> None:
    """A regression, a hole, and a key out of order; the session brings the jar for Avro."""
    bootstrap = kafka_broker.bootstrap_servers
    worker = seed_topic(bootstrap, config={"cleanup.policy": "compact"})
    key = json.dumps(["c", {"file": "a"}]).encode()
    back = worker.write([Record(b'{"position":%d}' % n, key=key) for n in (90, 40)])
    origin, copy = seed_topic(bootstrap), seed_topic(bootstrap)
    avro = AvroConverter()
    avro.configure({"schema.registry.url": schema_registry_url}, False)
    for seed, numbers in ((origin, (1, 2, 3, 5)), (copy, (1, 3, 2, 5))):
        values = [
            avro.from_connect_data(seed.topic, [], ORDER, Struct(ORDER).put("id", n))
            for n in numbers
        ]
        seed.write([Record(value, key=b"k") for value in values])
    avro.close()
    registry = ("--registry", schema_registry_url, "--jars", ",".join(map(str, avro_jars())))
    asked = [
        ("sequence", origin.topic, "--sequence", "avro:id", *registry),
        ("topic-topic", origin.topic, copy.topic, "--ordered", "--value", "avro", *registry),
    ]
    started = [reconcile.start(*each, "--remote", server.url) for each in asked]
    spec = {
        "job": "offsets",
        "offsets": {"worker": worker.topic, "known": ["c"]},
        "clusters": {"main": {"bootstrap": bootstrap}},
        "spark": {"remote": server.url},
    }
    document = tmp_path / "spec.json"
    document.write_text(json.dumps(spec))
    job = ("-m", "pyconnect_reconcile", str(document), "--report", str(tmp_path / "offsets"))
    offsets = run_python(job, os.environ, RUN_S)
    sequence, ordered = map(reconcile.end, started)
    assert offsets.returncode == 1, offsets.stderr
    [found] = json.loads((tmp_path / "offsets" / "report.json").read_text())["findings"]
    assert (found["kind"], [(copy["partition"], copy["offset"]) for copy in found["copies"]]) == (
        "regression",
        back,
    )
    assert sequence.found == [("missing", [])]
    assert ordered.found == [("disorder", [(0, 1), (0, 2)])]


def test_sessions_without_a_jar_run_beside_cached_plans_that_need_it(
    server: ConnectServer,
) -> None:
    """The server compares each query with the cached plans, by the classes of the query's session.

    Nothing else is cached, as when an audit of Avro is the first to cache a plan.
    """
    done = run_python(["-c", BESIDE_AVRO, server.url, *map(str, avro_jars())], os.environ, RUN_S)
    assert done.stdout == "3 [1]\n", done.stderr


def test_reports_are_written_by_the_client(
    kafka_broker: SharedBroker,
    server: ConnectServer,
    reconcile: Reconcile,
    spark: SparkSession,
) -> None:
    """The server's files are none of the report's; other jobs and the environment work as well."""
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write([Record(b"1", key=b"a"), Record(b"2", key=b"b"), Record(b"1", key=b"a")])
    other = seed_topic(kafka_broker.bootstrap_servers)
    other.write([Record(b"1", key=b"a"), Record(b"3", key=b"b")])
    remote = ("--remote", server.url, "--conf", "spark.sql.shuffle.partitions=3")
    started = [
        reconcile.start("duplicates", seed.topic, *remote),
        reconcile.start("transactions", seed.topic, *remote),
        reconcile.start("topic-topic", seed.topic, other.topic, "--upsert", *remote),
        reconcile.start(
            "completeness", "--tier", f"a=topic:{seed.topic}", "--tier", f"b=topic:{other.topic}",
            *remote,
        ),
    ]  # fmt: skip
    duplicates, transactions, upsert, completeness = map(reconcile.end, started)
    assert [each.code for each in (duplicates, transactions, upsert)] == [1, 0, 1]
    assert upsert.found == [("different", [(0, 1), (0, 1)])]
    assert completeness.report is not None
    assert (duplicates.directory / "findings" / "findings.parquet").is_dir()
    rows = spark.read.parquet(str(duplicates.directory / "findings" / "findings.parquet"))
    [row] = rows.collect()
    assert (row["kind"], [copy["offset"] for copy in row["copies"]]) == ("duplicate", [0, 2])


def test_the_address_may_be_in_the_environment(
    kafka_broker: SharedBroker, server: ConnectServer, tmp_path: Path
) -> None:
    """SPARK_REMOTE, as Spark's own tools read it: a token in it is on no command line."""
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write(lines(["n=1", "n=3"]))
    reconcile = Reconcile(
        tmp_path, PYCONNECT_KAFKA_BOOTSTRAP=seed.bootstrap, SPARK_REMOTE=server.url
    )
    ended = reconcile("sequence", seed.topic, *NUMBER)
    assert ended.code == 1, ended.err
    assert ended.found == [("missing", [])]


def test_ctrl_c_cancels_the_work_and_leaves_the_server(
    server: ConnectServer, reconcile: Reconcile, secured: Secured
) -> None:
    """Exit 130; the server runs nothing of it any more, has logged no secret and answers others."""
    process = reconcile.start(*secured.ask(server.url))
    eventually(server.running_jobs, RUN_S)
    process.send_signal(signal.SIGINT)
    ended = reconcile.end(process)
    assert (ended.code, ended.report) == (130, None)
    eventually(lambda: server.running_jobs() == 0, RUN_S)
    assert PASSWORD not in server.shown()
    answered = reconcile(*secured.ask(server.url)).report
    assert answered is not None
    assert answered["verdict"] == "agree"


def test_credentials_show_nowhere_on_a_shared_server(
    server: ConnectServer, reconcile: Reconcile, secured: Secured
) -> None:
    """Its UI shows requests as text and its log what becomes of them: never a password."""
    ended = reconcile(*secured.ask(server.url))
    assert ended.code == 0, ended.err
    # The UI cuts requests by their depth: this one it shows whole.
    arguments = (server.url, secured.topic, secured.bootstrap, str(secured.properties))
    counted = run_python(["-c", SHALLOW, *arguments], os.environ)
    assert counted.stdout == "2\n", counted.stderr
    shown = server.shown()
    assert "kafka.receive.buffer.bytes" in shown
    assert PASSWORD not in shown + ended.out + ended.err + json.dumps(ended.report)


def test_a_lost_server_gives_an_undecided_result(
    server: ConnectServer, reconcile: Reconcile, secured: Secured
) -> None:
    """Exit 11 and no report, long before PySpark would have given up."""
    with Proxy(server.port) as proxy:
        process = reconcile.start(*secured.ask(f"sc://{ports.LOOPBACK}:{proxy.port}"))
        eventually(server.running_jobs, RUN_S)
        proxy.cut()
        ended = reconcile.end(process)
    assert (ended.code, ended.report) == (11, None)
    assert "the connection to the Spark Connect server was lost" in ended.err


def test_where_no_server_is_it_says_so(kafka_broker: SharedBroker, reconcile: Reconcile) -> None:
    """Nobody listens; or somebody who does not speak gRPC; or the address is none."""
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write(lines(["n=1"]))

    ask = ("sequence", seed.topic, *NUMBER, "--remote")
    free = ports.free_port()
    with socket.create_server((ports.LOOPBACK, 0)) as silent:
        addresses = [f"{ports.LOOPBACK}:{port}" for port in (free, silent.getsockname()[1])]
        before = time.monotonic()
        started = [reconcile.start(*ask, f"sc://{each}/;token=hunter2") for each in addresses]
        started.append(reconcile.start(*ask, "sc://127.0.0.1:1/;token=hunter2="))
        *unanswered, refused = map(reconcile.end, started)
    assert time.monotonic() - before < UNREACHABLE_S
    for address, ended in zip(addresses, unanswered, strict=True):
        assert f"no Spark Connect server answers at {address}" in ended.err
    assert "is not sc://HOST:PORT" in refused.err
    assert [ended.code for ended in (*unanswered, refused)] == [11, 11, 2]
    for ended in (*unanswered, refused):
        assert ended.report is None
        assert "hunter2" not in ended.out + ended.err


def test_settings_that_a_shared_server_cannot_take_are_refused(
    kafka_broker: SharedBroker, server: ConnectServer, reconcile: Reconcile
) -> None:
    """Settings of its JVM and packages are named with where they belong."""
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
