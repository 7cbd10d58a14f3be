"""The tables that SqlSource reads: views, other schemas, partitions, and missing ones."""

import sqlite3
from pathlib import Path

import pytest

from pyconnect_api import ConnectException, Struct
from pyconnect_api.testing import ConnectorHarness, SourceHarness
from pyconnect_connectors.sql.sink import SqlSinkConnector
from pyconnect_connectors.sql.source import SqlSourceConnector, SqlSourceTask
from tests.support.cases import cases
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer

pytestmark = pytest.mark.wire

MODE = {"mode": "incrementing", "incrementing.column.name": "id", "poll.interval.ms": "1"}


def connector(config: dict[str, str], **settings: str) -> ConnectorHarness:
    further = {name.replace("_", "."): value for name, value in settings.items()}
    return ConnectorHarness(SqlSourceConnector, {"name": "s", **MODE, **config, **further})


def tables(harness: ConnectorHarness) -> list[str]:
    harness.start()
    found = [config["tables"] for config in harness.task_configs(20)]
    harness.stop()
    return found


@pytest.fixture
def postgres_config(postgres: PostgresServer) -> dict[str, str]:
    database = postgres.new_database()
    with postgres.connect(database) as connection:
        for statement in (
            "CREATE TABLE a (id int PRIMARY KEY)",
            "INSERT INTO a VALUES (1)",
            "CREATE VIEW v AS SELECT * FROM a",
            "CREATE MATERIALIZED VIEW m AS SELECT * FROM a",
            "CREATE SCHEMA other",
            "CREATE TABLE other.b (id int PRIMARY KEY)",
            "INSERT INTO other.b VALUES (2)",
            'CREATE TABLE "with.point" (id int PRIMARY KEY)',
            "CREATE TABLE parent (id int, part int) PARTITION BY LIST (part)",
            "ALTER TABLE parent ADD PRIMARY KEY (id, part)",
            "CREATE TABLE part_1 PARTITION OF parent FOR VALUES IN (1)",
            "CREATE TABLE part_2 PARTITION OF parent FOR VALUES IN (2) PARTITION BY LIST (id)",
            "CREATE TABLE part_2_1 PARTITION OF part_2 FOR VALUES IN (1)",
            "CREATE TABLE child (more int) INHERITS (a)",
            "CREATE TABLE pyconnect_offsets (connector text)",
        ):
            connection.execute(statement.encode())
    return postgres.settings(database)


def test_parts_of_a_table_that_is_read_are_not_read_again(postgres_config: dict[str, str]) -> None:
    """Partitions and children are left out below a read parent; views are read only if named."""
    assert tables(connector(postgres_config)) == ["a", "parent", "with.point"]
    named = connector(postgres_config, table_whitelist="part_1,part_2_1,child")
    assert tables(named) == ["child", "part_1", "part_2_1"]
    both = connector(postgres_config, table_whitelist="parent,part_2_1")
    assert tables(both) == ["parent"]
    assert tables(connector(postgres_config, table_whitelist="pyconnect_offsets"))
    without = connector(postgres_config, table_blacklist="parent,part_2")
    assert tables(without) == ["a", "part_1", "part_2_1", "with.point"]


@cases("name", "v", "m", "other.b", "with.point")
def test_views_and_tables_of_other_schemas_are_read_by_their_names(
    postgres_config: dict[str, str], name: str
) -> None:
    """The whitelist's name of a table is that of the topic and of the source partition."""
    harness = connector(postgres_config, table_whitelist=name)
    assert tables(harness) == [name]
    harness.start()
    reader = SourceHarness(SqlSourceTask, harness.task_configs(1)[0])
    reader.start()
    if name != "with.point":
        (record,) = reader.run(1)
        assert record.topic == name
        assert record.source_partition == {"table": name}
        assert isinstance(record.value, Struct)
        assert record.value.get("id") == (2 if name == "other.b" else 1)
    else:
        assert reader.poll() == []
    reader.stop()
    harness.stop()


@cases("name", "misspelt", "A", "other.a", "nowhere.a", "other.B")
def test_a_table_that_is_not_there_is_found_by_validation(
    postgres_config: dict[str, str], name: str
) -> None:
    """A missing table is an error of validation, and of a start without another table."""
    harness = connector(postgres_config, table_whitelist=f"{name},a")
    (text,) = harness.errors()["table.whitelist"]
    assert f"no table or view {name};" in text
    with pytest.raises(ConnectException, match=rf"table\.whitelist: .* no table or view {name};"):
        SqlSourceConnector().start({**MODE, **postgres_config, "table.whitelist": name})
    (text,) = connector(postgres_config, schema_pattern=name).errors()["schema.pattern"]
    assert f"no schema {name};" in text


def test_a_view_of_mariadb_is_read(mariadb: MariaDbServer) -> None:
    """A view of MariaDB is read, and a name that does not exist is an error."""
    database = mariadb.new_database()
    mariadb.execute(database, "CREATE TABLE a (id int PRIMARY KEY)")
    mariadb.execute(database, "CREATE VIEW v AS SELECT * FROM a")
    config = mariadb.settings(database)
    assert tables(connector(config)) == ["a"]
    assert tables(connector(config, table_whitelist="v")) == ["v"]
    assert tables(connector(config, table_whitelist=f"{database}.a")) == [f"{database}.a"]
    assert "table.whitelist" in connector(config, table_whitelist="w").errors()


def test_a_view_of_sqlite_is_read(file: Path, database: sqlite3.Connection) -> None:
    """A view of SQLite is read, and a name that does not exist is an error."""
    database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    database.execute("CREATE VIEW v AS SELECT * FROM a")
    config = {"connection.url": f"sqlite:///{file}"}
    assert tables(connector(config, table_whitelist="v")) == ["v"]
    assert "table.whitelist" in connector(config, table_whitelist="w").errors()


@cases(
    "settings, key",
    ({"topics": "ok," + "t" * 64}, "table.name.format"),
    ({"topics": "ü" * 32}, "table.name.format"),
    ({"topics": "t" * 50, "table.name.format": "of_orders_at_${topic}_x"}, "table.name.format"),
    ({"topics": "t", "offsets.table.name": "o" * 64}, "offsets.table.name"),
    ({"topics": "t" * 63, "table.name.format": "public.${topic}"}, None),
)
def test_a_name_that_postgresql_would_cut_is_found_by_validation(
    postgres_config: dict[str, str], settings: dict[str, str], key: str | None
) -> None:
    """PostgreSQL would cut the name: the table would be created, and never be found."""
    harness = ConnectorHarness(SqlSinkConnector, {"name": "s", **postgres_config, **settings})
    assert list(harness.errors()) == ([] if key is None else [key])
