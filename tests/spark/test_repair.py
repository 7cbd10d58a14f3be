"""Reports of real audits are repaired, and a second audit agrees."""

import contextlib
from collections.abc import Iterator

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import Agents
from tests.support.audits.audits import Audit
from tests.support.commands.reconcile_command import QUICK
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.repairs.damaged_sinks import (
    JSON_CONVERTER,
    RECORDS,
    UPSERT,
    WAIT_S,
    Shop,
    Sink,
    produce,
    stopped_sink,
)
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.mariadb import MariaDbServer, running_mariadb
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1000)]

BY_TIME = {"mode": "timestamp+incrementing", "timestamp.column.name": "at"}
PLAIN = {"insert.mode": "insert", "pk.mode": "none"}


@pytest.fixture(scope="module")
def shop(kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("audited-repairs")
    broker = kafka_broker.bootstrap_servers
    with contextlib.closing(Agents(broker, directory)) as agents:
        agent = agents.start(properties={"offset.flush.interval.ms": "500"})
        yield Shop(agent, broker, directory)


def spec_of(sink: Sink) -> dict[str, object]:
    spec = sink.shop.spec(sink.name)
    secret = sink.shop.directory / "secret.properties"
    secret.write_text(f"user={USER}\npassword={PASSWORD}\n")
    return {**spec, "right": {**spec["right"], "properties": str(secret)}}


def repaired(audit: Audit, sink: Sink, totals: dict[str, int], *, audits: bool) -> None:
    report = sink.shop.directory / unique_name("report")
    answer = audit.run(**spec_of(sink), report=report)
    assert {kind: count for kind, count in answer.outcome.totals.items() if count} == totals
    options = QUICK if audits else ()
    done = sink.shop.run("reconcile", "repair", str(report), "--yes", *options, audits=audits)
    assert done.returncode == 0, done.stdout + done.stderr


def stopped_source(
    shop: Shop, server: PostgresServer | MariaDbServer, mode: dict[str, str]
) -> tuple[str, str]:
    """Return name and database of a stopped source that has read rows 1 to 20 without 7, and 50."""
    database, prefix = server.new_database(), unique_name("shop") + "-"
    rows = (f"({n}, 'note {n}', '2024-03-0{n % 9 + 1} 10:00:00.5')" for n in (*range(1, 21), 50))
    changed(
        server, database, "CREATE TABLE orders (id bigint PRIMARY KEY, note text, at timestamp(6))"
    )
    changed(server, database, f"INSERT INTO orders VALUES {', '.join(rows)}")
    changed(server, database, "DELETE FROM orders WHERE id = 7")
    policy = {"cleanup.policy": "compact"} if "timestamp.column.name" in mode else {}
    create_topics(shop.broker, [f"{prefix}orders"], partitions=2, config=policy)
    name = unique_name("source")
    shop.agent.create(
        name,
        {
            "connector.class": "SqlSource",
            **server.settings(database),
            "incrementing.column.name": "id",
            "table.whitelist": "orders",
            "topic.prefix": prefix,
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
            **mode,
        },
    )

    def committed() -> bool:
        entries = shop.agent.get(f"/connectors/{name}/offsets")["offsets"]
        return bool(entries) and entries[0]["offset"]["incrementing"] == mode_end(mode)

    eventually(committed, WAIT_S)
    assert shop.run("connectors", "stop", name, "--wait").returncode == 0
    return name, database


def mode_end(mode: dict[str, str]) -> int:
    """Return the number of the last row in the source's order."""
    return 17 if "timestamp.column.name" in mode else 50


def changed(server: PostgresServer | MariaDbServer, database: str, statement: str) -> None:
    engine = create_engine(server_url(server, database), poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)


def server_url(server: PostgresServer | MariaDbServer, database: str) -> str:
    return server.url(database).replace("://", f"://{USER}:{PASSWORD.replace(' ', '%20')}@")


def source_spec(shop: Shop, source: str) -> dict[str, object]:
    spec = shop.spec(source, "source-topic")
    secret = shop.directory / "secret.properties"
    secret.write_text(f"user={USER}\npassword={PASSWORD}\n")
    return {**spec, "left": {**spec["left"], "properties": str(secret)}}


def late_row_is_written(
    audit: Audit, shop: Shop, postgres: PostgresServer, mode: dict[str, str]
) -> None:
    """Check that a repair writes a row that was committed too late for the source to see.

    A repair that is killed after its transaction writes the record once.
    """
    source, database = stopped_source(shop, postgres, mode)
    changed(postgres, database, "INSERT INTO orders VALUES (7, 'late', '2024-01-01 00:00:00')")
    report = shop.directory / unique_name("report")
    answer = audit.run(**source_spec(shop, source), report=report)
    assert answer.outcome.totals == {"missing": 1, "extra": 0, "repeated": 0}
    repair = ("reconcile", "repair", str(report), "--yes")
    shop.killed("RepairChanged before 1", *repair)
    done = shop.run(*repair)
    assert done.returncode == 0, done.stderr
    answer = audit.run(**source_spec(shop, source))
    assert answer.verdict is Verdict.AGREE, answer.outcome.findings
    undone = shop.run("reconcile", "undo", "--yes")
    assert undone.returncode == 9
    assert "cannot be taken back" in undone.stderr


@pytest.mark.long(only=True)
def test_records_with_schemas_of_a_registry_are_written_again(
    audit: Audit, shop: Shop, schema_registry_url: str
) -> None:
    """The repair's converter uses the registry, as the source's does."""
    avro = {
        f"{role}.converter{name}": value
        for role in ("key", "value")
        for name, value in (
            ("", "io.confluent.connect.avro.AvroConverter"),
            (".schema.registry.url", schema_registry_url),
        )
    }
    with running_postgres() as postgres:
        late_row_is_written(audit, shop, postgres, {"mode": "incrementing", **avro})


def test_a_repaired_table_agrees_with_its_topic(audit: Audit, shop: Shop) -> None:
    """A repair restores every row on PostgreSQL, and the audit that it runs agrees."""
    with running_postgres() as postgres:
        late_row_is_written(audit, shop, postgres, {"mode": "incrementing"})
        sink = stopped_sink(shop, postgres, UPSERT)
        whole = sink.rows()
        sink.sql("DELETE FROM orders WHERE id IN (3, 77)")
        sink.sql("UPDATE orders SET note = 'wrong', price = 3 WHERE id IN (5, 6)")
        sink.sql("UPDATE orders SET id = -1 WHERE id = 9")
        repaired(audit, sink, {"missing": 3, "extra": 1, "different": 2}, audits=True)
        assert sink.rows() == whole


def test_an_iceberg_table_is_repaired_by_one_commit(audit: Audit, shop: Shop) -> None:
    """A repair that was killed after its commit finds it; an undo restores the old snapshot."""
    topic, name = unique_name("orders"), unique_name("lake")
    lake = shop.directory / name
    create_topics(shop.broker, [topic], partitions=2)
    produce(shop.broker, topic, range(RECORDS))
    shop.agent.create(
        name,
        {
            "connector.class": "LakeSink",
            "format.class": "iceberg",
            "lake.url": str(lake),
            "topics": topic,
            "iceberg.tables": "shop.orders",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.control.commit.interval-ms": "500",
            "value.converter": JSON_CONVERTER,
            "consumer.override.isolation.level": "read_committed",
        },
    )

    def table() -> Table:
        catalog = load_catalog("iceberg", type="sql", uri=f"sqlite:///{lake}/catalog.db")
        return catalog.load_table("shop.orders")

    def rows() -> list[str]:
        return sorted(map(repr, table().scan().to_arrow().to_pylist()))

    def committed() -> bool:
        entries = shop.agent.get(f"/connectors/{name}/offsets")["offsets"]
        return sum(entry["offset"]["kafka_offset"] for entry in entries) == RECORDS

    eventually(committed, WAIT_S)
    assert shop.run("connectors", "stop", name, "--wait").returncode == 0
    whole, spec = rows(), shop.spec(name)
    table().delete("id == 3 or id == 77")
    table().append(table().scan("id == 8").to_arrow())
    before, damaged = table().metadata.current_snapshot_id, rows()
    report = shop.directory / unique_name("report")
    answer = audit.run(**spec, report=report)
    assert answer.outcome.totals == {"missing": 2, "extra": 0, "repeated": 1}
    repair = ("reconcile", "repair", str(report), "--yes")
    shop.killed("RepairChanged before 1", *repair)
    after = table().metadata.current_snapshot_id
    assert (rows(), after != before) == (whole, True)
    done = shop.run(*repair)
    assert done.returncode == 0, done.stderr
    assert table().metadata.current_snapshot_id == after
    assert audit.run(**spec).verdict is Verdict.AGREE
    entries = [each for each in shop.journal() if each.get("snapshot")]
    assert [each["snapshot"] for each in entries] == [before, after]
    undone = shop.run("reconcile", "undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert (table().metadata.current_snapshot_id, rows()) == (before, damaged)


@pytest.mark.long(only=True)
def test_rows_without_a_key_are_repaired_too(audit: Audit, shop: Shop) -> None:
    """On MariaDB a repair removes surplus copies of rows without a key, and writes missing ones."""
    with running_mariadb() as mariadb:
        source, database = stopped_source(shop, mariadb, BY_TIME)
        for statement in (
            "INSERT INTO orders VALUES (7, 'late', '2024-03-01 00:00:00')",
            "UPDATE orders SET note = 'without a time' WHERE id = 3",
            "DELETE FROM orders WHERE id = 4",
        ):
            changed(mariadb, database, statement)
        report = shop.directory / unique_name("report")
        answer = audit.run(**source_spec(shop, source), report=report)
        assert answer.outcome.totals == {"missing": 1, "extra": 1, "different": 1}
        done = shop.run("reconcile", "repair", str(report), "--yes", *QUICK, audits=True)
        assert done.returncode == 0, done.stdout + done.stderr
        sink = stopped_sink(shop, mariadb, PLAIN)
        whole = sink.rows()
        sink.sql("DELETE FROM orders WHERE id IN (3, 77)")
        sink.sql("INSERT INTO orders SELECT * FROM orders WHERE id = 8")
        sink.sql("INSERT INTO orders SELECT * FROM orders WHERE id = 8 LIMIT 1")
        repaired(audit, sink, {"missing": 2, "repeated": 2}, audits=False)
        assert sink.rows() == whole
        assert audit.run(**spec_of(sink)).verdict is Verdict.AGREE
        sink = stopped_sink(shop, mariadb, UPSERT)
        sink.sql("DELETE FROM orders WHERE id = 3")
        sink.sql("UPDATE orders SET ratio = 0.25 WHERE id = 5")
        sink.sql("INSERT INTO orders VALUES (-7, 'x', 1, 1, now(3))")
        repaired(audit, sink, {"missing": 1, "extra": 1, "different": 1}, audits=False)
        answer = audit.run(**spec_of(sink))
        assert answer.verdict is Verdict.AGREE
        assert answer.outcome.counts["rows_left"] == RECORDS
