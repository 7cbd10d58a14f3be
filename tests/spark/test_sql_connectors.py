"""SqlSource and SqlSink on real databases, audited from their configuration while they run."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import STRING_CONVERTER, Agent, Agents
from tests.support.audits.audits import Answer, Audit
from tests.support.audits.recorded_audits import LEFT, RecordedAudit, given, topic
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.commands.reconcile_command import QUICK, Reconcile
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.mariadb import MariaDbServer, running_mariadb
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(850)]

WAIT_S = 150
# A slow rate, as a busy machine audits a topic that grows all the time; each write has BATCH_ROWS
# rows.
PAUSE_S = 1.0
BATCH_ROWS = 20
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON_CONVERTER, "value.converter": JSON_CONVERTER}
ORDERS = (
    "id bigserial PRIMARY KEY, price numeric(12, 2), at timestamptz NOT NULL DEFAULT now(),"
    " day date, raw bytea, ratio real, paid boolean, doc jsonb, note text"
)
ADD_ORDERS = (
    "INSERT INTO orders (price, day, raw, ratio, paid, doc, note)"
    " SELECT n / 7.0 - 5, date '2024-01-01' + n, decode(lpad(to_hex(n), 4, '0'), 'hex'), n / 3.0,"
    " n % 2 = 0, jsonb_build_object('b', n, 'a', 'x'), CASE WHEN n % 3 = 0 THEN NULL"
    f" ELSE 'note ' || n END FROM generate_series(1, {BATCH_ROWS}) AS n"
)


@dataclass(frozen=True, slots=True)
class Shop:
    """One agent and a command for it; the audits read passwords from a file."""

    agent: Agent
    command: Pyconnect
    directory: Path
    broker: str

    def spec_of(self, job: str, connector: str, side: str) -> dict[str, Any]:
        """Return the spec that `pyconnect reconcile` resolves now."""
        ended = self.command("reconcile", job, connector, "--print-spec", "-o", "json")
        assert ended.code == 0, ended.err
        assert PASSWORD not in ended.out
        spec: dict[str, Any] = json.loads(ended.out)
        if not spec[side]["url"].startswith("jdbc:sqlite:"):
            file = self.directory / "secret.properties"
            file.write_text(f"user={USER}\npassword={PASSWORD}\n")
            spec[side]["properties"] = str(file)
        return spec

    def create(self, kind: str, config: Mapping[str, str]) -> str:
        name = unique_name(kind)
        self.agent.create(name, {**CONVERTERS, **config})
        return name

    def committed(self, connector: str) -> bool:
        return bool(self.agent.get(f"/connectors/{connector}/offsets")["offsets"])


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDbServer]:
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="module")
def shop(kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("shop")
    broker = kafka_broker.bootstrap_servers
    agents = Agents(broker, directory)
    with contextlib.closing(agents):
        agent = agents.start(properties={"offset.flush.interval.ms": "500"})
        yield Shop(agent, Pyconnect(directory, agent.url, broker), directory, broker)


@contextmanager
def steadily_written(postgres: PostgresServer, database: str) -> Iterator[None]:
    """Add orders while the block runs."""
    enough = threading.Event()

    def write() -> None:
        with postgres.connect(database) as connection:
            while not enough.wait(PAUSE_S):
                connection.execute(ADD_ORDERS.encode())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class Moved:
    """A source and a sink that move orders from one table to another."""

    database: str
    source: str
    sink: str


def count(postgres: PostgresServer, database: str) -> int:
    with postgres.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM target").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture(scope="module")
def moved(shop: Shop, postgres: PostgresServer) -> Iterator[Moved]:
    database, prefix = postgres.new_database(), unique_name("moved") + "-"
    topic = f"{prefix}orders"
    create_topics(shop.broker, [topic], partitions=2)
    with postgres.connect(database) as connection:
        connection.execute(f"CREATE TABLE orders ({ORDERS})".encode())
        connection.execute("CREATE TABLE target (LIKE orders)")
        connection.execute("ALTER TABLE target ADD COLUMN added timestamptz DEFAULT now()")
        # A column of JSON would hold the record's text as a text within JSON.
        connection.execute("ALTER TABLE target ALTER COLUMN doc TYPE text")
    with steadily_written(postgres, database):
        source = shop.create(
            "source",
            {
                "connector.class": "SqlSource",
                **postgres.settings(database),
                "mode": "incrementing",
                "incrementing.column.name": "id",
                "table.whitelist": "orders",
                "topic.prefix": prefix,
                "poll.interval.ms": "50",
            },
        )
        sink = shop.create(
            "sink",
            {
                "connector.class": "SqlSink",
                **postgres.settings(database),
                "topics": topic,
                "table.name.format": "target",
                "consumer.override.isolation.level": "read_committed",
                "consumer.override.max.poll.records": "50",
            },
        )
        eventually(lambda: count(postgres, database) >= 2 * BATCH_ROWS, WAIT_S)
        eventually(lambda: all(map(shop.committed, (source, sink))), WAIT_S)
        yield Moved(database, source, sink)


def agreed(answer: Answer) -> None:
    assert answer.kinds() == set()
    assert not any(answer.outcome.totals.values())
    assert answer.verdict is Verdict.AGREE
    assert answer.outcome.counts["rows_left"] > 0


def test_a_running_sink_agrees(
    audit: Audit, shop: Shop, moved: Moved, postgres: PostgresServer
) -> None:
    """Rows after the stored offsets are under way, and a column that no record has is left out."""
    spec = shop.spec_of("topic-sink", moved.sink, "right")
    seen = count(postgres, moved.database)
    eventually(lambda: count(postgres, moved.database) > seen + BATCH_ROWS, WAIT_S)
    answer = audit.run(**spec)
    agreed(answer)
    assert answer.outcome.counts["rows_left"] >= seen
    assert "columns of no record: added" in answer.outcome.not_compared


@pytest.mark.long(only=True)
def test_a_running_source_agrees(audit: Audit, shop: Shop, moved: Moved) -> None:
    """Rows beyond the committed position are optional in the topic."""
    agreed(audit.run(**shop.spec_of("source-topic", moved.source, "left")))


def test_rows_that_were_removed_doubled_and_changed_are_found(
    audit: Audit, shop: Shop, moved: Moved, postgres: PostgresServer
) -> None:
    """Removed, doubled and changed rows are found while the sink goes on."""
    columns = "id, price, at, day, raw, ratio, paid, doc, note"
    with postgres.connect(moved.database) as connection:
        # Copied from the table itself, as the source's JSON has other spaces.
        connection.execute(
            f"CREATE TEMP TABLE saved AS SELECT {columns} FROM target"
            " WHERE id IN (5, 7, 9)".encode()
        )
        connection.execute("DELETE FROM target WHERE id = 5")
        connection.execute(
            f"INSERT INTO target ({columns}) SELECT {columns} FROM target WHERE id = 7".encode()
        )
        connection.execute("UPDATE target SET price = price + 0.01 WHERE id = 9")
        answer = audit.run(**shop.spec_of("topic-sink", moved.sink, "right"))
        connection.execute("DELETE FROM target WHERE id IN (5, 7, 9)")
        connection.execute(f"INSERT INTO target ({columns}) SELECT {columns} FROM saved".encode())
    assert answer.outcome.totals == {"missing": 2, "extra": 1, "repeated": 1}
    assert answer.verdict is Verdict.DIFFER


@pytest.mark.long(only=True)
def test_a_whole_run_keeps_the_password_to_itself(shop: Shop, moved: Moved, tmp_path: Path) -> None:
    """No file of the report, including Spark's log, and no output has the password."""
    reconcile = Reconcile(
        tmp_path, PYCONNECT_URL=shop.agent.url, PYCONNECT_KAFKA_BOOTSTRAP=shop.broker
    )
    ended = reconcile("topic-sink", moved.sink, *QUICK)
    assert ended.code == 0, ended.err
    written = [path for path in ended.directory.rglob("*") if path.is_file()]
    assert {"report.json", "spark.log"} <= {path.name for path in written}
    for text in (ended.out, ended.err, *(path.read_text("latin-1") for path in written)):
        assert PASSWORD not in text


