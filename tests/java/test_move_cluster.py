"""Java clusters that are moved to agents worker by worker, and back, while connectors run.

The page docs/how-to/move-a-java-cluster.md is followed. The cluster of three with Debezium and
MirrorMaker takes minutes: `scripts/test --long` has it.
"""

import json
import shutil
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import sink_config, source_config
from tests.support.agents.rolled_cluster import RolledCluster
from tests.support.chaos.chaos_lines import LineReader, SteadyLines
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_plugin_jars import file_connectors
from tests.support.plugins.maven_plugins import DEBEZIUM, MIRROR, location_of
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.java, pytest.mark.timeout(1000)]

WAIT_S = 150
ROW_S = 0.05
JAVA_FILES = "org.apache.kafka.connect.file.FileStreamSourceConnector"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Lines:
    """A file that grows, its exactly-once source, and a sink that copies what readers see."""

    def __init__(self, bootstrap_servers: str, directory: Path) -> None:
        self.topic = unique_name("lines")
        self.file, self.copy = directory / "lines.txt", directory / "copy.txt"
        self.file.touch()
        create_topics(bootstrap_servers, [self.topic])
        self._reader = LineReader(bootstrap_servers, [self.topic])
        self._lines = SteadyLines([self.file], 50, seed=1)
        self._lines.start()

    def configs(self) -> dict[str, dict[str, str]]:
        source = {
            **source_config(self.file, self.topic),
            "connector.class": JAVA_FILES,
            "exactly.once.support": "required",
        }
        sink = {
            **sink_config(self.copy, self.topic),
            "consumer.override.isolation.level": "read_committed",
        }
        return {"lines": source, "copies": sink}

    def wait_for_more(self) -> None:
        """Until reader and sink have a line that is not written yet."""
        last = self._lines.written[self.file]
        eventually(lambda: self._seen()[-1:] > [last] and last + 1 in self._copied(), WAIT_S)

    def finish(self) -> None:
        """Every line was seen once and in order, and the sink has all."""
        self._lines.finish()
        expected = list(range(1, self._lines.written[self.file] + 1))
        eventually(
            lambda: self._seen()[-1:] == expected[-1:],
            WAIT_S,
            lambda: (self._seen()[-3:], expected[-1]),
        )
        assert self._seen() == expected
        eventually(lambda: set(self._copied()) == set(expected), WAIT_S)

    def close(self) -> None:
        self._lines.finish()
        self._reader.close()

    def _seen(self) -> list[int]:
        self._reader.read(0.2)
        return self._reader.seen[self.topic]

    def _copied(self) -> list[int]:
        found = self.copy.read_text() if self.copy.exists() else ""
        return [int(line) for line in found.splitlines()]


