"""Debezium's PostgreSQL source and JDBC sink in an agent whose processes are killed."""

import json
from collections.abc import Iterator

import psutil
import psycopg
import pytest

from tests.support.agents.agent import Agent, Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import DEBEZIUM, JDBC_SINK, location_of
from tests.support.seeds import chosen
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import (
    aborted_transactions,
    create_topics,
    open_records,
    produce,
    read_topic,
)

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(850)]

WAIT_S = 150
SNAPSHOT, STREAMED = 5_000, 1_000
# The transaction must still be open when its process is killed, however slow the machine is.
NEVER = {"transaction.boundary.interval.ms": "3600000"}
STEP = 2_000
# The processes to kill during Debezium's snapshot, while it streams, and while the sink writes.
SNAPSHOT_VICTIMS = chosen(("java",), long=("python", "worker"))
SOURCE_VICTIMS = chosen(("python",), long=("java", "worker"))
SINK_VICTIMS = chosen(("java",), long=("python", "worker"))
TABLE = "copied"
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int32", "optional": False},
        {"field": "text", "type": "string", "optional": True},
    ],
}
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def agent(module_agents: Agents) -> Agent:
    locations = [location_of(plugin).parent for plugin in (DEBEZIUM, JDBC_SINK)]
    properties = {
        **QUICK_GROUP,
        "plugin.path": ",".join(map(str, locations)),
        "exactly.once.source.support": "enabled",
        # The stopped task must have time to commit, however slow the machine is.
        "task.shutdown.graceful.timeout.ms": "60000",
        "value.converter": JSON,
    }
    return module_agents.start(properties=properties)


def test_rows_arrive_once(
    agent: Agent, postgres: PostgresServer, kafka_broker: SharedBroker
) -> None:
    """Each row arrives once and in order, though processes are killed within transactions.

    Debezium has no offsets within its snapshot: the whole snapshot is in the aborted transaction.
    """
    database, prefix, name = postgres.new_database(), unique_name("pg"), unique_name("debezium")
    topic = f"{prefix}.public.numbers"
    bootstrap = kafka_broker.bootstrap_servers
    create_topics(bootstrap, [topic])
    config = _source(postgres, database, prefix)
    with postgres.connect(database) as rows:
        rows.execute("CREATE TABLE numbers (id int PRIMARY KEY, text text)")
        _insert(rows, 1, SNAPSHOT)
        agent.create(name, config | NEVER)
        deaths = Deaths(agent, name, bootstrap, topic)
        for victim in SNAPSHOT_VICTIMS:
            deaths.kill_in_transaction(victim)
        # Nothing of the snapshot is committed before its end.
        eventually(
            lambda: open_records(bootstrap, topic) == SNAPSHOT,
            WAIT_S,
            lambda: (open_records(bootstrap, topic), agent.get(_status(name))),
        )
        for number, victim in enumerate(SOURCE_VICTIMS):
            agent.start_with(name, config | NEVER, "RUNNING", "RUNNING")
            first = SNAPSHOT + number * STREAMED + 1
            _insert(rows, first, first + STREAMED - 1)
            deaths.kill_in_transaction(victim)
        agent.start_with(name, config, "RUNNING", "RUNNING")
        rows.execute("ALTER TABLE numbers ADD COLUMN more int")
        last_id = SNAPSHOT + len(SOURCE_VICTIMS) * STREAMED + 1
        rows.execute(f"INSERT INTO numbers VALUES ({last_id}, 'last', 7)".encode())
        (count,) = rows.execute("SELECT count(*) FROM numbers").fetchone() or (0,)
    eventually(
        lambda: _ids(kafka_broker, topic)[-1] == count,
        WAIT_S,
        lambda: (len(_ids(kafka_broker, topic)), agent.get(_status(name))),
    )
    assert _ids(kafka_broker, topic) == list(range(1, count + 1))
    assert aborted_transactions(bootstrap, [topic]) == deaths.count
    last = read_topic(bootstrap, topic, committed=True)[-1]
    assert json.loads(last.value() or b"")["more"] == 7
    agent.do("DELETE", f"/connectors/{name}")


