"""Sinks of other projects, found by their configuration, with faults from their issue reports."""

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from pyconnect_cli.reconcile.connectors import Audited, Config
from pyconnect_cli.reconcile.resolution import SINKS, resolver
from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import Agents
from tests.support.audits.audits import Answer, Audit
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import ICEBERG_SINK, JDBC_SINK, location_of
from tests.support.seeds import chosen
from tests.support.servers.iceberg_rest import TOKEN, running_rest_catalog
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.postgres import PASSWORD, USER, running_postgres
from tests.support.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server, running_s3
from tests.support.servers.topics import create_topics, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(850)]

WAIT_S = 150
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
PLAIN_JSON = {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": "false"}
FIELDS = [
    {"field": "id", "type": "int32", "optional": False},
    {"field": "name", "type": "string", "optional": True},
    {
        "field": "price",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
        "optional": True,
    },
    {
        "field": "at",
        "type": "int64",
        "name": "org.apache.kafka.connect.data.Timestamp",
        "version": 1,
        "optional": True,
    },
]
ROWS = [
    {"id": 1, "name": "ä", "price": "MDk=", "at": 1_700_000_000_123},
    {"id": 2, "name": None, "price": None, "at": None},
    {"id": 3, "name": "null", "price": "/w==", "at": 0},
    {"id": 4, "name": " ", "price": "AA==", "at": -1},
]


def enveloped(rows: list[dict[str, Any]]) -> list[bytes]:
    schema = {"type": "struct", "optional": False, "fields": FIELDS}
    return [json.dumps({"schema": schema, "payload": row}).encode() for row in rows]


def test_a_table_of_debeziums_sink_agrees_until_a_row_is_lost_changed_or_doubled(
    audit: Audit, kafka_broker: SharedBroker, agents: Agents, tmp_path: Path
) -> None:
    """The real connector's config is enough to find its table and all its differences."""
    broker, topic = kafka_broker.bootstrap_servers, unique_name("Shop.Orders").replace("-", "_")
    create_topics(broker, [topic])
    produce(broker, topic, *enveloped(ROWS))
    agent = agents.start(
        properties={
            "plugin.path": str(location_of(JDBC_SINK).parent),
            "offset.flush.interval.ms": "500",
        }
    )
    command, name = Pyconnect(tmp_path, agent.url, broker), unique_name("jdbc")
    secret = tmp_path / "secret.properties"
    secret.write_text(f"user={USER}\npassword={PASSWORD}\n")
    with running_postgres() as postgres:
        database = postgres.new_database()
        agent.create(
            name,
            {
                "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
                "topics": topic,
                "connection.url": f"jdbc:postgresql://127.0.0.1:{postgres.port}/{database}",
                "connection.username": USER,
                "connection.password": PASSWORD,
                "schema.evolution": "basic",
                "value.converter": JSON_CONVERTER,
            },
        )

        def is_committed() -> bool:
            entries = agent.get(f"/connectors/{name}/offsets")["offsets"]
            return sum(entry["offset"]["kafka_offset"] for entry in entries) == len(ROWS)

        def audited() -> Answer:
            ended = command("reconcile", "topic-sink", name, "--print-spec", "-o", "json")
            assert ended.code == 0, ended.err
            assert PASSWORD not in ended.out
            spec = json.loads(ended.out)
            spec["right"]["properties"] = str(secret)
            return audit.run(**spec)

        eventually(is_committed, WAIT_S, lambda: agent.get(f"/connectors/{name}/status"))
        answer = audited()
        assert answer.verdict is Verdict.AGREE, answer.outcome.findings
        table = topic.replace(".", "_").lower()
        with postgres.connect(database) as rows:
            rows.execute(f'DELETE FROM "{table}" WHERE id = 1'.encode())
            rows.execute(f'UPDATE "{table}" SET price = price + 0.01 WHERE id = 3'.encode())
            rows.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" WHERE id = 4'.encode())
        answer = audited()
        assert answer.verdict is Verdict.DIFFER
        assert answer.outcome.totals == {"missing": 2, "extra": 1, "repeated": 1}


def spec_of(config: Config, topic: str, properties: Path | None = None) -> dict[str, Any]:
    """Return the spec of `topic-sink` for a connector whose jar is not available here."""
    resolve = resolver(config, SINKS)
    assert resolve is not None
    found = resolve(Audited(name="c", config=config, topics=[topic], offsets=[]))
    left = {"kind": "topic", "topics": [topic], "value": "connect-json", **found.topic}
    right = found.side if properties is None else {**found.side, "properties": str(properties)}
    return {"job": "topic-sink", "left": left, "right": right, **found.members}


@pytest.fixture
def s3() -> Iterator[S3Server]:
    with running_s3() as server:
        yield server


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "s3.properties"
    file.write_text(f"access_key={ACCESS_KEY}\nsecret_key={SECRET_KEY}\n")
    return file


def json_lines(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write an object as JsonFormat does with s3.compression.type=gzip."""
    text = "".join(
        f"{json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n" for row in rows
    )
    file.with_suffix(".json.gz").write_bytes(gzip.compress(text.encode()))


def parquet(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write an object as ParquetFormat does: Connect's decimals and times as Parquet's."""
    unscaled = {"MDk=": "123.45", "/w==": "-0.01", "AA==": "0.00"}
    columns = {
        "id": pa.array([row["id"] for row in rows], pa.int32()),
        "name": pa.array([row["name"] for row in rows], pa.string()),
        "price": pa.array(
            [row["price"] and Decimal(unscaled[row["price"]]) for row in rows], pa.decimal128(12, 2)
        ),
        "at": pa.array([row["at"] for row in rows], pa.timestamp("ms", "UTC")),
    }
    pq.write_table(pa.table(columns), file.with_suffix(".snappy.parquet"))


def avro(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write an object as AvroFormat does; Connect's converter declares 64 digits for a decimal."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    fields = [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "price", "type": ["null", price], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    ]
    schema = {"type": "record", "name": "ConnectDefault", "fields": fields}
    unscaled = {"MDk=": "123.45", "/w==": "-0.01", "AA==": "0.00"}
    records = [{**row, "price": row["price"] and Decimal(unscaled[row["price"]])} for row in rows]
    with file.with_suffix(".avro").open("wb") as stream:
        fastavro.writer(stream, schema, records, codec="deflate")


@pytest.mark.parametrize(
    ("format_class", "write"),
    chosen(
        [("json.JsonFormat", json_lines), ("parquet.ParquetFormat", parquet)],
        long=[("a.AvroFormat", avro)],
    ),
)
def test_objects_of_confluents_s3_sink_agree_until_one_is_lost(
    audit: Audit,
    kafka_broker: SharedBroker,
    s3: S3Server,
    keys: Path,
    format_class: str,
    write: Callable[[Path, list[dict[str, Any]]], None],
) -> None:
    """Objects under the names that the sink documents agree, until one is lost."""
    broker, topic, bucket = kafka_broker.bootstrap_servers, unique_name("orders"), s3.new_bucket()
    create_topics(broker, [topic])
    produce(broker, topic, *enveloped(ROWS))
    directory = s3.files / bucket / "topics" / topic / "partition=0"
    directory.mkdir(parents=True)
    write(directory / f"{topic}+0+0000000000", ROWS[:3])
    last = {file.name for file in directory.iterdir()}
    write(directory / f"{topic}+0+0000000003", ROWS[3:])
    config = {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": topic,
        "s3.bucket.name": bucket,
        "s3.region": "us-east-1",
        "store.url": s3.url,
        "format.class": f"io.confluent.connect.s3.format.{format_class}",
        "value.converter": JSON_CONVERTER,
    }
    answer = audit.run(**spec_of(config, topic, keys))
    assert answer.verdict is Verdict.AGREE, answer.outcome.findings
    (lost,) = (file for file in directory.iterdir() if file.name not in last)
    lost.unlink()
    answer = audit.run(**spec_of(config, topic, keys))
    assert answer.outcome.totals == {"missing": 1, "extra": 0, "repeated": 0}


@pytest.mark.parametrize(
    ("settings", "values", "line_of"),
    [
        (
            {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"},
            [b"a\nb", b"\xff\x00" * 60, b"", None, b"}", b"a", b"last"],
            lambda value: base64.b64encode(value or b""),
        ),
        (
            {"format.output.type": "jsonl", **PLAIN_JSON},
            [b'{"id":1}', b'"}"', b"[1,2]", b'{"value":2}', b"3", b"null", b'"last"'],
            lambda value: b'{"value":%s}' % value,
        ),
    ],
)
def test_lines_of_aivens_s3_sink_differ_where_they_were_changed(
    audit: Audit,
    kafka_broker: SharedBroker,
    s3: S3Server,
    keys: Path,
    settings: dict[str, str],
    values: list[bytes | None],
    line_of: Callable[[bytes | None], bytes],
) -> None:
    """Changed lines differ, in Base64 and in envelopes, also in a gzip file without an ending."""
    broker, topic, bucket = kafka_broker.bootstrap_servers, unique_name("logs"), s3.new_bucket()
    create_topics(broker, [topic])
    produce(broker, topic, *values)
    ending = "" if "format.output.type" in settings else ".gz"
    file = s3.files / bucket / topic / f"0-0{ending}"
    file.parent.mkdir(parents=True)
    config = {
        "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
        "topics": topic,
        "aws.s3.bucket.name": bucket,
        "aws.s3.endpoint": s3.url,
        "file.name.template": "{{topic}}/{{partition}}-{{start_offset}}" + ending,
        **settings,
    }
    spec = spec_of(config, topic, keys)
    spec["left"]["value"] = "json" if "format.output.type" in settings else "bytes"
    lines = [line_of(value) for value in values]
    odd = [values[0] or b"", lines[1][:-1], lines[1][:-1] + b',"key":1}']
    file.write_bytes(gzip.compress(b"\n".join([*odd, *lines[2:], lines[-1]])))
    answer = audit.run(**spec)
    extra = len(b"\n".join(odd).split(b"\n"))
    assert answer.outcome.totals == {"missing": 2, "extra": extra, "repeated": 1}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = SqlCatalog(
        "iceberg", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    catalog.create_namespace("db")
    columns = (NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    return catalog.create_table("db.events", Schema(*columns))


def events(numbers: range) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"n{n}" for n in numbers]})


@pytest.fixture
def iceberg(kafka_broker: SharedBroker, tmp_path: Path) -> dict[str, Any]:
    """The spec of an Iceberg sink whose topic has ids 0 to 9."""
    topic = unique_name("events")
    create_topics(kafka_broker.bootstrap_servers, [topic])
    values = [json.dumps({"id": n, "name": f"n{n}"}).encode() for n in range(10)]
    produce(kafka_broker.bootstrap_servers, topic, *values)
    config = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": topic,
        "iceberg.tables": "db.events",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "value.converter": JSON_CONVERTER,
        "value.converter.schemas.enable": "false",
    }
    spec = spec_of(config, topic)
    spec["left"]["value"] = "json"
    return spec


@pytest.mark.long(only=True)
def test_a_table_of_apaches_iceberg_sink_agrees_until_rows_are_lost(
    audit: Audit, kafka_broker: SharedBroker, agents: Agents, tmp_path: Path
) -> None:
    """The real connector's table is audited through a catalog that requires a token."""
    broker, topic, control = kafka_broker.bootstrap_servers, unique_name("e"), unique_name("c")
    create_topics(broker, [topic, control])
    produce(broker, topic, *(json.dumps({"id": n, "name": f"n{n}"}).encode() for n in range(500)))
    (tmp_path / "lake").mkdir()
    agent = agents.start(properties={"plugin.path": str(location_of(ICEBERG_SINK).parent)})
    command, name = Pyconnect(tmp_path, agent.url, broker), unique_name("iceberg")
    secret = tmp_path / "secret.properties"
    secret.write_text(f"token={TOKEN}\n")
    with running_rest_catalog(tmp_path / "lake") as address:
        catalog = RestCatalog("tests", uri=address, token=TOKEN)
        catalog.create_namespace("db")
        columns = (NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
        catalog.create_table("db.events", Schema(*columns))
        agent.create(
            name,
            {
                "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
                "topics": topic,
                **PLAIN_JSON,
                "iceberg.tables": "db.events",
                "iceberg.control.topic": control,
                "iceberg.control.commit.interval-ms": "1000",
                "iceberg.kafka.bootstrap.servers": broker,
                "iceberg.catalog.type": "rest",
                "iceberg.catalog.uri": address,
                "iceberg.catalog.token": TOKEN,
                "iceberg.catalog.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            },
        )

        def rows() -> int:
            return int(catalog.load_table("db.events").scan().count())

        def audited() -> Answer:
            ended = command("reconcile", "topic-sink", name, "--print-spec", "-o", "json")
            assert ended.code == 0, ended.err
            assert TOKEN not in ended.out
            spec = json.loads(ended.out)
            spec["right"]["properties"] = str(secret)
            return audit.run(**spec)

        eventually(lambda: rows() == 500, WAIT_S, lambda: agent.get(f"/connectors/{name}/status"))
        answer = audited()
        assert answer.verdict is Verdict.AGREE, answer.outcome.findings
        assert answer.outcome.counts["rows_left"] == 500
        catalog.load_table("db.events").delete("id = 7 OR id = 8")
        answer = audited()
        assert answer.outcome.totals == {"missing": 2, "extra": 0, "repeated": 0}


def test_a_data_file_that_a_table_names_twice_is_found(
    audit: Audit, table: Table, iceberg: dict[str, Any], tmp_path: Path
) -> None:
    """Rows are repeated if a sink adds a file twice, as after a commit that seemed to time out."""
    file = tmp_path / "data.parquet"
    pq.write_table(events(range(5, 10)), file)
    table.append(events(range(5)))
    table.add_files([f"file://{file}"])
    answer = audit.run(**iceberg)
    assert answer.verdict is Verdict.AGREE, answer.outcome.findings
    table.add_files([f"file://{file}"], check_duplicate_files=False)
    answer = audit.run(**iceberg)
    assert answer.verdict is Verdict.DIFFER
    assert answer.outcome.totals == {"missing": 0, "extra": 0, "repeated": 5}


def test_rows_of_files_that_were_never_committed_are_missing(
    audit: Audit, table: Table, iceberg: dict[str, Any]
) -> None:
    """Rows in files without a commit are missing, although their offsets are committed."""
    table.append(events(range(7)))
    before = table.metadata_location
    orphan = Path(before.removeprefix("file://")).parents[1] / "data" / "orphan.parquet"
    pq.write_table(events(range(7, 10)), orphan)
    answer = audit.run(**iceberg)
    assert answer.outcome.totals == {"missing": 3, "extra": 0, "repeated": 0}


def test_tables_of_one_name_are_read_from_their_own_stores_and_catalogs(
    audit: Audit, s3: S3Server, keys: Path, iceberg: dict[str, Any], tmp_path: Path
) -> None:
    """Tables of one name in two stores and catalogs are kept apart, in turn and in one audit."""
    with running_s3() as other:
        bucket = s3.new_bucket()
        (other.files / bucket).mkdir()
        sides = []
        for name, server, rows in (("one", s3, 10), ("two", other, 7)):
            catalog = SqlCatalog(
                "iceberg",
                uri=f"sqlite:///{tmp_path}/{name}.db",
                warehouse=f"s3://{bucket}/base",
                **{
                    "s3.endpoint": server.url,
                    "s3.access-key-id": ACCESS_KEY,
                    "s3.secret-access-key": SECRET_KEY,
                    "s3.region": "us-east-1",
                },
            )
            catalog.create_namespace("db")
            catalog.create_table("db.events", events(range(1)).schema).append(events(range(rows)))
            side = iceberg["right"]
            url = f"jdbc:sqlite:{tmp_path}/{name}.db"
            sides.append(
                {
                    **side,
                    "catalog": {**side["catalog"], "url": url},
                    "store": {"endpoint": server.url, "region": "us-east-1"},
                    "properties": str(keys),
                }
            )
        totals = [audit.run(**{**iceberg, "right": side}).outcome.totals for side in sides]
        assert [each.get("missing") for each in totals] == [None, 3]
        tiers = [
            {"name": name, "side": side, "event_time": "column:id"}
            for name, side in zip("ab", sides, strict=True)
        ]
        answer = audit.run("completeness", tiers=tiers)
        assert answer.verdict is Verdict.DIFFER
        assert answer.outcome.counts["rows_b"] == 7
