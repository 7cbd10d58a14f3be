"""Rows of every type pass a real agent; an audit finds each value that changes then."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.databases import Database, fill
from tests.connectors.matrix.document import CATALOG
from tests.connectors.matrix.meanings import Kind, equal, to_milliseconds
from tests.connectors.matrix.rules import refusal
from tests.connectors.matrix.systems import Systems
from tests.connectors.matrix.topics import Topic
from tests.support.agent import Agent, Agents
from tests.support.audits import Audit
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker
from tests.support.mariadb import running_mariadb
from tests.support.names import unique_name
from tests.support.postgres import PASSWORD, USER, running_postgres
from tests.support.pyconnect_command import Pyconnect

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

WAIT_S = 120
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON_CONVERTER, "value.converter": JSON_CONVERTER}
DATABASES = ("PostgreSQL", "MariaDB", "SQLite")


def ordinary_cells() -> list[Cell]:
    """Return a value of each column of PostgreSQL that arrives equal in every target."""
    found = []
    for column in CATALOG["PostgreSQL"]:
        for value in column.values:
            cell = Cell(column, value)
            if value.meaning is not None and not any(
                refusal(cell, Topic.JSON, target) for target in DATABASES
            ):
                found.append(cell)
                break
    return found


CELLS = ordinary_cells()


@dataclass(frozen=True, slots=True)
class Moved:
    """A topic with a row for each column, all of them of the same values."""

    agent: Agent
    command: Pyconnect
    systems: Systems
    topic: str
    directory: Path

    def create(self, **config: str) -> str:
        name = unique_name("matrix")
        self.agent.create(name, {**CONVERTERS, **config})
        return name

    def spec_of(self, sink: str) -> dict[str, Any]:
        ended = self.command("reconcile", "topic-sink", sink, "--print-spec", "-o", "json")
        assert ended.code == 0, ended.err
        spec: dict[str, Any] = json.loads(ended.out)
        if spec["right"].get("url", "").startswith(("jdbc:postgresql:", "jdbc:mariadb:")):
            file = self.directory / "secret.properties"
            file.write_text(f"user={USER}\npassword={PASSWORD}\n")
            spec["right"]["properties"] = str(file)
        return spec


@pytest.fixture(scope="module")
def moved(kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    directory = tmp_path_factory.mktemp("matrix")
    broker = kafka_broker.bootstrap_servers
    prefix = unique_name("matrix") + "-"
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        mariadb = stack.enter_context(running_mariadb())
        systems = stack.enter_context(contextlib.closing(Systems(postgres, mariadb, directory)))
        fill(systems.databases["PostgreSQL"], "orders", [c for c in CELLS for _ in CELLS])
        agents = stack.enter_context(contextlib.closing(Agents(broker, directory)))
        agent = agents.start(properties={"offset.flush.interval.ms": "500"})
        command = Pyconnect(directory, agent.url, broker)
        found = Moved(agent, command, systems, f"{prefix}orders", directory)
        found.create(
            **{
                "connector.class": "SqlSource",
                **systems.databases["PostgreSQL"].settings(),
                "mode": "incrementing",
                "incrementing.column.name": "id",
                "table.whitelist": "orders",
                "topic.prefix": prefix,
            }
        )
        yield found


def changed(kind: Kind, value: Any) -> object:
    """Return a value of the same kind that differs as little as possible."""
    match kind, value:
        case Kind.BOOL, _:
            return not value
        case Kind.INT, int():
            return value - 1
        case Kind.FLOAT32, _:
            return 1.5000001192092896
        case Kind.FLOAT64, _:
            return 1.5000000000000002
        case _, Decimal():
            step = Decimal((0, (1,), value.as_tuple().exponent))  # type: ignore[arg-type]
            return Context(prec=2000).subtract(value, step)
        case _, bytes():
            return value + b"\0"
        case _, datetime():
            return value + timedelta(milliseconds=1)
        case _, date():
            return value + timedelta(days=1)
        case _, time():
            return value.replace(microsecond=value.microsecond + 1000)
    return f"{value} "


def stored(cell: Cell) -> tuple[Kind, Any]:
    """Return how a target holds a value: JSON and what Connect has no type for are texts."""
    column, meaning = cell.column, to_milliseconds(cell.value.meaning)
    if column.kind is Kind.JSON or (column.kind is Kind.DECIMAL and column.scale is None):
        return Kind.TEXT, meaning
    return column.kind, meaning


def compare(found: Sequence[dict[str, object]]) -> None:
    """Each row has the values that the source has."""
    assert len(found) == len(CELLS)
    for row in found:
        wrong = {
            cell.column.type: row[cell.column.name]
            for cell in CELLS
            if not equal(
                cell.column.kind,
                to_milliseconds(cell.value.meaning),
                row[cell.column.name],
            )
        }
        assert wrong == {}


def find_all(audit: Audit, moved: Moved, sink: str) -> None:
    """The audit finds each row in which one value was changed."""
    answer = audit.run(**moved.spec_of(sink))
    assert answer.verdict is Verdict.DIFFER
    assert answer.outcome.totals["missing"] == len(CELLS)


@pytest.mark.parametrize("name", DATABASES)
def test_a_changed_value_of_each_type_is_found_in_a_database(
    audit: Audit, moved: Moved, name: str
) -> None:
    """Each row has one; before that, source and target have equal values and the audit agrees."""
    database: Database = moved.systems.databases[name]
    sink = moved.create(
        **{
            "connector.class": "SqlSink",
            **database.settings(),
            "topics": moved.topic,
            "table.name.format": "target",
            "auto.create": "true",
            "consumer.override.isolation.level": "read_committed",
        }
    )
    kinds = {cell.column.name: cell.column.kind for cell in CELLS}

    def rows() -> list[dict[str, object]]:
        with contextlib.suppress(Exception):
            return database.read("target", kinds)
        return []

    eventually(lambda: len(rows()) == len(CELLS), WAIT_S)
    eventually(lambda: moved.agent.get(f"/connectors/{sink}/offsets")["offsets"], WAIT_S)
    compare(rows())
    answer = audit.run(**moved.spec_of(sink))
    assert (answer.verdict, answer.kinds()) == (Verdict.AGREE, set())
    held = database.read("target", {c.column.name: stored(c)[0] for c in CELLS})
    for row, cell in enumerate(CELLS):
        kind, _ = stored(cell)
        value = changed(kind, held[row][cell.column.name])
        database.change("target", cell.column.name, row, value)
    find_all(audit, moved, sink)
