"""LakeSource and LakeSink, audited from their configuration while they run."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import Agents
from tests.support.audits.audits import Audit
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.s3 import ACCESS_KEY, SECRET_KEY, running_s3
from tests.support.servers.topics import create_topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(850)]

WAIT_S = 150
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON_CONVERTER, "value.converter": JSON_CONVERTER}


def write(path: Path, numbers: range) -> None:
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "price": pa.array([Decimal(n).scaleb(-2) for n in numbers], pa.decimal128(12, 2)),
        "at": pa.array(
            [datetime.fromtimestamp(n, UTC) for n in numbers], pa.timestamp("ms", "UTC")
        ),
        "day": pa.array([date.fromordinal(700_000 + n) for n in numbers]),
        "raw": pa.array([bytes([n % 256]) for n in numbers]),
        "paid": pa.array([n % 2 == 0 for n in numbers]),
        "city": pa.array([("Ulm", "Bonn", None)[n % 3] for n in numbers]),
    }
    pq.write_table(pa.table(columns), path)


def printed_spec(command: Pyconnect, job: str, name: str) -> dict[str, Any]:
    ended = command("reconcile", job, name, "--print-spec", "-o", "json")
    assert ended.code == 0, ended.err
    spec: dict[str, Any] = json.loads(ended.out)
    return spec


def test_files_agree_with_the_topic_between_them(
    audit: Audit, kafka_broker: SharedBroker, agents: Agents, tmp_path: Path
) -> None:
    """Both sides agree with the topic, except for the rows of a lost file in a directory."""
    broker, topic = kafka_broker.bootstrap_servers, unique_name("lake")
    create_topics(broker, [topic], partitions=2)
    incoming, lake = tmp_path / "in", tmp_path / "lake"
    incoming.mkdir()
    write(incoming / "a.parquet", range(100))
    write(incoming / "b.parquet", range(100, 300))
    agent = agents.start(properties={"offset.flush.interval.ms": "500"})
    command = Pyconnect(tmp_path, agent.url, broker)
    source, sink = unique_name("from-lake"), unique_name("to-lake")
    agent.create(
        source,
        {
            **CONVERTERS,
            "connector.class": "LakeSource",
            "lake.url": str(incoming),
            "topic": topic,
            "poll.interval.ms": "100",
        },
    )
    agent.create(
        sink,
        {
            **CONVERTERS,
            "connector.class": "LakeSink",
            "lake.url": str(lake),
            "topics": topic,
            "flush.size": "60",
            "rotate.schedule.interval.ms": "500",
            "partitioner.class": "field",
            "partition.field.name": "city",
            "consumer.override.isolation.level": "read_committed",
        },
    )

    def offsets(name: str) -> list[dict[str, Any]]:
        return [entry["offset"] for entry in agent.get(f"/connectors/{name}/offsets")["offsets"]]

    def spec_of(job: str, name: str) -> dict[str, Any]:
        return printed_spec(command, job, name)

    eventually(lambda: [o.get("done") for o in offsets(source)] == [True, True], WAIT_S)
    eventually(lambda: sum(o["kafka_offset"] for o in offsets(sink)) >= 300, WAIT_S)
    answer = audit.run(**spec_of("source-topic", source))
    assert answer.outcome.counts["rows_left"] == 300
    assert answer.verdict is Verdict.AGREE, answer.outcome.findings
    lost = next(lake.rglob("city=Bonn/*.parquet"))
    rows = pq.read_metadata(lost).num_rows
    lost.unlink()
    answer = audit.run(**spec_of("topic-sink", sink))
    assert answer.outcome.counts["rows_right"] == 300 - rows
    assert answer.outcome.totals == {"missing": rows, "extra": 0, "repeated": 0}


def test_csv_and_an_iceberg_table_in_s3_agree_with_the_topic(
    audit: Audit, kafka_broker: SharedBroker, agents: Agents, tmp_path: Path
) -> None:
    """CSV texts are compared as numbers and times, and deleted rows of Iceberg are found."""
    broker, topic = kafka_broker.bootstrap_servers, unique_name("lake")
    create_topics(broker, [topic], partitions=2)
    write(tmp_path / "rows.parquet", range(200))
    with running_s3() as s3:
        bucket = s3.new_bucket()
        incoming = s3.files / bucket / "base" / "in" / "rows.parquet"
        incoming.parent.mkdir(parents=True)
        incoming.write_bytes((tmp_path / "rows.parquet").read_bytes())
        agent = agents.start(properties={"offset.flush.interval.ms": "500"})
        command = Pyconnect(tmp_path, agent.url, broker)
        source, to_csv, to_table = (unique_name(name) for name in ("from-s3", "to-s3", "to-table"))
        common = {**CONVERTERS, "consumer.override.isolation.level": "read_committed"}
        agent.create(
            source,
            CONVERTERS
            | s3.settings(bucket)
            | {"connector.class": "LakeSource", "topic": topic, "prefix": "in"},
        )
        agent.create(
            to_csv,
            common
            | s3.settings(bucket)
            | {
                "connector.class": "LakeSink",
                "topics": topic,
                "format.class": "csv",
                "flush.size": "60",
                "rotate.schedule.interval.ms": "500",
            },
        )
        agent.create(
            to_table,
            common
            | s3.settings(bucket)
            | {
                "connector.class": "LakeSink",
                "topics": topic,
                "format.class": "iceberg",
                "iceberg.catalog.uri": f"sqlite:///{tmp_path}/catalog.db",
                "iceberg.tables": "shop.rows",
                "iceberg.tables.auto-create-enabled": "true",
                "iceberg.control.commit.interval-ms": "500",
            },
        )

        def end_of(name: str) -> int:
            entries = agent.get(f"/connectors/{name}/offsets")["offsets"]
            return sum(entry["offset"].get("kafka_offset", 0) for entry in entries)

        def is_read() -> bool:
            entries = agent.get(f"/connectors/{source}/offsets")["offsets"]
            return [entry["offset"].get("done") for entry in entries] == [True]

        eventually(is_read, WAIT_S)
        eventually(lambda: min(map(end_of, (to_csv, to_table))) >= 200, WAIT_S)
        keys = tmp_path / "s3.properties"
        keys.write_text(f"access_key={ACCESS_KEY}\nsecret_key={SECRET_KEY}\n")
        spec = printed_spec(command, "source-topic", source)
        spec["left"]["properties"] = str(keys)
        answer = audit.run(**spec)
        assert answer.verdict is Verdict.AGREE, answer.outcome.findings
        spec = printed_spec(command, "topic-sink", to_csv)
        spec["right"]["properties"] = str(keys)
        answer = audit.run(**spec)
        assert answer.outcome.counts["rows_right"] == 200
        assert answer.verdict is Verdict.AGREE, answer.outcome.findings
        spec = printed_spec(command, "topic-sink", to_table)
        spec["right"]["properties"] = str(keys)
        access = {
            "s3.endpoint": s3.url,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": "us-east-1",
        }
        catalog = SqlCatalog("iceberg", uri=f"sqlite:///{tmp_path}/catalog.db", **access)
        catalog.load_table("shop.rows").delete("id < 7")
        answer = audit.run(**spec)
        assert answer.outcome.counts["rows_right"] == 193
        assert answer.outcome.totals == {"missing": 7, "extra": 0, "repeated": 0}
