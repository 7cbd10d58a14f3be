"""Debezium's PostgreSQL connector in an agent, exactly-once, through kills of its processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.abort_markers import aborted_transactions
from tests.support.agent import Agent, Agents, closing
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker
from tests.support.maven_plugins import DEBEZIUM, location_of
from tests.support.names import unique_name
from tests.support.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.topics import create_topics, open_records, read_topic

pytestmark = pytest.mark.java

WAIT_S = 120
SNAPSHOT, STREAMED = 5_000, 3_000
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def agent(
    kafka_broker: SharedBroker, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> Iterator[Agent]:
    location = location_of(DEBEZIUM, kafka_runtime)
    properties = {
        "plugin.path": str(location.parent),
        "exactly.once.source.support": "enabled",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path)):
        yield agents.start(properties=properties)


def test_rows_arrive_once(
    agent: Agent, postgres: PostgresServer, kafka_broker: SharedBroker
) -> None:
    """Each row arrives once and in its order, though processes die within transactions.

    Only a snapshot that was killed begins again, as Debezium has no offsets within it.
    """
    database, prefix, name = postgres.new_database(), unique_name("pg"), unique_name("debezium")
    topic = f"{prefix}.public.numbers"
    create_topics(kafka_broker.bootstrap_servers, [topic])
    with postgres.connect(database) as rows:
        rows.execute("CREATE TABLE numbers (id int PRIMARY KEY, text text)")
        _insert(rows, 1, SNAPSHOT)
        agent.create(name, _config(postgres, database, prefix))
        _kill_in_transaction(agent, name, kafka_broker, topic, victim="java")
        aborted = [aborted_transactions(kafka_broker.bootstrap_servers, [topic])]
        eventually(lambda: _ids(kafka_broker, topic), WAIT_S, lambda: agent.get(_status(name)))
        for number in range(3):
            first = SNAPSHOT + number * STREAMED // 3 + 1
            _insert(rows, first, first + STREAMED // 3 - 1)
            victim = "python" if number % 2 else "java"
            _kill_in_transaction(agent, name, kafka_broker, topic, victim=victim)
            aborted.append(aborted_transactions(kafka_broker.bootstrap_servers, [topic]))
        rows.execute("ALTER TABLE numbers ADD COLUMN more int")
        rows.execute(f"INSERT INTO numbers VALUES ({SNAPSHOT + STREAMED + 1}, 'last', 7)".encode())
        (count,) = rows.execute("SELECT count(*) FROM numbers").fetchone() or (0,)
    # The first of them in the snapshot.
    assert aborted == [1, 2, 3, 4]
    eventually(
        lambda: _ids(kafka_broker, topic)[-1] == count,
        WAIT_S,
        lambda: (len(_ids(kafka_broker, topic)), agent.get(_status(name))),
    )
    found = _ids(kafka_broker, topic)
    repeated = len(found) - count
    assert found[:repeated] == list(range(1, repeated + 1))
    assert found[repeated:] == list(range(1, count + 1))
    last = read_topic(kafka_broker.bootstrap_servers, topic, committed=True)[-1]
    assert json.loads(last.value() or b"")["more"] == 7
    agent.do("DELETE", f"/connectors/{name}")


def _insert(rows: object, first: int, last: int) -> None:
    statement = f"INSERT INTO numbers SELECT n, 'row ' || n FROM generate_series({first}, {last}) n"
    rows.execute(statement.encode())  # type: ignore[attr-defined]  # a connection


def _config(postgres: PostgresServer, database: str, prefix: str) -> dict[str, str]:
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
        "transaction.boundary.interval.ms": "4000",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }


def _kill_in_transaction(
    agent: Agent, name: str, broker: SharedBroker, topic: str, *, victim: str
) -> None:
    """Kill a process of the task while records wait for its commit, and restart the task.

    The connector's Java process is the older one.
    """
    eventually(
        lambda: open_records(broker.bootstrap_servers, topic),
        WAIT_S,
        lambda: agent.get(_status(name)),
    )
    found = agent.supervisor().children(recursive=True)
    java = [process for process in found if process.name() == "java"]
    task = max(java, key=lambda process: process.create_time())
    killed = task if victim == "java" else psutil.Process(task.ppid())
    killed.kill()
    agent.wait_for_states(name, "RUNNING", "FAILED", timeout_s=WAIT_S)
    agent.do("POST", f"/connectors/{name}/tasks/0/restart")
    agent.wait_for_states(name, "RUNNING", "RUNNING", timeout_s=WAIT_S)


def _ids(broker: SharedBroker, topic: str) -> list[int]:
    records = read_topic(broker.bootstrap_servers, topic, committed=True)
    return [json.loads(record.value() or b"")["id"] for record in records]


def _status(name: str) -> str:
    return f"/connectors/{name}/status"
