"""LakeSource and LakeSink as sides of a compare, as their configurations describe them."""

from pathlib import Path

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.connectors import PROVIDERS, Audited, Config, Document
from pyconnect_cli.reconcile.resolution import SINKS, SOURCES, resolver
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import complete_files
from tests.support.cases import cases

SINK: Config = {"connector.class": "LakeSink", "lake.url": "/lake"}
SOURCE: Config = {
    "connector.class": "pyconnect_connectors.lake.source.LakeSourceConnector",
    "lake.url": "file:///lake",
    "prefix": "in",
    "format.class": "csv",
}
REST: Config = {
    "connector.class": "LakeSink",
    "format.class": "iceberg",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://catalog:8181",
    "iceberg.catalog.token": "${file:/run/catalog:token}",
    "iceberg.tables": "shop.${topic}",
}
HOISTED: Config = {
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "transforms": "row",
    "transforms.row.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.row.field": "line",
}


def audited(config: Config, *topics: str, offset: Document | None = None) -> Audited:
    entries = [
        OffsetEntry(partition={"file": "in/a.csv"}, offset={"row": 3, "done": True}),
        OffsetEntry(partition={"file": "in/b.csv"}, offset={"row": 1}),
    ]
    return Audited(
        name="c", config=config, topics=topics, offsets=entries if offset is None else []
    )


def test_a_sink_is_resolved_with_the_directory_of_its_topic() -> None:
    """The files of a LakeSink are complete, so they are read while the sink runs."""
    resolve = resolver(SINK, SINKS)
    assert resolve is not None
    found = resolve(audited(SINK, "orders"))
    assert found.side == {
        "kind": "files",
        "paths": ["/lake/topics/orders"],
        "format": "parquet",
        "complete": True,
        "options": {"recursiveFileLookup": "true"},
    }
    assert found.topic == {"row": {"of": "value", "decimals": "base64"}}
    assert found.members == {"mode": "append", "duplicates_allowed": False}


def test_sources_and_tables_of_a_lake_are_resolved() -> None:
    """A source's side has the files that were read to their end; a catalog's token is a secret."""
    resolve = resolver(SOURCE, SOURCES)
    assert resolve is not None
    found = resolve(audited(SOURCE, "orders"))
    assert found.side["paths"] == ["/lake/in"]
    assert found.side["read"] == ["/lake/in/a.csv"]
    with pytest.raises(UsageError, match="not read a file to its end"):
        SOURCES["LakeSource"](audited(SOURCE, "orders", offset={}))
    found = SINKS["LakeSink"](audited(REST, "orders"))
    assert found.side["catalog"] == {"kind": "rest", "url": "http://catalog:8181"}
    assert found.secrets["token"] == "${file:/run/catalog:token}"
    assert found.secrets["config.providers"] == "file"


def test_json_is_compared_as_json() -> None:
    """JSON files and topic values are compared as JSON if both have no schemas."""
    plain = {**SINK, "format.class": "json", "value.converter.schemas.enable": "false"}
    found = SINKS["LakeSink"](audited(plain, "orders"))
    assert found.side["value"] == "json"
    assert found.topic == {"value": "json"}


@cases(
    "config, text",
    ({**SINK, "format.class": "avro"}, "format.class=avro"),
    ({**SINK, "format.class": "iceberg", "iceberg.catalog.type": "glue"}, "catalog is not read"),
    ({**REST, "iceberg.catalog.credential": "id:secret"}, "catalog is not read"),
    ({**REST, "iceberg.catalog.uri": "${env:CATALOG}"}, "catalog is not read"),
    ({**SINK, "format.class": "json"}, "the topic's values have"),
    ({**SINK, "format.class": "csv", "value.converter": "AvroConverter"}, "no types"),
    ({**SINK, "lake.url": "gs://bucket/lake"}, "neither a local path nor in S3"),
    ({**SINK, "lake.url": "${file:/etc/lake:url}"}, "a reference"),
    ({**SINK, "transforms": "t"}, "transformations"),
    ({**SOURCE, "file.pattern": "a.*"}, "file.pattern"),
)
def test_data_that_cannot_be_compared_is_refused(config: Config, text: str) -> None:
    """Data that cannot be compared is refused, with a hint to use --files."""
    resolvers = SINKS if str(config["connector.class"]).endswith("Sink") else SOURCES
    resolve = resolver(config, resolvers)
    assert resolve is not None
    with pytest.raises(UsageError, match=text) as caught:
        resolve(audited(config, "orders"))
    assert "--files" in str(caught.value.hint)


