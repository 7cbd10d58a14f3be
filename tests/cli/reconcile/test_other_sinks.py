"""Sinks of other projects as sides of a compare, as their configurations describe them."""

import json
from pathlib import Path

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.connectors import Audited, Config, Resolved
from pyconnect_cli.reconcile.resolution import SINKS, resolver
from pyconnect_reconcile.spec import read_spec
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

KAFKA = ("--kafka-bootstrap", "b:9092", "--print-spec", "-o", "json")
CONFLUENT_JDBC = "io.confluent.connect.jdbc.JdbcSinkConnector"
AIVEN_JDBC = "io.aiven.connect.jdbc.JdbcSinkConnector"
DEBEZIUM_JDBC = "io.debezium.connector.jdbc.JdbcSinkConnector"
CONFLUENT_S3 = "io.confluent.connect.s3.S3SinkConnector"
AIVEN_S3 = "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector"
ICEBERG = "org.apache.iceberg.connect.IcebergSinkConnector"
POSTGRES = "jdbc:postgresql://db.example/shop?user=me&password=hunter2&sslmode=require"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
PLAIN_JSON = {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": "false"}
VALUES = {"format.output.fields": "value", "format.output.envelope": "false"}


def resolved(connector_class: str, config: Config, *topics: str) -> Resolved:
    given = {
        "connector.class": connector_class,
        "topics": ",".join(topics or ("orders",)),
        **config,
    }
    resolve = resolver(given, SINKS)
    assert resolve is not None
    return resolve(Audited(name="c", config=given, topics=topics or ("orders",), offsets=[]))


@cases("connector_class", CONFLUENT_JDBC, AIVEN_JDBC, DEBEZIUM_JDBC)
def test_the_spec_of_a_jdbc_sink_has_the_address_and_no_secret(
    run: Run, connect: FakeConnect, connector_class: str
) -> None:
    """The spec of a JDBC sink has the database's address without user and password."""
    config = {
        "connector.class": connector_class,
        "topics": "orders",
        "connection.url": POSTGRES,
        "connection.password": "hunter3",
        **PLAIN_JSON,
    }
    connect.connectors["out"] = FakeConnector(type="sink", config=config)
    outcome = run("reconcile", "topic-sink", "out", *KAFKA, code=0)
    assert "hunter" not in outcome.out
    spec = read_spec(json.loads(outcome.out))
    assert spec.right is not None
    assert (spec.mode, spec.duplicates_allowed) == ("append", True)
    assert '"url": "jdbc:postgresql://db.example:5432/shop?sslmode=require"' in outcome.out


@cases(
    "connector_class, config, topic, table",
    (CONFLUENT_JDBC, {}, "orders", '"orders"'),
    (CONFLUENT_JDBC, {}, "shop.orders", '"shop"."orders"'),
    (CONFLUENT_JDBC, {"table.name.format": "s.kafka_${topic}"}, "Orders", '"s"."kafka_Orders"'),
    (AIVEN_JDBC, {"table.name.normalize": "true"}, "shop.orders-1", '"shop_orders_1"'),
    (AIVEN_JDBC, {"topics.to.tables.mapping": "x:a,orders:b"}, "orders", '"b"'),
    (DEBEZIUM_JDBC, {}, "Server.public.Orders", '"server_public_orders"'),
    (DEBEZIUM_JDBC, {}, "Shop.Orders-1", '"Shop_Orders-1"'),
    (DEBEZIUM_JDBC, {"quote.identifiers": "true"}, "s.Orders", '"s_Orders"'),
    (DEBEZIUM_JDBC, {"collection.name.format": "app.t_${topic}"}, "o", '"app"."t_o"'),
)
def test_a_jdbc_sink_names_its_table_by_its_own_rules(
    connector_class: str, config: Config, topic: str, table: str
) -> None:
    """Each JDBC sink derives the table's name from the topic by the sink's own rules."""
    found = resolved(connector_class, {"connection.url": POSTGRES, **config}, topic)
    assert found.side["table"] == table


def test_urls_name_schema_and_file() -> None:
    """PostgreSQL's currentSchema becomes the schema, and SQLite's URL keeps its path."""
    url = f"{POSTGRES}&currentSchema=app"
    assert resolved(CONFLUENT_JDBC, {"connection.url": url}).side["table"] == '"app"."orders"'
    found = resolved(CONFLUENT_JDBC, {"connection.url": "jdbc:sqlite:/data/a.db"})
    assert found.side["url"] == "jdbc:sqlite:/data/a.db"


@cases(
    "connector_class, keys",
    (CONFLUENT_JDBC, ("pk.mode", "pk.fields")),
    (DEBEZIUM_JDBC, ("primary.key.mode", "primary.key.fields")),
)
def test_upserts_are_compared_by_their_key(connector_class: str, keys: tuple[str, str]) -> None:
    """The settings that name the key of an upsert have other names in each sink."""
    config = {
        "connection.url": POSTGRES,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        keys[0]: "record_key",
        keys[1]: "id",
    }
    found = resolved(connector_class, config)
    assert found.members == {"mode": "upsert"}
    assert found.topic["row"] == {"of": "key", "keys": ["id"], "decimals": "base64"}


@cases(
    "written, topic, form, value",
    ("avro.AvroFormat", {}, "avro", None),
    ("parquet.ParquetFormat", {}, "parquet", None),
    ("json.JsonFormat", PLAIN_JSON, "json", "json"),
    ("json.JsonFormat", {"value.converter": JSON_CONVERTER}, "json", "connect-json"),
    ("bytearray.ByteArrayFormat", {}, "text", "bytes"),
)
def test_files_of_confluents_s3_sink_are_below_the_topic(
    written: str, topic: Config, form: str, value: str | None
) -> None:
    """A Confluent S3 sink's files are below its topic; JSON files hold no schemas of values."""
    config = {
        "s3.bucket.name": "lake",
        "store.url": "http://127.0.0.1:9000",
        "aws.access.key.id": "me",
        "aws.secret.access.key": "hunter2",
        "format.class": f"io.confluent.connect.s3.format.{written}",
        **topic,
    }
    found = resolved(CONFLUENT_S3, config)
    assert found.side["paths"] == ["s3://lake/topics/orders"]
    assert found.side["format"] == form
    assert found.side["store"] == {"endpoint": "http://127.0.0.1:9000", "region": "us-west-2"}
    assert found.topic.get("value") == value
    assert found.members == {"mode": "append", "duplicates_allowed": False}
    assert found.secrets == {"access_key": "me", "secret_key": "hunter2"}


@cases(
    "settings, duplicates",
    ({"partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner"}, False),
    ({"partitioner.class": "x.TimeBasedPartitioner"}, True),
    ({"partitioner.class": "x.DailyPartitioner", "timestamp.extractor": "Record"}, False),
    ({"rotate.schedule.interval.ms": "60000"}, True),
)
def test_files_by_the_clock_may_double_rows(settings: Config, duplicates: bool) -> None:
    """With file names by the clock, a record that is written again may be in two files."""
    config = {
        "s3.bucket.name": "b",
        "format.class": "x.ParquetFormat",
        "topics.dir": "",
        **settings,
    }
    found = resolved(CONFLUENT_S3, config)
    assert found.side["paths"] == ["s3://b/orders"]
    assert found.members["duplicates_allowed"] is duplicates


@cases(
    "settings, path",
    ({"file.name.template": "{{topic}}/{{partition}}-{{start_offset}}"}, "s3://b/orders"),
    (
        {"aws.s3.prefix": "raw/", "file.name.template": "{{topic}}/{{start_offset}}"},
        "s3://b/orders",
    ),
    ({"aws.s3.prefix": "raw/"}, "s3://b/raw"),
    ({"aws_s3_prefix": "{{topic}}/", "file.compression.type": "zstd"}, "s3://b/orders"),
)
def test_aivens_s3_sink_has_a_directory_of_the_topic(settings: Config, path: str) -> None:
    """The directory of Aiven's S3 sink comes from the prefix, or from the template of names."""
    config = {"aws.s3.bucket.name": "b", "format.output.type": "jsonl", **VALUES, **PLAIN_JSON}
    found = resolved(AIVEN_S3, {**config, **settings})
    assert found.side["paths"] == [path]
    assert found.members["duplicates_allowed"] is True


@cases(
    "settings, lines, noted",
    ({}, "base64", True),
    ({"format.output.fields.value.encoding": "none"}, "plain", True),
    ({"format.output.type": "jsonl"}, "envelope", False),
    ({"format.output.type": "jsonl", **VALUES}, None, False),
    ({"format.output.type": "parquet", **VALUES}, None, False),
)
def test_aivens_lines_follow_its_config(settings: Config, lines: str | None, noted: bool) -> None:
    """Aiven's sink writes values in Base64 by default, and JSON lines in an envelope."""
    config = {"aws.s3.bucket.name": "b", "aws.s3.prefix": "raw/", **PLAIN_JSON, **settings}
    found = resolved(AIVEN_S3, config)
    assert found.side.get("lines") == lines
    assert bool(found.members.get("notes")) is noted


def test_a_table_of_apaches_iceberg_sink_is_found_in_its_catalog() -> None:
    """An Iceberg sink's table is in its catalog; a note says that it lags behind the offsets."""
    config = {
        "iceberg.tables": "db.orders",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": "http://catalog:8181",
        "iceberg.catalog.token": "hunter2",
        "iceberg.control.commit.interval-ms": "1000",
        **PLAIN_JSON,
    }
    found = resolved(ICEBERG, config)
    assert found.side["paths"] == ["db.orders"]
    assert found.side["catalog"] == {"kind": "rest", "url": "http://catalog:8181"}
    assert found.secrets == {"token": "hunter2"}
    assert "1000 ms" in str(found.members["notes"])


@cases(
    "job, config, reason",
    ("topic-sink", {"connector.class": ICEBERG}, "may wait in its control topic"),
    ("topic-sink", {"connector.class": "LakeSink", "format.class": "csv"}, "files of a lake"),
    ("topic-sink", {"connector.class": AIVEN_S3}, "rows of other sinks"),
    ("source-topic", {"connector.class": "LakeSource"}, "does not name rows of files"),
    ("source-topic", {"connector.class": "x.Other"}, "which record Other makes"),
    ("source-topic", {"connector.class": "SqlSource", "transforms": "a"}, "transformations"),
    (
        "source-topic",
        {"connector.class": "SqlSource", "pyconnect.provenance.headers": "true"},
        "are numbered",
    ),
)
def test_what_is_not_repaired_is_refused_with_the_reason(
    run: Run, connect: FakeConnect, tmp_path: Path, job: str, config: Config, reason: str
) -> None:
    """A repair that is not possible is refused with its reason before the report is read."""
    (tmp_path / "report.json").write_text(f'{{"job": "{job}", "target": "out"}}')
    connect.connectors["out"] = FakeConnector(type="sink", config={**config, "topics": "orders"})
    assert reason in run("reconcile", "repair", str(tmp_path), code=2).err


def test_a_catalog_in_a_database_has_its_user_in_settings_of_its_own() -> None:
    """Apache's catalog type jdbc is LakeSink's type sql, with user and password as secrets."""
    config = {
        "iceberg.tables": "db.orders",
        "iceberg.catalog": "prod",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": "jdbc:postgresql://db/catalog",
        "iceberg.catalog.jdbc.user": "me",
        "iceberg.catalog.jdbc.password": "hunter2",
        **PLAIN_JSON,
    }
    found = resolved(ICEBERG, config)
    assert found.side["catalog"] == {
        "kind": "sql",
        "url": "jdbc:postgresql://db:5432/catalog",
        "options": {"driver": "org.postgresql.Driver"},
        "name": "prod",
    }
    assert found.secrets == {"user": "me", "password": "hunter2"}


@cases(
    "connector_class, settings, named",
    (CONFLUENT_JDBC, {"fields.whitelist": "a"}, "fields.whitelist"),
    (CONFLUENT_JDBC, {"quote.sql.identifiers": "never"}, "quote.sql.identifiers"),
    (CONFLUENT_JDBC, {"insert.mode": "update"}, "insert.mode"),
    (CONFLUENT_JDBC, {"transforms": "x"}, "transformations"),
    (CONFLUENT_JDBC, {"connection.url": "jdbc:oracle:thin:@db:1521/x"}, "connection.url"),
    (CONFLUENT_JDBC, {"connection.url": "jdbc:postgresql://a:1,b:2/x"}, "connection.url"),
    (CONFLUENT_JDBC, {"connection.url": "jdbc:sqlite:a.db"}, "connection.url"),
    (AIVEN_JDBC, {"topics.to.tables.mapping": "x:a"}, "tables"),
    (DEBEZIUM_JDBC, {"field.exclude.list": "t:a"}, "field.exclude.list"),
    (DEBEZIUM_JDBC, {"column.naming.strategy": "x.Mine"}, "column.naming.strategy"),
    (DEBEZIUM_JDBC, {"collection.name.format": "${source.db}"}, "collection.name.format"),
    (CONFLUENT_S3, {"format.class": "x.OrcFormat"}, "format.class"),
    (CONFLUENT_S3, {"store.kafka.keys": "true"}, "store.kafka.keys"),
    (CONFLUENT_S3, {"behavior.on.null.values": "write"}, "behavior.on.null.values"),
    (AIVEN_S3, {"format.output.type": "json"}, "format.output.type"),
    (AIVEN_S3, {"format.output.type": "avro"}, "format.output.envelope"),
    (AIVEN_S3, {"format.output.type": "parquet", **VALUES}, "file.name.template"),
    (
        AIVEN_S3,
        {"file.compression.type": "zstd", "file.name.template": "{{topic}}/{{start_offset}}"},
        "file.name.template",
    ),
    (AIVEN_S3, {**VALUES, "format.output.fields": "key,value"}, "format.output.fields"),
    (ICEBERG, {"iceberg.tables.route-field": "f"}, "iceberg.tables.route-field"),
    (ICEBERG, {"iceberg.tables.dynamic-enabled": "true"}, "iceberg.tables.dynamic-enabled"),
    (ICEBERG, {"iceberg.tables": "a.b,a.c"}, "2 tables"),
    (ICEBERG, {"iceberg.tables": "a.b", "iceberg.catalog.type": "hive"}, "iceberg.catalog.type"),
)
def test_what_changes_rows_is_refused_by_the_name_of_its_setting(
    connector_class: str, settings: Config, named: str
) -> None:
    """A setting that changes rows is refused by its name, with a hint."""
    url = {"connection.url": POSTGRES, "format.class": "x.ParquetFormat", "s3.bucket.name": "b"}
    with pytest.raises(UsageError, match=named.replace("$", r"\$")) as failure:
        resolved(connector_class, {**url, **settings})
    assert failure.value.hint
