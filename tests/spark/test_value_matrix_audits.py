"""Audits of tables and files of all types: each value that changes is found, and no others.

A row of the sink has one value of the matrix; another row has it with the least change that its
column holds. The same rows agree. If both rows change places in the topic, each of them differs.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_api import Schema, Struct, Type
from pyconnect_cli.reconcile.connectors import Audited, Resolved
from pyconnect_cli.reconcile.tables import read_table, written_lake, written_table
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_connectors.sql.sink import SqlSinkTask
from pyconnect_reconcile.findings import Verdict
from tests.connectors.matrix.columns import Cell, Column
from tests.connectors.matrix.databases import Database, define, grid
from tests.connectors.matrix.files import iceberg_props
from tests.connectors.matrix.meanings import Kind
from tests.connectors.matrix.paths import Message, delivered, sink_props
from tests.connectors.matrix.rules import refused_at_reading, refused_at_writing
from tests.connectors.matrix.systems import Systems, cells_of
from tests.connectors.matrix.topics import TOPIC, Topic, converter
from tests.support.audits.audits import Answer
from tests.support.audits.recorded_audits import Given, RecordedAudit
from tests.support.seeds import LONG, chosen
from tests.support.servers.mariadb import running_mariadb
from tests.support.servers.postgres import running_postgres

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

DATABASES = ("PostgreSQL", "MariaDB", "SQLite")
FILES = {"Parquet": "Parquet", "JSON": "JSON", "CSV": "CSV", "Iceberg": "Parquet"}
"""The format that LakeSink writes, and the format of the rows from LakeSource."""
TABLE = "audited"
WIDE = Context(prec=2000)
OTHER_TEXTS: Mapping[str, Sequence[str]] = {
    "mood": ("sad", "ok"),
    '"char"': ("y",),
    "hstore": ('"a"=>"1", "b"=>NULL, "c d"=>"e\\"g"',),
    "ean13": ("978-0-306-40615-7",),
    "citext[]": ('["ok","sad"]',),
    "tstzrange": ('["2024-01-01 10:00:01+00",infinity)',),
    "xml": ('<a b="d">ü</a>',),
    "regclass": ("pg_class",),
    "jsonpath": ('$."b"[*]',),
    "tsquery": ("'fat' & 'cat'",),
    "bit(3)": ("100",),
    "bit varying(9)": ("10100", "0"),
    "numeric": ("0.5", "-Infinity"),
    "int4range": ("[1,6)", "[2,6)"),
    "pair": ('(1,"x  y")', "(1,)"),
    "int4multirange": ("{[1,5),[7,8)}",),
    "oid": ("2", "1"),
    "money": ("1234.51", "0.02"),
    "interval": ("-1 mons +2 days", "00:00:01"),
    "integer[]": ("[1,2]", "[2,1]"),
    "text[]": ('["a","b"]', '["a","c"]'),
    "boolean[]": ("[true, true]",),
    "mood[]": ('["ok", "ok"]',),
    "enum('sad','ok','a,b')": ("sad", "ok"),
    "set('a','b','c d')": ("b", "a"),
    "year": ("2000", "2001"),
}


def neighbour(column: Column, value: object) -> object:  # noqa: C901  one case a class
    """Return a value of the column that differs from this one as little as possible."""
    match value:
        case bool():
            return not value
        case int():
            return value - 1 if value > 0 else value + 1
        case float() if not math.isfinite(value):
            return 1.5
        case float() if column.type == "float(7,3)":
            return 1234.568
        case float() if column.kind is Kind.FLOAT32:
            return 1.5000001192092896
        case float() if value == 0:
            # Java writes the least double with other digits.
            return 1e-300
        case float():
            return math.nextafter(value, 0.25)
        case Decimal():
            step = Decimal((0, (1,), value.as_tuple().exponent))  # type: ignore[arg-type]
            return (WIDE.subtract if value > 0 else WIDE.add)(value, step)
        case bytes() if column.type.startswith("bit"):
            return value[:-1] + bytes([value[-1] ^ 1])
        case bytes() if column.type in {"binary(4)", "point", "geometry", "linestring"}:
            return bytes([value[0] ^ 1]) + value[1:]
        case bytes():
            return value + b"\0"
        case datetime():
            step_ms = timedelta(
                milliseconds=1 if "3" in column.type or "6" in column.type else 1000
            )
            return value - step_ms if value.year > 2037 else value + step_ms
        case date():
            return value - timedelta(days=1) if value.year > 9000 else value + timedelta(days=1)
        case time():
            return value.replace(second=(value.second + 1) % 60)
        case str():
            return _other_text(column, value)
        case []:
            return [None]
        case list():
            return value[:-1] + ([] if value[-1] is None else [neighbour(column, value[-1])])
        case dict():
            name = next(iter(value), "new")
            return {**value, name: neighbour(column, value.get(name, 0))}
        case Struct():
            first, *others = value.stored_values()
            return Struct.of_checked(value.schema, [neighbour(column, first), *others])
    raise AssertionError(f"{column.type}: no neighbour of {value!r}")


def _other_text(column: Column, text: str) -> str:
    for other in OTHER_TEXTS.get(column.type, ()):
        if other != text:
            return other
    is_plain = re.match(r"(var|long|tiny|medium|big)?(text|char|bpchar|CHAR|TEXT)", column.type)
    if column.kind is Kind.TEXT and (is_plain or column.type in {"email", "CLOB"}):
        return text + "x" if len(text) < 8 else text[:-1] + ("y" if text[-1] == "x" else "x")
    digit = re.search(r"(\d)(?=\D*$)", text)
    if digit:
        # The digit is not zero, which a database may leave out at the end.
        return text[: digit.start()] + str(int(digit[1]) % 9 + 1) + text[digit.end() :]
    return '"coffee"' if column.kind is Kind.JSON else text + "x"


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Systems]:
    scratch = tmp_path_factory.mktemp("matrix")
    with (
        running_postgres() as postgres,
        running_mariadb() as mariadb,
        closing(Systems(postgres, mariadb, scratch)) as made,
    ):
        yield made


@pytest.fixture
def audit(spark: SparkSession, tmp_path: Path) -> RecordedAudit:
    return RecordedAudit(spark, tmp_path)


Row = Struct | dict[str, object]
Pairs = list[tuple[Cell, Row, Row]]


def pairs_of(systems: Systems, source: str, target: str = "") -> Pairs:
    """Return the first value of a type of each kind, and its neighbour, as rows.

    With --long each value of each type that the source reads. `target` is a format that refuses
    some of them.
    """
    cells = [
        cell
        for cell in cells_of(source)
        if not (refused_at_reading(cell) or refused_at_writing(cell, Topic.JSON, target))
    ]
    if target == "Iceberg":
        # Iceberg's library reads no times of day in Spark.
        cells = [cell for cell in cells if cell.column.kind is not Kind.TIME]
    if not LONG:
        # Spark takes minutes to plan fifty columns.
        of_kinds = {cell.column.kind: cell.column for cell in reversed(cells)}
        cells = [cell for cell in cells if cell.column in of_kinds.values()]
    records = systems.sources[source].read(cells)
    schema = records[0].value_schema
    found: Pairs = []
    for column, those in grid(cells):
        values = [record.value.get(column.name) for record in records]  # type: ignore[attr-defined]
        present = [value for value in values if value is not None]
        of_type = list(zip(those, values, strict=False)) if present else []
        for cell, value in chosen(of_type[:1], long=of_type[1:]):
            other = present[0] if value is None else neighbour(column, value)
            number = 2 * len(found)
            found.append(
                (
                    cell,
                    row_of(schema, number, column.name, value),
                    row_of(schema, number + 1, column.name, other),
                )
            )
    return found


def row_of(schema: Schema | None, number: int, name: str, value: object) -> Row:
    if schema is None:
        return {"id": number, name: value}
    values: list[object] = [None] * len(schema.fields)
    names = [field.name for field in schema.fields]
    # CSV files have only texts.
    values[names.index("id")] = (
        str(number) if schema.fields[0].schema.type is Type.STRING else number
    )
    values[names.index(name)] = value
    return Struct.of_checked(schema, values)


def exchanged(pairs: Pairs) -> Pairs:
    """Return the pairs with the two values of each exchanged."""
    return [
        (cell, with_id(one, other.get("id")), with_id(other, one.get("id")))
        for cell, one, other in pairs
    ]


def with_id(row: Row, number: object) -> Row:
    if isinstance(row, dict):
        return {**row, "id": number}
    values = list(row.stored_values())
    values[[field.name for field in row.schema.fields].index("id")] = number
    return Struct.of_checked(row.schema, values)


def messages_of(pairs: Pairs) -> list[Message]:
    return [
        (row.schema if isinstance(row, Struct) else None, row) for _, *rows in pairs for row in rows
    ]


def records_of(pairs: Pairs, topic: Topic = Topic.JSON) -> list[Given]:
    writes = converter(topic)
    return [Given(writes.from_connect_data(TOPIC, [], *each)) for each in messages_of(pairs)]


def names_of(answer: Answer, pairs: Pairs) -> set[str]:
    """Return the names of the values whose rows are missing."""
    cells = [
        pairs[place.offset // 2][0]
        for finding in answer.of("missing")
        for place in finding.copies
        if place.offset is not None
    ]
    return {f"{cell.column.type} | {cell.value.name}" for cell in cells}


def check_audits(
    audit: RecordedAudit,
    pairs: Pairs,
    sides: Mapping[str, object],
    *,
    job: str = "topic-sink",
    topic: Topic = Topic.JSON,
) -> None:
    """Check that the audit agrees on equal rows, and finds each exchanged pair."""
    answer = audit.run(job, {TOPIC: records_of(pairs, topic)}, **sides)
    unheld = {(each.group, each.count) for each in answer.of("not-representable")}
    assert (names_of(answer, pairs), unheld) == (set(), set())
    extra = answer.outcome.totals.get("extra", 0)
    assert (answer.verdict, extra) == (Verdict.AGREE, 0), answer.outcome.findings
    answer = audit.run(job, {TOPIC: records_of(exchanged(pairs), topic)}, **sides)
    if job == "topic-sink":
        every = {f"{cell.column.type} | {cell.value.name}" for cell, *_ in pairs}
        assert every - names_of(answer, pairs) == set()
    totals = answer.outcome.totals
    assert (totals["missing"], totals["extra"]) == (2 * len(pairs), 2 * len(pairs))
    assert answer.of("not-representable") == []


def side_of(resolved: Resolved, directory: Path) -> dict[str, object]:
    file = directory / "access.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in resolved.secrets.items()))
    return resolved.side | ({"properties": str(file)} if resolved.secrets else {})


def topic_of(resolved: Resolved) -> dict[str, object]:
    return {"kind": "topic", "topics": [TOPIC], **resolved.topic}


def written(database: Database, pairs: Pairs) -> None:
    """Have SqlSink write the rows into a table of the source's own types."""
    columns = {cell.column.name: cell.column.type for cell, *_ in pairs}
    define(database, TABLE, columns)
    # The sink must not use the offsets of an earlier run.
    database.execute(f"DROP TABLE IF EXISTS o{TABLE}")
    delivered(SqlSinkTask, sink_props(database, TABLE), messages_of(pairs))


