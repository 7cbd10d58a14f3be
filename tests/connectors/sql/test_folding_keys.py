"""Key columns that take different texts for equal: said at validation, refused by the task."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_api import ConnectException, SchemaBuilder, Struct
from pyconnect_api.testing import SinkHarness
from pyconnect_connectors.sql.sink import SqlSinkConnector
from pyconnect_connectors.sql.sink_task import SqlSinkTask
from tests.support.mariadb import MariaDbServer
from tests.support.postgres import PostgresServer

UPSERT = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "k"}
BY_RECORD_KEY = {"insert.mode": "upsert", "pk.mode": "record_key"}
SCHEMA = SchemaBuilder.struct().field("k", SchemaBuilder.string()).build()


def errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    found = SqlSinkConnector().validate(config)
    return {v.name: list(v.error_messages) for v in found.config_values if v.error_messages}


def refused(config: Mapping[str, str]) -> str:
    """Return the error of validation, which is also that of the task."""
    (text,) = errors(config)["pk.folding.keys"]
    sink = SinkHarness(SqlSinkTask, config)
    sink.start()
    sink.send(Struct.of_checked(SCHEMA, ["a"]), value_schema=SCHEMA)
    with pytest.raises(ConnectException) as failure:
        sink.deliver()
    assert str(failure.value) == text
    sink.task.stop()
    return text


def config(settings: Mapping[str, str], **others: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in others.items()}
    return {"name": "s", "topics": "none,topic", **settings, **UPSERT, **named}


def test_a_key_of_sqlite_that_ignores_case_is_refused(
    file: Path, database: sqlite3.Connection
) -> None:
    """Unless the config allows it, or no row is replaced."""
    database.execute("CREATE TABLE topic (k TEXT COLLATE NOCASE PRIMARY KEY)")
    props = config({"connection.url": f"sqlite:///{file}"})
    assert "Key column k of table topic takes different texts for equal (NOCASE)" in refused(props)
    assert errors({**props, **BY_RECORD_KEY, "pk.fields": ""}).keys() == {"pk.folding.keys"}
    assert errors({**props, "pk.folding.keys": "allow"}) == {}
    assert errors({**props, "insert.mode": "insert"}) == {}
    database.execute("DROP TABLE topic")
    database.execute("CREATE TABLE topic (k TEXT PRIMARY KEY)")
    assert errors(props) == {}


@pytest.mark.wire
@pytest.mark.parametrize(
    ("collation", "folds"),
    [("utf8mb4_general_ci", True), ("utf8mb4_bin", True), ("utf8mb4_nopad_bin", False)],
)
def test_a_key_of_mariadb_that_folds_texts_is_refused(
    mariadb: MariaDbServer, collation: str, folds: bool
) -> None:
    """utf8mb4_bin ignores spaces at the end."""
    database = mariadb.new_database()
    statement = f"CREATE TABLE topic (k varchar(20) COLLATE {collation} PRIMARY KEY)"
    mariadb.execute(database, statement)
    props = config(mariadb.settings(database))
    if folds:
        assert f"({collation})" in refused(props)
    else:
        assert errors(props) == {}


@pytest.mark.wire
@pytest.mark.parametrize(
    ("type_", "collation"),
    [("text COLLATE anycase", "anycase"), ("citext", "citext"), ("mail", "citext"), ("text", "")],
)
def test_a_key_of_postgresql_that_folds_texts_is_refused(
    postgres: PostgresServer, type_: str, collation: str
) -> None:
    """A collation that is not deterministic, and a type that ignores case, also below a domain."""
    database = postgres.new_database()
    with postgres.connect(database) as connection:
        connection.execute("CREATE EXTENSION citext")
        connection.execute("CREATE DOMAIN mail AS citext")
        connection.execute(
            "CREATE COLLATION anycase (provider=icu, locale='und-u-ks-level2', deterministic=false)"
        )
        connection.execute(f"CREATE TABLE topic (k {type_} PRIMARY KEY)".encode())
    props = config(postgres.settings(database))
    if collation:
        assert f"({collation})" in refused(props)
    else:
        assert errors(props) == {}
