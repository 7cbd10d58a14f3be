"""Writer of docs/reference/value-matrix.md, from the promises that the matrix tests."""

from collections.abc import Iterator, Sequence

from tests.connectors.matrix.columns import Cell, Column
from tests.connectors.matrix.file_columns import CSV, JSON, PARQUET
from tests.connectors.matrix.fitting import FITS
from tests.connectors.matrix.mariadb_columns import MARIADB
from tests.connectors.matrix.postgres_columns import POSTGRES
from tests.connectors.matrix.rules import in_topic, refused_at_reading, refused_at_writing
from tests.connectors.matrix.sqlite_columns import SQLITE
from tests.connectors.matrix.topics import Topic

CATALOG: dict[str, Sequence[Column]] = {
    "PostgreSQL": POSTGRES,
    "MariaDB": MARIADB,
    "SQLite": SQLITE,
    "Parquet": PARQUET,
    "JSON": JSON,
    "CSV": CSV,
}
TARGETS = ("PostgreSQL", "MariaDB", "SQLite", "Parquet", "JSON", "CSV", "Iceberg")

_HEADER = ("type", "in the topic", "arrive equal", "refused when read", "refused when written")
INTRODUCTION = """\
# Value matrix

<!-- Made by scripts/generate-value-matrix from tests/connectors/matrix. Do not edit. -->

What becomes of a value on its way from a database or file through a topic into a database, file
or table, type by type. A test takes each value of these tables through each path and looks at it
in the target with SQL or with the format's own reader: `scripts/test wire -- -k value_matrix`
takes some of the paths, `--long` all of them.

- Sources: SqlSource on PostgreSQL 15, MariaDB 10.11 and SQLite; LakeSource on Parquet, JSON and
  CSV.
- Topics: JSON with schemas, JSON without schemas, Avro.
- Targets: SqlSink into tables that it creates, and into tables of the same database with the
  source's own types; LakeSink to Parquet, JSON, CSV and Iceberg.

A value arrives equal, or the task refuses it with an error that names the table or file, the
column and the row. No value changes without an error. By design:

- Date, Time and Timestamp are those of Connect. Times have whole milliseconds: what is finer is
  cut, to the earlier millisecond. A timestamp without zone is understood in `db.timezone`.
- MariaDB and SQLite keep no minus before a zero: `-0.0` is `0.0` there.
- Without schemas JSON has no types of its own for some values: a Date is a number of days, a Time
  or Timestamp a number of milliseconds, bytes are base64, a Decimal is base64 of its unscaled
  number, NaN and Infinity are texts. Such values arrive in that form, in columns that exist; the
  formats Parquet, CSV and Iceberg need schemas.
- Rows of JSON files have no schema: Avro, Parquet, CSV and Iceberg refuse them.
- An object of JSON that has a name twice has the last value, as Java's readers have it.
- An empty value of CSV is null, with quotes or without.

`values.out.of.range` of a source says what happens to values in the column "refused when read":
the task fails, the value is null, or the column is read as text. With `errors.tolerance=all` the
row is left out.
"""


def document() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *_sources(), *_fits()])


def _sources() -> Iterator[str]:
    for name, columns in CATALOG.items():
        yield f"## From {name}\n"
        yield f"| {' | '.join(_HEADER)} |"
        yield "|---|---|---|---|---|"
        for column in columns:
            yield _line(name, column)
        yield ""


def _line(name: str, column: Column) -> str:
    cells = [Cell(column, value) for value in column.values]
    unread = [cell.value.name for cell in cells if refused_at_reading(cell)]
    unwritten: dict[str, list[str]] = {}
    for cell in cells:
        for target in TARGETS:
            if cell.value.name not in unread and refused_at_writing(cell, Topic.JSON, target):
                unwritten.setdefault(cell.value.name, []).append(target)
    equal = [c.value.name for c in cells if c.value.name not in {*unread, *unwritten}]
    written = "; ".join(f"{value}: {', '.join(where)}" for value, where in unwritten.items())
    parts = (
        f"`{column.type}`",
        in_topic(name, column),
        ", ".join(equal),
        ", ".join(unread),
        written,
    )
    return f"| {' | '.join(parts)} |"


def _fits() -> Iterator[str]:
    yield "## Columns that exist\n"
    yield "The sinks compare values with columns before they write. These values are refused:\n"
    for name, fits in FITS.items():
        yield f"### {name}\n"
        yield "| column | value |"
        yield "|---|---|"
        for fit in fits:
            if fit.refused:
                yield f"| `{fit.type}` | {fit.shown} |"
        yield ""