def read_back(database: Database, table: str, rows: int) -> Resolved:
    """Return the table as the side of a source that has read `rows` rows."""
    config = {
        **sink_props(database, table),
        "mode": "incrementing",
        "incrementing.column.name": "id",
    }
    entry = OffsetEntry(partition={"table": table}, offset={"incrementing": rows})
    return read_table(Audited(name="matrix", config=config, topics=[table], offsets=[entry]))


@pytest.mark.long
@pytest.mark.parametrize("name", chosen(("PostgreSQL",), long=("SQLite", "MariaDB")))
def test_each_changed_value_of_a_table_is_found(
    audit: RecordedAudit, systems: Systems, tmp_path: Path, name: str
) -> None:
    """Each changed value of a type is found in a sink's table; with --long in a source's, too."""
    database, pairs = systems.databases[name], pairs_of(systems, name)
    written(database, pairs)
    config = sink_props(database, TABLE)
    sink = written_table(Audited(name="matrix", config=config, topics=[TOPIC], offsets=[]))
    check_audits(audit, pairs, {"left": topic_of(sink), "right": side_of(sink, tmp_path)})
    if LONG:
        source = read_back(database, TABLE, 2 * len(pairs))
        sides = {"left": side_of(source, tmp_path), "right": topic_of(source)}
        check_audits(audit, pairs, sides, job="source-topic")


