"""SqlSource and SqlSink on a real broker and a real PostgreSQL, with exactly-once delivery."""

import contextlib
import json
import os
import random
import signal
import threading
from collections.abc import Iterator

import pytest

from tests.support.agents.agent import Agents, task_pids
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import LONG, picked_seed
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.postgres import PostgresServer, running_postgres
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]

KILLS = 12 if LONG else 3
WAIT_S = 150
QUICK = {
    "exactly.once.source.support": "enabled",
    "task.shutdown.graceful.timeout.ms": "2000",
    "offset.flush.interval.ms": "300",
    "scheduled.rebalance.max.delay.ms": "0",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Writer:
    """A thread that adds rows to the source's table, several of equal time in a transaction."""

    def __init__(self, postgres: PostgresServer, database: str, seed: int) -> None:
        self._postgres = postgres
        self._database = database
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        with self._postgres.connect(self._database) as connection:
            while not self._stopping.wait(0.02):
                connection.execute(
                    "INSERT INTO orders (note) SELECT 'x' FROM generate_series(1, %s)",
                    [self._random.randint(1, 60)],
                )


def source_config(postgres: PostgresServer, database: str, topic: str) -> dict[str, str]:
    return {
        "connector.class": "SqlSource",
        **postgres.settings(database),
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "changed",
        "incrementing.column.name": "id",
        "timestamp.delay.interval.ms": "200",
        "table.whitelist": "orders",
        "topic.prefix": topic.removesuffix("orders"),
        "poll.interval.ms": "50",
        "batch.max.rows": "40",
        "exactly.once.support": "required",
        "producer.override.transaction.timeout.ms": "10000",
    }


def sink_config(postgres: PostgresServer, database: str, topic: str) -> dict[str, str]:
    return {
        "connector.class": "SqlSink",
        **postgres.settings(database),
        "topics": topic,
        "tasks.max": "2",
        "table.name.format": "target",
        "auto.create": "true",
        "retry.backoff.ms": "200",
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.session.timeout.ms": "6000",
        "consumer.override.heartbeat.interval.ms": "500",
        "consumer.override.max.poll.records": "50",
    }


def upsert_config(postgres: PostgresServer, database: str, topic: str) -> dict[str, str]:
    """Return the config of a sink whose larger batches go through a temporary table."""
    return {
        **sink_config(postgres, database, topic),
        "table.name.format": "keyed",
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "consumer.override.max.poll.records": "500",
        "consumer.override.fetch.min.bytes": "40000",
    }


PICKY = 400
"""A constraint of the target refuses each row whose id is a multiple of this number."""


def picky(config: dict[str, str], table: str, dead_letters: str) -> dict[str, str]:
    """Return the config of a sink into a table that refuses some rows, with a dead letter queue."""
    return {
        **config,
        "table.name.format": table,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead_letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }


# One of these tables has two rows for a row that is written twice, as a new row or over an old one.
TARGETS = f"""
CREATE TABLE keyed (id bigint PRIMARY KEY, note text NOT NULL, changed timestamptz NOT NULL);
CREATE TABLE picky (id bigint CHECK (id % {PICKY} <> 0), note text, changed timestamptz);
CREATE TABLE picky_keyed
  (id bigint PRIMARY KEY CHECK (id % {PICKY} <> 0), note text, changed timestamptz);
CREATE TABLE writes_of_keyed (id bigint);
CREATE TABLE writes_of_picky_keyed (id bigint);
CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE format('INSERT INTO writes_of_%s VALUES ($1)', TG_TABLE_NAME) USING NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER note_write AFTER INSERT OR UPDATE ON keyed
  FOR EACH ROW EXECUTE FUNCTION note_write();
CREATE TRIGGER note_write AFTER INSERT OR UPDATE ON picky_keyed
  FOR EACH ROW EXECUTE FUNCTION note_write();
"""


def count(postgres: PostgresServer, database: str, query: str) -> int:
    with postgres.connect(database) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_every_row_arrives_once_though_tasks_are_killed(
    agents: Agents, kafka_broker: SharedBroker, postgres: PostgresServer
) -> None:
    """Each row arrives once although tasks are killed; every target shows a repeated row.

    The targets have no primary key, or record each write. Two targets refuse rows: these are in the
    dead letter queues, and the others come once.
    """
    seed = picked_seed()
    database = postgres.new_database()
    topic = unique_name("shop") + "-orders"
    create_topics(kafka_broker.bootstrap_servers, [topic], partitions=3)
    with postgres.connect(database) as connection:
        connection.execute(
            "CREATE TABLE orders (id bigserial PRIMARY KEY, note text NOT NULL,"
            " changed timestamptz NOT NULL DEFAULT now())"
        )
        connection.execute(TARGETS.encode())
    writer = Writer(postgres, database, seed)
    agent = agents.start(properties=QUICK)
    inserts = sink_config(postgres, database, topic)
    upserts = upsert_config(postgres, database, topic)
    queues = [unique_name("refused"), unique_name("refused")]
    configs = {
        unique_name("from-sql"): source_config(postgres, database, topic),
        unique_name("inserts"): inserts,
        unique_name("upserts"): upserts,
        unique_name("picky"): picky(inserts, "picky", queues[0]),
        unique_name("picky-upserts"): picky(upserts, "picky_keyed", queues[1]),
    }
    names = tuple(configs)
    for name, config in configs.items():
        agent.create(name, config)
    writer.start()
    picks = random.Random(seed)
    exists = "SELECT count(*) FROM pg_tables WHERE tablename = 'target'"
    eventually(lambda: count(postgres, database, exists) == 1, WAIT_S)
    for _ in range(KILLS):
        seen = count(postgres, database, "SELECT count(*) FROM target")
        eventually(lambda: task_pids(agent), WAIT_S)
        # The wait may also end without new rows: kills hit starts and rebalances too.
        more = picks.choice((0, 1, 50, 200))
        with contextlib.suppress(AssertionError):
            eventually(
                lambda seen=seen, more=more: (  # type: ignore[misc]
                    count(postgres, database, "SELECT count(*) FROM target") >= seen + more
                ),
                3,
            )
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(picks.choice(task_pids(agent)), signal.SIGKILL)
        [agent.revived(name) for name in names]
    writer.finish()
    written = count(postgres, database, "SELECT count(*) FROM orders")

    good = count(postgres, database, f"SELECT count(*) FROM orders WHERE id % {PICKY} <> 0")
    wanted = {"target": written, "keyed": written, "picky": good, "picky_keyed": good}

    def arrived() -> bool:
        [agent.revived(name) for name in names]
        return all(
            count(postgres, database, f"SELECT count(DISTINCT id) FROM {table}") == expected
            for table, expected in wanted.items()
        )

    def state() -> str:
        found = {t: count(postgres, database, f"SELECT count(*) FROM {t}") for t in wanted}
        states = {name: agent.states(name) for name in names}
        return f"seed {seed}, {written} rows, wanted {wanted}, found {found}, {states}"

    eventually(arrived, WAIT_S, state)
    for table in ("target", "keyed"):
        lost = f"SELECT count(*) FROM orders LEFT JOIN {table} t USING (id, note)"
        assert count(postgres, database, f"{lost} WHERE t.id IS NULL") == 0
    with postgres.connect(database) as connection:
        stored = connection.execute("SELECT DISTINCT connector FROM pyconnect_offsets").fetchall()
    assert sorted(stored) == sorted((name,) for name in names[1:])
    totals = {"target": written, "picky": good}
    totals |= {"writes_of_keyed": written, "writes_of_picky_keyed": good}
    for table, expected in totals.items():
        total = count(postgres, database, f"SELECT count(*) FROM {table}")
        assert total == expected, f"seed {seed}: {total - expected} rows came twice into {table}"

    def refused(queue: str) -> bool:
        records = read_topic(kafka_broker.bootstrap_servers, queue)
        values = [json.loads(record.value() or b"") for record in records]
        found = {value["payload"]["id"] for value in values}
        assert all(number % PICKY == 0 for number in found)
        return len(found) == written - good

    for queue in queues:
        eventually(lambda queue=queue: refused(queue), WAIT_S)  # type: ignore[misc]
