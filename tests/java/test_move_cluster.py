"""Java clusters that are moved to agents worker by worker, and back, while connectors run.

The tests follow docs/how-to/move-a-java-cluster.md. The cluster of three with Debezium and
MirrorMaker takes minutes: `scripts/test --long` has it. Each worker has a host of its own, whose
port and properties file stay, whichever kind runs there. The file for agents has one more line.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import javaproperties
import pytest
from confluent_kafka import Producer

from pyconnect_sandbox.connect_worker import ConnectWorker, worker_properties
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import free_port
from tests.support.agents.agent import STRING_CONVERTER, sink_config, source_config
from tests.support.agents.rest_client import WorkerRest
from tests.support.chaos.chaos_lines import LineReader, SteadyLines
from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import file_connectors
from tests.support.plugins.maven_plugins import DEBEZIUM, MIRROR, location_of
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics, read_topic

WAIT_S = 150


class RolledCluster:
    """A cluster that begins with `size` Java workers."""

    def __init__(
        self,
        servers: Servers,
        bootstrap_servers: str,
        directory: Path,
        size: int,
        properties: Mapping[str, str],
    ) -> None:
        self.group_id = unique_name("moved")
        self._servers = servers
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._properties = {
            **QUICK_GROUP,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            "exactly.once.source.support": "enabled",
            **properties,
        }
        self._ports = [free_port() for _ in range(size)]
        self._workers: list[WorkerRest[ConnectWorker]] = [
            self._start("java", port) for port in self._ports
        ]

    @property
    def worker(self) -> WorkerRest[ConnectWorker]:
        return self._workers[-1]

    def workers(self) -> Sequence[str]:
        """Return the worker ids."""
        return [f"127.0.0.1:{port}" for port in self._ports]

    def command(self) -> Command:
        return Command(self._directory, self.worker.url)

    def worker_file(self) -> Path:
        """Return the properties file of a Java worker."""
        file = self._directory / "worker.properties"
        common = worker_properties(self._bootstrap_servers, self.group_id)
        file.write_text(javaproperties.dumps({**common, **self._properties}))
        return file

    def export(self) -> Path:
        """Export the configs before the move, and return the directory."""
        before = self._directory / "before"
        command = self.command()
        arguments = ("connectors", "export", "--all", "--dir", str(before), "--show-secrets")
        assert command(*arguments) == 0, command.err
        return before

    def roll(self, kind: str, before: Path, progress: Callable[[], None]) -> None:
        """Replace each worker in turn; continue when everything runs and `progress` returns.

        The partitions of offsets must not change: a partition in another form would be read by the
        next worker alone.
        """
        partitions = eventually(
            lambda: found if all((found := self.partitions()).values()) else None,
            WAIT_S,
            self.partitions,
        )
        for number, port in enumerate(self._ports):
            self._workers[number].process.stop()
            self._workers[number] = self._start(kind, port)
            self._check(self._workers[number], before)
            progress()
            eventually(lambda: self.partitions() == partitions, WAIT_S, self.partitions)

    def partitions(self) -> Mapping[str, Sequence[str]]:
        """Return the partitions in each connector's offsets as JSON; empty without offsets."""
        answers = {
            name: self.worker.call("GET", f"/connectors/{name}/offsets")
            for name in self.worker.get("/connectors")
        }
        return {
            name: sorted(
                json.dumps(each["partition"], sort_keys=True) for each in answer.json()["offsets"]
            )
            if answer.status == 200
            else []
            for name, answer in answers.items()
        }

    def _check(self, worker: WorkerRest[ConnectWorker], before: Path) -> None:
        """Run the commands of the page against the new worker."""
        command = Command(self._directory, worker.url)
        names = worker.get("/connectors")
        for name in names:
            eventually(
                lambda name=name: self._runs(worker, name),
                WAIT_S,
                lambda name=name: worker.call("GET", f"/connectors/{name}/status").text,
            )
        assert command("connectors", "wait", "--all", "--for", "RUNNING") == 0, command.err
        assert command("tasks", "list", "--state", "FAILED", "-o", "name") == 0, command.err
        assert command.out == ""
        assert command("connectors", "diff", "-f", str(before)) == 0, command.out + command.err

    def _runs(self, worker: WorkerRest[ConnectWorker], name: str) -> bool:
        answer = worker.call("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return False
        status = answer.json()
        parts = [status["connector"], *status["tasks"]]
        states = {part["state"] for part in parts}
        return len(parts) > 1 and states == {"RUNNING"}

    def _start(self, kind: str, port: int) -> WorkerRest[ConnectWorker]:
        properties = {**self._properties, "listeners": f"http://127.0.0.1:{port}"}
        bootstrap, group_id = self._bootstrap_servers, self.group_id
        if kind == "java":
            return WorkerRest(self._servers.java_worker(bootstrap, group_id, properties=properties))
        properties["agent.java.kafka.home"] = str(self._servers.runtime.libs)
        return WorkerRest(self._servers.agent(bootstrap, group_id, properties=properties))


pytestmark = [pytest.mark.java, pytest.mark.timeout(1000)]

ROW_S = 0.05
JAVA_FILES = "org.apache.kafka.connect.file.FileStreamSourceConnector"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Lines:
    """A growing file, its exactly-once source, and a sink that copies the committed lines."""

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
        """Wait until reader and sink have a line that is not written yet."""
        last = self._lines.written[self.file]
        eventually(lambda: self._seen()[-1:] > [last] and last + 1 in self._copied(), WAIT_S)

    def finish(self) -> None:
        """Check that every line was seen once and in order, and that the sink has all lines."""
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
    """A growing table for Debezium, and a growing topic of another cluster for MirrorMaker."""

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
        """Check that committed records agree with the table and with the other cluster."""
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
    """Follow the page in both directions."""
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
    servers: Servers, kafka_broker: SharedBroker, plugin_path: Path, lines: Lines, tmp_path: Path
) -> None:
    """A moved worker keeps configs, offsets and exactly-once delivery."""
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
    """Debezium, MirrorMaker, a file source and a sink continue on every worker."""
    for plugin in (DEBEZIUM, MIRROR):
        shutil.copytree(location_of(plugin), plugin_path / plugin.name)
    properties = {"plugin.path": str(plugin_path)}
    cluster = RolledCluster(servers, kafka_broker.bootstrap_servers, tmp_path, 3, properties)
    move_and_return(cluster, lines, rows)