def test_documents_of_a_table_keep_their_nulls(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Nulls within JSON documents are compared, also if the spec names no driver."""
    properties = tmp_path / "secret.properties"
    properties.write_text(f"user={USER}\npassword={PASSWORD}\n")
    database = postgres.new_database()
    written = postgres.settings(database)["connection.url"].replace("+psycopg", "")
    table = {"kind": "table", "url": f"jdbc:{written}", "table": "documents"}
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE documents (id int, doc jsonb)")
        connection.execute(
            """INSERT INTO documents VALUES (1, '{"b": [{"c": null}], "a": null}'), (2, '{}')"""
        )
    documents = given('{"id":1,"doc":{"a":null,"b":[{"c":null}]}}', '{"id":2,"doc":{"a":null}}')
    answer = RecordedAudit(spark, tmp_path).run(
        "topic-sink",
        {LEFT: documents},
        left=topic(LEFT),
        right={**table, "properties": str(properties)},
    )
    assert answer.places("missing") == {frozenset({(0, 1)})}


@pytest.mark.long(only=True)
def test_the_last_row_of_each_key_is_compared(
    audit: Audit, shop: Shop, moved: Moved, mariadb: MariaDbServer
) -> None:
    """In upsert mode on MariaDB the last row of each key is compared by the record's key."""
    database = mariadb.new_database()
    config = shop.agent.get(f"/connectors/{moved.sink}/config")
    topic = config["topics"]
    sink = shop.create(
        "upsert",
        {
            "connector.class": "SqlSink",
            **mariadb.settings(database),
            "topics": topic,
            "table.name.format": "target",
            "auto.create": "true",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "db.timezone": "Europe/Berlin",
            "consumer.override.isolation.level": "read_committed",
        },
    )
    exists = "SELECT 1 FROM information_schema.tables WHERE table_name = 'target'"
    eventually(lambda: mariadb.execute(database, exists), WAIT_S)
    written = f"SELECT 1 FROM target WHERE id = {2 * BATCH_ROWS}"
    eventually(lambda: mariadb.execute(database, written), WAIT_S)
    eventually(lambda: shop.committed(sink), WAIT_S)
    mariadb.execute(database, "DELETE FROM target WHERE id = 5")
    mariadb.execute(database, "UPDATE target SET note = 'other' WHERE id = 7")
    mariadb.execute(database, "INSERT INTO target (id, at) VALUES (-1, now())")
    answer = audit.run(**shop.spec_of("topic-sink", sink, "right"))
    assert answer.outcome.totals == {"missing": 1, "different": 1, "extra": 1}


@pytest.mark.long(only=True)
def test_rows_that_changed_since_they_were_read_are_under_way(
    audit: Audit, shop: Shop, mariadb: MariaDbServer
) -> None:
    """Rows that changed after they were read are under way, and deleted rows are extra."""
    database, prefix = mariadb.new_database(), unique_name("timed") + "-"
    mariadb.execute(
        database,
        "CREATE TABLE orders (id int PRIMARY KEY, changed datetime(6) NOT NULL, made timestamp(6),"
        " price decimal(9, 3))",
    )
    mariadb.execute(
        database,
        "INSERT INTO orders SELECT seq, timestamp'2024-03-31 02:30:00.000001', utc_timestamp(6),"
        " seq / 3 FROM seq_1_to_50",
    )
    source = shop.create(
        "timed",
        {
            "connector.class": "SqlSource",
            **mariadb.settings(database),
            "mode": "timestamp+incrementing",
            "incrementing.column.name": "id",
            "timestamp.column.name": "changed",
            "table.whitelist": "orders",
            "topic.prefix": prefix,
            "db.timezone": "America/New_York",
            "poll.interval.ms": "50",
        },
    )

    def read() -> bool:
        entries = shop.agent.get(f"/connectors/{source}/offsets")["offsets"]
        return bool(entries) and entries[0]["offset"]["incrementing"] == 50

    eventually(read, WAIT_S)
    spec = shop.spec_of("source-topic", source, "left")
    mariadb.execute(database, "UPDATE orders SET changed = '2024-04-01', price = 1 WHERE id < 3")
    mariadb.execute(database, "DELETE FROM orders WHERE id = 5")
    answer = audit.run(**spec)
    # The records of the two rows that changed are under way.
    assert answer.outcome.counts["rows_right"] >= 48
    assert answer.outcome.totals == {"extra": 1}
    [finding] = answer.of("extra")
    assert [copy.topic for copy in finding.copies] == [f"{prefix}orders"]


@pytest.mark.long(only=True)
def test_lines_in_a_table_of_sqlite_are_compared(audit: Audit, shop: Shop, tmp_path: Path) -> None:
    """Texts that HoistField has made rows are compared by their places in Kafka."""
    lines, database, topic = tmp_path / "lines.txt", tmp_path / "lines.db", unique_name("lines")
    lines.write_text("".join(f'{{"line": {n}}}\n' for n in range(1000)))
    text = {"key.converter": STRING_CONVERTER, "value.converter": STRING_CONVERTER}
    shop.create(
        "file", {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic, **text}
    )
    sink = shop.create(
        "table",
        {
            "connector.class": "SqlSink",
            "connection.url": f"sqlite:///{database}",
            "topics": topic,
            "table.name.format": "lines",
            "auto.create": "true",
            "pk.mode": "kafka",
            "consumer.override.isolation.level": "read_committed",
            "transforms": "row",
            "transforms.row.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.row.field": "line",
            **text,
        },
    )

    def written() -> bool:
        with closing(sqlite3.connect(database)) as connection:
            try:
                rows = connection.execute("SELECT * FROM lines").fetchall()
            except sqlite3.OperationalError:
                return False
        return len(rows) == 1000

    eventually(written, WAIT_S)
    eventually(lambda: shop.committed(sink), WAIT_S)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM lines WHERE __connect_offset = 77")
        connection.execute("UPDATE lines SET line = line || ' ' WHERE __connect_offset = 78")
    answer = audit.run(**shop.spec_of("topic-sink", sink, "right"))
    assert answer.outcome.totals == {"missing": 2, "extra": 1, "repeated": 0}
    assert {copy.offset for finding in answer.of("missing") for copy in finding.copies} == {77, 78}