def test_files_of_s3_are_resolved_without_secrets_in_the_spec() -> None:
    """The keys of S3 and their config providers are secrets and not part of the spec."""
    config = {
        **SINK,
        "format.class": "csv",
        "lake.url": "s3a://bucket/base/",
        "store.url": "http://store:9000",
        "s3.region": "eu-1",
        "aws.access.key.id": "key",
        "aws.secret.access.key": "${env:SECRET}",
    }
    found = SINKS["LakeSink"](audited(config, "orders"))
    assert found.side["paths"] == ["s3://bucket/base/topics/orders"]
    assert found.side["store"] == {"endpoint": "http://store:9000", "region": "eu-1"}
    assert found.secrets == {
        "access_key": "key",
        "secret_key": "${env:SECRET}",
        "config.providers": "env",
        "config.providers.env.class": PROVIDERS["env"],
    }
    read = SOURCES["LakeSource"](audited({**config, **SOURCE, "lake.url": "s3://b"}, "orders"))
    assert read.side["read"] == ["s3://b/in/a.csv"]


def test_a_table_of_a_database_catalog_is_resolved() -> None:
    """The side of a table has the JDBC address of the catalog, by default a file in the lake."""
    config = {**SINK, "format.class": "iceberg", "iceberg.tables": "shop.${topic}"}
    found = SINKS["LakeSink"](audited(config, "orders"))
    assert found.side == {
        "kind": "files",
        "paths": ["shop.orders"],
        "format": "iceberg",
        "catalog": {"kind": "sql", "url": "jdbc:sqlite:/lake/catalog.db", "name": "iceberg"},
    }
    uri = "postgresql+psycopg://me:secret@db/catalog"
    found = SINKS["LakeSink"](
        audited({**config, "iceberg.catalog": "main", "iceberg.catalog.uri": uri}, "orders")
    )
    assert found.side["catalog"] == {
        "kind": "sql",
        "url": "jdbc:postgresql://db:5432/catalog",
        "options": {"driver": "org.postgresql.Driver"},
        "name": "main",
    }
    assert found.secrets == {"user": "me", "password": "secret"}


def test_a_table_in_s3_is_resolved_with_its_store() -> None:
    """Settings of the catalog win over those of the lake, as in the sink."""
    config = {
        "connector.class": "LakeSink",
        "lake.url": "s3://bucket/base",
        "store.url": "http://store:9000",
        "s3.region": "here",
        "aws.access.key.id": "me",
        "aws.secret.access.key": "${file:/run/keys:secret}",
        "format.class": "iceberg",
        "iceberg.tables": "shop.${topic}",
        "iceberg.catalog.uri": "postgresql+psycopg://sql:word@db/catalog",
        "iceberg.catalog.s3.region": "there",
    }
    found = SINKS["LakeSink"](audited(config, "orders"))
    assert found.side["store"] == {"endpoint": "http://store:9000", "region": "there"}
    assert found.secrets.items() >= {
        ("access_key", "me"),
        ("secret_key", "${file:/run/keys:secret}"),
        ("user", "sql"),
        ("password", "word"),
        ("config.providers", "file"),
    }


@cases("written", "parquet", "csv", "iceberg")
def test_texts_that_are_hoisted_are_compared_as_a_whole(written: str) -> None:
    """A hoisted text is compared as a whole, but not if it is written in JSON."""
    found = SINKS["LakeSink"](audited({**SINK, **HOISTED, "format.class": written}, "orders"))
    assert found.topic["row"] == {"of": "value", "decimals": "base64", "whole": "line"}
    with pytest.raises(UsageError, match="hoisted values in JSON"):
        SINKS["LakeSink"](audited({**SINK, **HOISTED, "format.class": "json"}, "orders"))


def test_complete_files_are_listed_once(tmp_path: Path) -> None:
    """An audit reads the files that exist at its beginning, and reports those that change later."""
    for name in ("a", "b", "_c"):
        (tmp_path / name).write_text("x")
    found = complete_files([str(tmp_path)], [str(tmp_path / "a")])
    assert found.listed == (str(tmp_path / "a"),)
    assert found.beyond == (str(tmp_path / "b"),)
    (tmp_path / "d").write_text("x")
    assert found.changes([str(tmp_path)]) == []
    (tmp_path / "b").write_text("other")
    assert [finding.kind for finding in found.changes([str(tmp_path)])] == ["file-changed"]
    with pytest.raises(ReconcileError, match="1 file that the source has read is gone"):
        complete_files([str(tmp_path)], [str(tmp_path / "z")])