class Rows:
    """A table that grows, and a topic of another cluster: Debezium's and MirrorMaker's sources."""

    def __init__(self, bootstrap_servers: str, origin: str, postgres: PostgresServer) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._origin = origin
        self._postgres = postgres
        self._database = postgres.new_database()
        self._prefix, self._alias = unique_name("pg"), unique_name("origin")
        self._table, self._topic = f"{self._prefix}.public.numbers", unique_name("orders")
        self._mirrored = f"{self._alias}.{self._topic}"
        self._written = 0
        create_topics(origin, [self._topic])
        create_topics(bootstrap_servers, [self._table])
        with postgres.connect(self._database) as rows:
            rows.execute("CREATE TABLE numbers (id int PRIMARY KEY)")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, name="rows", daemon=True)
        self._thread.start()

    def configs(self) -> dict[str, dict[str, str]]:
        debezium = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.hostname": "127.0.0.1",
            "database.port": str(self._postgres.port),
            "database.user": USER,
            "database.password": PASSWORD,
            "database.dbname": self._database,
            "topic.prefix": self._prefix,
            "slot.name": self._database,
            "publication.name": self._database,
            "poll.interval.ms": "50",
            "exactly.once.support": "required",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        }
        mirror = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": self._alias,
            "target.cluster.alias": "target",
            "source.cluster.bootstrap.servers": self._origin,
            "target.cluster.bootstrap.servers": self._bootstrap_servers,
            "topics": self._topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "consumer.isolation.level": "read_committed",
            "exactly.once.support": "required",
            **{f"{kind}.converter": BYTES for kind in ("key", "value", "header")},
        }
        return {"debezium": debezium, "mirror": mirror}

    def wait_for_more(self) -> None:
        last = self._written
        eventually(lambda: self._rows()[-1:] > [last], WAIT_S, self._ends)
        eventually(lambda: self._orders()[-1:] > [last], WAIT_S, self._ends)

    def finish(self) -> None:
        """Readers of committed records agree with the table and with the other cluster."""
        self.close()
        with self._postgres.connect(self._database) as rows:
            table = rows.execute("SELECT id FROM numbers ORDER BY id").fetchall()
        expected = [number for (number,) in table]
        orders = [int(r.value() or b"") for r in read_topic(self._origin, self._topic)]
        eventually(lambda: len(self._rows()) >= len(expected), WAIT_S, self._ends)
        eventually(lambda: len(self._orders()) >= len(orders), WAIT_S, self._ends)
        assert self._rows() == expected == list(range(1, self._written + 1))
        assert self._orders() == orders == expected

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._origin})
        with self._postgres.connect(self._database) as rows:
            for number in count(1):
                if self._stopping.wait(ROW_S):
                    return
                rows.execute(f"INSERT INTO numbers VALUES ({number})".encode())
                producer.produce(self._topic, str(number).encode())
                assert producer.flush(60) == 0
                self._written = number

    def _rows(self) -> list[int]:
        records = read_topic(self._bootstrap_servers, self._table, committed=True)
        return [json.loads(record.value() or b"")["id"] for record in records]

    def _orders(self) -> list[int]:
        records = read_topic(self._bootstrap_servers, self._mirrored, committed=True)
        return [int(record.value() or b"") for record in records]

    def _ends(self) -> object:
        return self._written, self._rows()[-1:], self._orders()[-1:]


@pytest.fixture
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    file_connectors(kafka_runtime, path)
    return path


@pytest.fixture
def lines(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Lines]:
    made = Lines(kafka_broker.bootstrap_servers, tmp_path)
    yield made
    made.close()


def move_and_return(cluster: RolledCluster, *sources: Lines | Rows) -> None:
    """Follow the page, there and back."""
    command = cluster.command()
    file = str(cluster.worker_file())
    for source in sources:
        for name, config in source.configs().items():
            cluster.worker.create(name, config)
    readiness = command("agent", "readiness", "--worker-config", file)
    assert readiness == 0, command.out + command.err

    def progress() -> None:
        for source in sources:
            source.wait_for_more()

    progress()
    before = cluster.export()
    cluster.roll("agent", before, progress)
    cluster.roll("java", before, progress)
    for source in sources:
        source.finish()


@pytest.mark.long(only=True)
def test_one_worker_is_moved_and_moved_back(
    servers: Servers,
    kafka_broker: SharedBroker,
    plugin_path: Path,
    lines: Lines,
    tmp_path: Path,
) -> None:
    """Configs, offsets and exactly-once delivery stay."""
    properties = {"plugin.path": str(plugin_path)}
    cluster = RolledCluster(servers, kafka_broker.bootstrap_servers, tmp_path, 1, properties)
    move_and_return(cluster, lines)


@pytest.fixture
def rows(kafka_broker: SharedBroker, other_broker: SharedBroker) -> Iterator[Rows]:
    origin = other_broker.bootstrap_servers
    with running_postgres() as postgres:
        made = Rows(kafka_broker.bootstrap_servers, origin, postgres)
        yield made
        made.close()


@pytest.mark.long(only=True)
def test_three_workers_are_moved_and_moved_back(
    servers: Servers,
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    plugin_path: Path,
    lines: Lines,
    rows: Rows,
    tmp_path: Path,
) -> None:
    """Debezium, MirrorMaker, a file source and a sink go on, whichever worker they are on."""
    for plugin in (DEBEZIUM, MIRROR):
        shutil.copytree(location_of(plugin), plugin_path / plugin.name)
    properties = {"plugin.path": str(plugin_path)}
    cluster = RolledCluster(servers, kafka_broker.bootstrap_servers, tmp_path, 3, properties)
    move_and_return(cluster, lines, rows)
