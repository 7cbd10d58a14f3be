"""A stopped SqlSink with a table to damage, and the command line that repairs it."""

import contextlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool

from pyconnect_reconcile.findings import CheckOutcome, Finding, Place
from pyconnect_reconcile.report.contents import Report, write_report
from pyconnect_reconcile.spec import MAIN, TopicSide, read_spec
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import narrowed
from tests.support.agents.agent import Agent
from tests.support.commands import killed_command
from tests.support.commands.killed_command import KILLED_AT, WITHOUT_AUDIT
from tests.support.commands.processes import run_python
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer
from tests.support.servers.topics import create_topics

WAIT_S = 150
RUN_S = 300
PATIENTLY = ("--timeout", "5m", "--request-timeout", "2m")
RECORDS = 250
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
FIELDS = [
    {"type": "int64", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "note"},
    {"type": "double", "optional": False, "field": "ratio"},
    {
        "type": "bytes",
        "optional": False,
        "field": "price",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2"},
    },
    {
        "type": "int64",
        "optional": False,
        "field": "at",
        "name": "org.apache.kafka.connect.data.Timestamp",
        "version": 1,
    },
]
UPSERT = {
    "insert.mode": "upsert",
    "pk.mode": "record_key",
    "pk.fields": "id",
    "delete.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Shop:
    """An agent, and the command line with its own state directory."""

    agent: Agent
    broker: str
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "XDG_STATE_HOME": str(self.directory / "state"),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "NO_COLOR": "1",
            "PYCONNECT_URL": self.agent.url,
            "PYCONNECT_KAFKA_BOOTSTRAP": self.broker,
        }

    def run(self, *arguments: str, audits: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command; a repair ends without its audit unless the audit is requested."""
        module = "pyconnect_cli" if audits else killed_command.__name__
        environment = {**self.environment, WITHOUT_AUDIT: "1"}
        command = ["-m", module, *arguments, *PATIENTLY]
        done = run_python(command, environment, RUN_S)
        assert "Traceback" not in done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        return done

    def killed(self, point: str, *arguments: str) -> None:
        """Run a command that kills itself at a point of the journal."""
        environment = {**self.environment, KILLED_AT: point, WITHOUT_AUDIT: "1"}
        command = ["-m", killed_command.__name__, *arguments, *PATIENTLY]
        done = run_python(command, environment, RUN_S)
        assert done.returncode == -9, done.stderr

    def spec(self, connector: str, job: str = "topic-sink") -> dict[str, Any]:
        """Resolve the audit of a connector."""
        asked = ("reconcile", job, connector, "--print-spec", "-o", "json")
        done = self.run(*asked)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def journal(self) -> list[dict[str, Any]]:
        file = self.directory / "state" / "pyconnect" / "repairs" / "journal.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]


@dataclass(frozen=True, slots=True)
class Sink:
    """A stopped sink and its table of RECORDS rows."""

    shop: Shop
    name: str
    url: str
    topic: str

    def report(self, *findings: Finding) -> Path:
        """Write the report of an audit with these findings, and return its directory."""
        directory = self.shop.directory / unique_name("report")
        directory.mkdir()
        document = self.shop.spec(self.name)
        # An audit names the user in a file; --print-spec shows no credentials.
        access = self.shop.directory / f"{directory.name}.properties"
        access.write_text(f"user={make_url(self.url).username}\n")
        document["right"]["properties"] = str(access)
        spec = read_spec(document)
        assert isinstance(spec.left, TopicSide)
        snapshot = ClusterView(spec.clusters[MAIN]).snapshot(spec.left.topics)
        totals = Counter({finding.kind: 0 for finding in findings})
        for finding in findings:
            totals[finding.kind] += finding.count
        whole = Report(
            spec=spec,
            snapshots={MAIN: narrowed(snapshot, since={}, until=spec.until)},
            outcome=CheckOutcome(findings=findings, totals=totals),
            started_ms=0,
            duration_ms=0,
            spark_version="",
        )
        write_report(whole, directory, parquet=False)
        return directory

    def places(self) -> dict[int, Place]:
        """Return the places of the topic's records by their numbers."""
        consumer = Consumer(
            {"bootstrap.servers": self.shop.broker, "group.id": unique_name("places")}
        )
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(self.topic, part, 0) for part in (0, 1)])
            found = {}
            for message in consumer.consume(RECORDS, WAIT_S):
                number = json.loads(message.key() or b"{}")["payload"]
                found[number] = Place(
                    topic=self.topic, partition=message.partition(), offset=message.offset()
                )
        assert len(found) == RECORDS
        return found

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        engine = create_engine(self.url, poolclass=NullPool)
        with engine.begin() as connection:
            found = connection.exec_driver_sql(statement)
            return [tuple(row) for row in found] if found.returns_rows else []

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.sql("SELECT * FROM orders"), key=repr)


def produce(broker: str, topic: str, numbers: Sequence[int]) -> None:
    """Write one record for each number, as JsonConverter writes rows."""
    producer = Producer({"bootstrap.servers": broker})
    schema = {"type": "struct", "optional": False, "name": "orders", "fields": FIELDS}
    for number in numbers:
        payload = {
            "id": number,
            "note": None if number % 5 == 0 else f"note {number}",
            "ratio": number / 7,
            "price": "Cg==",
            "at": 1_700_000_000_000 + number,
        }
        key = {"schema": {"type": "int64", "optional": False}, "payload": number}
        value = {"schema": schema, "payload": payload}
        producer.produce(topic, json.dumps(value), json.dumps(key))
    assert producer.flush(30) == 0


def stopped_sink(shop: Shop, server: PostgresServer | MariaDbServer, mode: dict[str, str]) -> Sink:
    database, topic = server.new_database(), unique_name("orders")
    create_topics(shop.broker, [topic], partitions=2)
    produce(shop.broker, topic, range(RECORDS))
    name = unique_name("sink")
    shop.agent.create(
        name,
        {
            "connector.class": "SqlSink",
            **server.settings(database),
            **mode,
            "topics": topic,
            "table.name.format": "orders",
            "auto.create": "true",
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
            "consumer.override.isolation.level": "read_committed",
        },
    )
    url = server.url(database).replace("://", f"://{USER}:{PASSWORD.replace(' ', '%20')}@")
    sink = Sink(shop, name, url, topic)

    def whole() -> bool:
        with contextlib.suppress(Exception):
            return len(sink.rows()) == RECORDS
        return False

    def committed() -> bool:
        entries = shop.agent.get(f"/connectors/{name}/offsets")["offsets"]
        return sum(entry["offset"]["kafka_offset"] for entry in entries) == RECORDS

    eventually(whole, WAIT_S)
    eventually(committed, WAIT_S)
    stopped = shop.run("connectors", "stop", name, "--wait")
    assert stopped.returncode == 0, stopped.stderr
    return sink