@pytest.mark.long(only=True)
def test_each_record_is_a_row(
    agent: Agent, postgres: PostgresServer, kafka_broker: SharedBroker
) -> None:
    """No record is lost or doubled, though a process is killed while the sink writes."""
    bootstrap = kafka_broker.bootstrap_servers
    database, topic, name = postgres.new_database(), unique_name("rows"), unique_name("jdbc")
    create_topics(bootstrap, [topic])
    produce(bootstrap, topic, *_records(1, STEP))
    agent.create(name, _sink(postgres, database, topic))
    with postgres.connect(database) as rows:
        for number, victim in enumerate(SINK_VICTIMS, start=1):
            eventually(lambda: _count(rows), WAIT_S, lambda: agent.get(_status(name)))
            before = _count(rows)
            with postgres.connect(database) as holder, holder.transaction(force_rollback=True):
                # The sink cannot write this row until the transaction ends.
                middle = number * STEP + STEP // 2
                holder.execute(f"INSERT INTO {TABLE} VALUES ({middle}, '')".encode())
                produce(bootstrap, topic, *_records(number * STEP + 1, (number + 1) * STEP))
                eventually(lambda before=before: _count(rows) > before, WAIT_S)
                _kill_and_restart(agent, name, victim)
        last = (len(SINK_VICTIMS) + 1) * STEP
        eventually(lambda: _count(rows) == last, WAIT_S, lambda: (_count(rows), _status(name)))
        found = rows.execute(
            f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {TABLE}".encode()
        ).fetchone()
        wrong = rows.execute(
            f"SELECT count(*) FROM {TABLE} WHERE text <> 'row ' || id".encode()
        ).fetchone()
    assert (found, wrong) == ((last, last, 1, last), (0,))
    agent.do("DELETE", f"/connectors/{name}")


def _insert(rows: object, first: int, last: int) -> None:
    statement = f"INSERT INTO numbers SELECT n, 'row ' || n FROM generate_series({first}, {last}) n"
    rows.execute(statement.encode())  # type: ignore[attr-defined]  # a connection


def _source(postgres: PostgresServer, database: str, prefix: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.dbname": database,
        "topic.prefix": prefix,
        "slot.name": database,
        "publication.name": database,
        "poll.interval.ms": "50",
        "exactly.once.support": "required",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "1000",
        "transforms": "unwrap",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }


def _records(first: int, last: int) -> list[bytes]:
    return [
        json.dumps({"schema": SCHEMA, "payload": {"id": n, "text": f"row {n}"}}).encode()
        for n in range(first, last + 1)
    ]


def _sink(postgres: PostgresServer, database: str, topic: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": topic,
        "connection.url": f"jdbc:postgresql://127.0.0.1:{postgres.port}/{database}",
        "connection.username": USER,
        "connection.password": PASSWORD,
        "collection.name.format": TABLE,
        "insert.mode": "upsert",
        "primary.key.mode": "record_value",
        "primary.key.fields": "id",
        "schema.evolution": "basic",
        "value.converter": JSON,
        "batch.size": "50",
        "consumer.override.max.poll.records": "50",
        # A killed member keeps its partitions for this time.
        "consumer.override.session.timeout.ms": "6000",
    }


class Deaths:
    """Kills of a source task's processes, and the transactions aborted by them."""

    def __init__(self, agent: Agent, name: str, bootstrap_servers: str, topic: str) -> None:
        self._agent, self._name = agent, name
        self._bootstrap_servers, self._topic = bootstrap_servers, topic
        self.count = 0

    def kill_in_transaction(self, victim: str) -> None:
        """Kill while records wait for their commit, and wait until their transaction is aborted."""
        eventually(
            lambda: open_records(self._bootstrap_servers, self._topic),
            WAIT_S,
            lambda: self._agent.get(_status(self._name)),
        )
        _kill_and_restart(self._agent, self._name, victim)
        self.count += 1
        eventually(
            lambda: self._aborted() == self.count,
            WAIT_S,
            lambda: (self._aborted(), self._agent.get(_status(self._name))),
        )

    def _aborted(self) -> int:
        return aborted_transactions(self._bootstrap_servers, [self._topic])


def _kill(agent: Agent, name: str, victim: str) -> None:
    """Kill the task's Java or Python process, and wait until the task has failed.

    The connector's Java process is older than the task's.
    """
    found = agent.supervisor().children(recursive=True)
    java = [process for process in found if process.name() == "java"]
    task = max(java, key=lambda process: process.create_time())
    (task if victim == "java" else psutil.Process(task.ppid())).kill()
    agent.wait_for_states(name, "RUNNING", "FAILED", timeout_s=WAIT_S)


def _kill_and_restart(agent: Agent, name: str, victim: str) -> None:
    """Kill a process of the task and restart the task, or kill the whole worker."""
    if victim == "worker":
        agent.process.kill()
        agent.process.start()
        return
    _kill(agent, name, victim)
    agent.do("POST", f"/connectors/{name}/tasks/0/restart")


def _ids(broker: SharedBroker, topic: str) -> list[int]:
    records = read_topic(broker.bootstrap_servers, topic, committed=True)
    return [json.loads(record.value() or b"")["id"] for record in records]


def _count(rows: psycopg.Connection) -> int:
    try:
        (count,) = rows.execute(f"SELECT count(*) FROM {TABLE}".encode()).fetchone() or (0,)
    except psycopg.errors.UndefinedTable:
        return 0
    return int(count)


def _status(name: str) -> str:
    return f"/connectors/{name}/status"
