"""SqlSource and SqlSink as sides of a compare, as their configurations describe them."""

import json
import stat
from pathlib import Path

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.connectors import Audited, Config, Document, sink_topics
from pyconnect_cli.reconcile.resolution import SINKS, SOURCES, resolver
from pyconnect_cli.reconcile.run import name_secrets, write_private
from pyconnect_cli.reconcile.tables import read_table, written_table
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_reconcile.data_sides import CommittedOffsets, RowRule, TablePosition, TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.properties import store_properties, table_properties
from pyconnect_reconcile.spec import TopicSide, read_spec
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

KAFKA = ("--kafka-bootstrap", "b:9092", "--print-spec", "-o", "json")
POSTGRES = "postgresql+psycopg://me:hunter2@db.example:5433/shop?sslmode=require&password=hunter3"
SINK: Config = {
    "connector.class": "SqlSink",
    "topics": "orders",
    "connection.url": POSTGRES,
    "connection.password": "hunter4",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
SOURCE: Config = {
    "connector.class": "pyconnect_connectors.sql.source.SqlSourceConnector",
    "connection.url": "mysql+pymysql://db/shop",
    "topic.prefix": "shop-",
    "mode": "timestamp+incrementing",
    "incrementing.column.name": "id",
    "timestamp.column.name": "changed, made",
}


def audited(config: Config, *topics: str, offset: Document | None = None) -> Audited:
    entry = OffsetEntry(partition={"table": "or`ders"}, offset=offset)
    return Audited(name="c", config=config, topics=topics, offsets=[entry])


def test_a_sink_is_resolved_with_its_table_and_its_offsets(run: Run, connect: FakeConnect) -> None:
    """The spec of a SqlSink has its table and its table of offsets, without secrets."""
    connect.connectors["out"] = FakeConnector(type="sink", config=dict(SINK))
    outcome = run("reconcile", "topic-sink", "out", *KAFKA, code=0)
    assert "hunter" not in outcome.out
    spec = read_spec(json.loads(outcome.out))
    assert spec.right == TableSide(
        url="jdbc:postgresql://db.example:5433/shop?sslmode=require",
        table='"orders"',
        options={"driver": "org.postgresql.Driver"},
        offsets=CommittedOffsets(table='"pyconnect_offsets"', connector="out"),
    )
    assert spec.left == TopicSide(topics=("orders",), value="connect-json", row=RowRule())
    assert (spec.mode, spec.duplicates_allowed) == ("append", False)


@cases(
    "settings, mode, row",
    ({}, "append", {"of": "value", "keys": []}),
    ({"pk.mode": "kafka"}, "append", {"of": "kafka", "keys": []}),
    (
        {"pk.mode": "record_value", "pk.fields": "a, b", "insert.mode": "upsert"},
        "upsert",
        {"of": "value", "keys": ["a", "b"]},
    ),
    ({"pk.mode": "record_key", "delete.enabled": "true"}, "upsert", {"of": "key", "keys": []}),
)
def test_the_key_of_rows_is_that_of_the_sink(settings: Config, mode: str, row: Document) -> None:
    """Rows are compared by the sink's key where later records change earlier rows."""
    found = written_table(audited({**SINK, **settings}, "orders"))
    assert found.members["mode"] == mode
    assert found.topic["row"] == {**row, "decimals": "base64"}


def test_a_text_that_becomes_a_column_is_found() -> None:
    """A text that HoistField puts into one column is compared as that column."""
    hoist: Config = {
        "transforms": "row",
        "transforms.row.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.row.field": "line",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    row = written_table(audited({**SINK, **hoist}, "orders")).topic["row"]
    assert isinstance(row, dict)
    assert row["whole"] == "line"
    with pytest.raises(UsageError, match="transformations"):
        written_table(audited({**SINK, **hoist, "transforms.row.predicate": "p"}, "orders"))


def test_a_source_is_resolved_with_its_position() -> None:
    """A source's table is the topic without its prefix, read up to the committed offset."""
    resolve = resolver(SOURCE, SOURCES)
    assert resolve is read_table
    found = resolve(
        audited(SOURCE, "shop-or`ders", offset={"timestamp": "2024-01-01", "incrementing": 7})
    )
    spec = read_spec(
        {
            "job": "source-topic",
            "clusters": {"main": {"bootstrap": "b"}},
            "left": found.side,
            "right": {"kind": "topic", "topics": ["t"], **found.topic},
            **found.members,
        }
    )
    assert spec.left == TableSide(
        url="jdbc:mysql://db:3306/shop?permitMysqlScheme=true",
        table="`or``ders`",
        options={"driver": "org.mariadb.jdbc.Driver"},
        position=TablePosition(
            timestamps=("changed", "made"), incrementing="id", timestamp="2024-01-01", number="7"
        ),
    )
    assert spec.mode == "upsert"


def test_addresses_and_topics_lead_to_the_table() -> None:
    """SQLite's address is a path; the name of a table may have a schema before the first point."""
    found = written_table(audited({**SINK, "connection.url": "sqlite:////data/a.db"}, "t"))
    assert found.side["url"] == "jdbc:sqlite:/data/a.db"
    config = {**SINK, "table.name.format": "shop.${topic}"}
    assert written_table(audited(config, "a.b")).side["table"] == '"shop"."a.b"'


@cases(
    "config, topics, words",
    ({**SINK, "insert.mode": "update", "pk.mode": "record_key"}, ("t",), "insert.mode=update"),
    ({**SINK, "transforms": "a"}, ("t",), "transformations"),
    ({**SINK, "connection.url": "oracle://h/d"}, ("t",), "connection.url is not that"),
    ({**SINK, "connection.url": "sqlite:///a.db"}, ("t",), "worker's own directory"),
    ({**SINK, "connection.url": "${file:/a:url}"}, ("t",), "a reference"),
    (SINK, ("t", "u"), "2 tables"),
)
def test_vague_configurations_fail(config: Config, topics: tuple[str, ...], words: str) -> None:
    """An ambiguous configuration is refused, with a hint for options that take its place."""
    resolve = resolver(config, SINKS)
    assert resolve is not None
    with pytest.raises(UsageError, match=words) as caught:
        resolve(audited(config, *topics))
    assert caught.value.hint


@cases(
    "mode, offset, words",
    ("bulk", {}, "mode=bulk has no offset"),
    ("incrementing", None, "no offset of or`ders yet"),
)
def test_sources_need_a_position(mode: str, offset: Document | None, words: str) -> None:
    """A source without a committed offset is refused, because every row would look like lag."""
    with pytest.raises(UsageError, match=words):
        read_table(audited({**SOURCE, "mode": mode}, "shop-or`ders", offset=offset))


def test_secrets_go_to_a_file_of_their_owner(tmp_path: Path) -> None:
    """The secrets of a side go to a file for their owner only, where references are resolved."""
    secret = tmp_path / "secret.properties"
    secret.write_text("password=a\\tb\n")
    config = {
        **SINK,
        "connection.user": "you",
        "connection.password": f"${{file:{secret}:password}}",
    }
    found = written_table(audited(config, "orders"))
    document: Document = {"right": dict(found.side)}
    name_secrets(document, {"right": found.secrets}, tmp_path)
    file = tmp_path / "right.properties"
    assert document["right"] == {**found.side, "properties": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert table_properties(str(file)) == {"user": "you", "password": "a\tb"}


def test_access_to_a_store_is_no_option_of_a_database(tmp_path: Path) -> None:
    """Keys of a store are not passed to the database, although one file holds both."""
    file = tmp_path / "side.properties"
    write_private(file, "user=me\naccess_key=a\nsecret_key=b\ntoken=c\n")
    assert table_properties(str(file)) == {"user": "me"}
    assert store_properties(str(file)).items() >= {("access_key", "a"), ("secret_key", "b")}


def test_a_provider_that_only_the_worker_knows_is_named_as_the_trouble(tmp_path: Path) -> None:
    """A password that only the worker's provider knows is refused and not sent to the database."""
    file = tmp_path / "side.properties"
    write_private(file, "user=me\npassword=${vault:shop:password}\n")
    with pytest.raises(ReconcileError, match="password of the database is a reference") as caught:
        table_properties(str(file))
    assert "--jdbc-properties" in str(caught.value.hint)


def test_parameters_of_an_address_lead_to_the_table_of_the_connector() -> None:
    """A search path in an address is kept; a parameter that names another database is refused."""
    url = "postgresql+psycopg://h/shop?options=-csearch_path%3Dours&connect_timeout=3"
    side = written_table(audited({**SINK, "connection.url": url}, "orders")).side
    assert side["url"] == "jdbc:postgresql://h:5432/shop?options=-csearch_path%3Dours"
    for parameter in ("dbname=other", "host=elsewhere"):
        url = f"postgresql+psycopg://h/shop?{parameter}"
        with pytest.raises(UsageError, match="which may lead to another database"):
            written_table(audited({**SINK, "connection.url": url}, "orders"))
    mysql = {**SINK, "connection.url": "mysql+pymysql://h/shop?unix_socket=/tmp/other.sock"}
    with pytest.raises(UsageError, match="parameter unix_socket"):
        written_table(audited(mysql, "orders"))


def test_a_pattern_names_topics_without_a_committed_offset() -> None:
    """Topics of a pattern are audited even if the sink has not read them yet."""
    committed = {"orders-1": {0: 5}, "gone": {0: 1}}
    existing = ["orders-1", "orders-2", "others"]
    pattern = {"topics.regex": "orders-.*"}
    assert sink_topics(pattern, committed, lambda: existing) == ["orders-1", "orders-2"]
    expected = ["gone", "orders-1"]
    assert sink_topics({"topics.regex": "orders-("}, committed, lambda: existing) == expected
    assert sink_topics({"topics": "b, a"}, committed, lambda: existing) == ["b", "a"]