@pytest.mark.long
@pytest.mark.parametrize("name", chosen(("CSV", "Iceberg"), long=("Parquet", "JSON")))
def test_each_changed_value_of_a_file_is_found(
    audit: RecordedAudit, systems: Systems, tmp_path: Path, name: str
) -> None:
    pairs = pairs_of(systems, FILES[name], name)
    config = {
        **iceberg_props(tmp_path / "lake", TOPIC),
        "format.class": name.lower(),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": str(name != "JSON").lower(),
    }
    delivered(LakeSinkTask, config, messages_of(pairs))
    sink = written_lake(Audited(name="matrix", config=config, topics=[TOPIC], offsets=[]))
    sides = {"left": topic_of(sink), "right": side_of(sink, tmp_path)}
    check_audits(audit, pairs, sides, topic=Topic.PLAIN if name == "JSON" else Topic.JSON)


@pytest.mark.parametrize("name", DATABASES)
def test_values_that_no_record_has_are_differences(
    audit: RecordedAudit, systems: Systems, tmp_path: Path, name: str
) -> None:
    """Infinity, zero dates and times beyond a day, which a source wrote as null, differ."""
    types = {c.column for c in cells_of(name) if refused_at_reading(c)}
    cells = [c for c in cells_of(name) if c.column in types and c.value.name != "not UTF-8"]
    records = systems.sources[name].read(cells, {"values.out.of.range": "null"})
    odd = {
        row
        for _, found in grid(cells)
        for row, cell in enumerate(found)
        if refused_at_reading(cell)
    }
    writes = converter(Topic.JSON)
    given = [
        Given(writes.from_connect_data(TOPIC, [], each.value_schema, each.value))
        for each in records
    ]
    source = read_back(systems.databases[name], TOPIC, len(records))
    sides = {"left": side_of(source, tmp_path), "right": topic_of(source)}
    answer = audit.run("source-topic", {TOPIC: given}, **sides)
    extra = {copy.offset for each in answer.of("extra") for copy in each.copies}
    assert (extra, answer.outcome.totals["missing"]) == (odd, len(odd))
