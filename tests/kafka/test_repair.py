"""`reconcile repair` and `undo` on a sink of an agent; tests/spark has the audits."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from pyconnect_reconcile.findings import Finding, Place, Severity
from tests.support.agents.agent import Agents
from tests.support.commands import killed_command
from tests.support.commands.processes import python_environment
from tests.support.eventually import eventually
from tests.support.repairs.damaged_sinks import RECORDS, UPSERT, WAIT_S, Shop, produce, stopped_sink
from tests.support.seeds import LONG
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.mariadb import MariaDbServer, running_mariadb
from tests.support.servers.postgres import PASSWORD, PostgresServer, running_postgres

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def shop(kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("repairs")
    broker = kafka_broker.bootstrap_servers
    with contextlib.closing(Agents(broker, directory)) as agents:
        agent = agents.start(properties={"offset.flush.interval.ms": "500"})
        yield Shop(agent, broker, directory)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDbServer]:
    with running_mariadb() as server:
        yield server


def finding(kind: str, *copies: Place, **members: Any) -> Finding:
    return Finding(kind=kind, severity=Severity.ERROR, message=kind, copies=copies, **members)


@pytest.mark.long(only=True)
@pytest.mark.parametrize("database", ["mariadb", "postgres"])
def test_damaged_rows_are_repaired_audited_and_restored(
    shop: Shop, database: str, request: pytest.FixtureRequest
) -> None:
    """A plan changes nothing without consent, and the password is in no file and no output."""
    sink = stopped_sink(shop, request.getfixturevalue(database), UPSERT)
    whole = sink.rows()
    sink.sql("DELETE FROM orders WHERE id IN (3, 77, 200)")
    sink.sql("UPDATE orders SET note = 'wrong' WHERE id IN (5, 6)")
    sink.sql("UPDATE orders SET id = -1 WHERE id = 9")
    damaged = sink.rows()
    at = sink.places()
    report = sink.report(
        *(finding("missing", at[n]) for n in (3, 9, 77, 200)),
        *(finding("different", at[n]) for n in (5, 6)),
        finding("extra", Place(table="orders", key='{"id":"-1"}')),
    )
    asked = shop.run("reconcile", "repair", str(report))
    assert asked.returncode == 9, asked.stderr
    assert "write 4 missing rows again from the topic" in asked.stderr
    assert "write 2 rows again where the table differs from the topic" in asked.stderr
    assert "delete 1 row that the topic does not have" in asked.stderr
    assert sink.rows() == damaged
    done = shop.run("reconcile", "repair", str(report), "--yes")
    assert done.returncode == 0, done.stderr
    assert sink.rows() == whole
    undone = shop.run("reconcile", "undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert sink.rows() == damaged
    assert shop.run("reconcile", "undo", shop.journal()[-1]["id"], "--yes").returncode == 9
    for path in (shop.directory / "state").rglob("*"):
        assert path.is_dir() or PASSWORD not in path.read_text("latin-1")


@pytest.mark.long(only=True)
def test_a_killed_repair_goes_on_where_it_ended(shop: Shop, postgres: PostgresServer) -> None:
    """A repair killed at any entry of its journal, or within a transaction, can be resumed."""
    sink = stopped_sink(shop, postgres, {"insert.mode": "insert", "pk.mode": "kafka"})
    whole = sink.rows()
    sink.sql("DELETE FROM orders")
    sink.sql(
        "INSERT INTO orders (__connect_topic, __connect_partition, __connect_offset, id, ratio,"
        " price, at) VALUES ('other', 0, 7, 1, 1, 1, now())"
    )
    place = {"__connect_topic": "other", "__connect_partition": "0", "__connect_offset": "7"}
    report = sink.report(
        *(finding("missing", where) for where in sink.places().values()),
        finding("extra", Place(table="orders", key=json.dumps(place))),
    )
    repair = ("reconcile", "repair", str(report), "--yes")
    if LONG:
        shop.killed("RepairStarted before 1", *repair)
    shop.killed("RepairStarted after 1", *repair)
    assert len(sink.rows()) == 1
    if LONG:
        shop.killed("RepairProgress before 1", *repair)
    # Another connection locks a row of the second transaction, so that the kill is within it.
    engine = create_engine(sink.url, poolclass=NullPool)
    with engine.connect() as blocker:
        blocker.exec_driver_sql(
            "INSERT INTO orders (__connect_topic, __connect_partition, __connect_offset, id,"
            f" ratio, price, at) VALUES ('{sink.topic}', 1, 20, 1, 1, 1, now())"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", killed_command.__name__, *repair],
            env=python_environment(shop.environment),
            stdin=subprocess.DEVNULL,
        )
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        eventually(lambda: sink.sql(waiting), WAIT_S)
        process.kill()
        process.wait(WAIT_S)
        blocker.rollback()
    shop.killed("RepairProgress after 2", *repair)
    shop.killed("RepairChanged before 1", *repair)
    if LONG:
        shop.killed("RepairChanged after 1", *repair)
    done = shop.run(*repair)
    assert done.returncode == 0, done.stderr
    assert sink.rows() == whole
    entries = [each for each in shop.journal() if each["id"] == shop.journal()[-1]["id"]]
    assert [each["entry"] for each in entries].count("RepairStarted") == 1
    states = [each["state"] for each in entries if "state" in each]
    assert states == ["applied", "verified"]
    if LONG:
        shop.killed("RepairChanged after 1", "reconcile", "undo", "--yes")
    shop.killed("RepairProgress after 1", "reconcile", "undo", "--yes")
    assert shop.run(*repair).returncode == 9
    assert shop.run("reconcile", "undo", "--yes").returncode == 0
    assert len(sink.rows()) == 1


def test_a_sink_that_runs_or_has_moved_on_is_not_repaired(
    shop: Shop, postgres: PostgresServer
) -> None:
    """The connector must be stopped, its offsets and the compared columns as in the report."""
    sink = stopped_sink(shop, postgres, UPSERT)
    sink.sql("DELETE FROM orders WHERE id = 3")
    report = sink.report(finding("missing", sink.places()[3]))
    assert shop.run("connectors", "resume", sink.name, "--wait").returncode == 0
    running = shop.run("reconcile", "repair", str(report), "--yes")
    assert running.returncode == 9
    assert "RUNNING" in running.stderr
    produce(shop.broker, sink.topic, [RECORDS])
    eventually(lambda: len(sink.rows()) == RECORDS, WAIT_S)
    assert shop.run("connectors", "stop", sink.name, "--wait").returncode == 0
    moved = shop.run("reconcile", "repair", str(report), "--yes")
    assert moved.returncode == 9
    assert "moved on since the report" in moved.stderr
    other = shop.run("reconcile", "repair", str(report), "--column", "id", "--yes")
    assert other.returncode == 9
    assert "another question" in other.stderr
    assert len(sink.rows()) == RECORDS
