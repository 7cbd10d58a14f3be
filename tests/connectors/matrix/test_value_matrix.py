"""The matrix: each type and value arrives equal, or is refused as promised."""

from collections.abc import Iterator
from contextlib import closing
from itertools import compress

import pytest

from pyconnect_api import Schema, Struct
from tests.connectors.matrix import fitting
from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.document import CATALOG
from tests.connectors.matrix.meanings import Kind, of_python, to_milliseconds
from tests.connectors.matrix.rules import in_topic, refused_at_reading
from tests.connectors.matrix.systems import Systems, cells_of
from tests.support.cases import cases
from tests.support.seeds import LONG
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer

pytestmark = [pytest.mark.wire, pytest.mark.timeout(1800 if LONG else 900)]
FEWER = 8
"""Without --long the tests run one of this many paths."""


@pytest.fixture(scope="module")
def systems(
    postgres: PostgresServer, mariadb: MariaDbServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Systems]:
    with closing(Systems(postgres, mariadb, tmp_path_factory.mktemp("matrix"))) as made:
        yield made


@pytest.mark.long
@cases("source", *CATALOG)
def test_each_value_arrives_equal_or_is_refused(systems: Systems, source: str) -> None:
    """A refused value has an error that names table or file, column and row."""
    first = list(CATALOG).index(source)
    paths = list(systems.paths(source))
    chosen = paths if LONG else paths[first % FEWER :: FEWER]
    faults = {path.name: path.faults(cells_of(source)) for path in chosen}
    assert {name: found for name, found in faults.items() if found} == {}


@cases("source", *CATALOG)
def test_columns_have_the_documented_types_in_the_topic(systems: Systems, source: str) -> None:
    """Each row of a column has the documented type in the topic."""
    cells = [
        Cell(column, value)
        for column in CATALOG[source]
        for value in column.values[:1]
        if not refused_at_reading(Cell(column, value))
    ]
    (record,) = systems.sources[source].read(cells)
    expected = {cell.column.name: in_topic(source, cell.column) for cell in cells}
    if source == "JSON":
        assert record.value_schema is None
        return
    assert isinstance(record.value, Struct)
    schemas = {field.name: field.schema for field in record.value.schema.fields}
    found = {name: _connect_type(schemas[name]) for name in expected}
    assert found == expected


def _connect_type(schema: Schema) -> str:
    if schema.name is None:
        return schema.type.name
    scale = (schema.parameters or {}).get("scale")
    name = schema.name.rpartition(".")[2]
    return name if scale is None else f"{name}({scale})"


@cases("system", *fitting.FITS)
def test_a_value_that_does_not_fit_a_column_is_refused(systems: Systems, system: str) -> None:
    """A value that an existing column would cut, round or convert is refused."""
    assert list(fitting.faults(systems.columns[system])) == []


WITH_ODD_VALUES = [
    (source, column.type)
    for source, columns in CATALOG.items()
    for column in columns
    # A value that is not JSON or CSV is not in a column.
    if source not in ("JSON", "CSV") and column.kind is not Kind.JSON
    if any(refused_at_reading(Cell(column, value)) for value in column.values)
]


@cases("source, type_", *WITH_ODD_VALUES)
def test_the_policy_says_what_becomes_of_an_odd_value(
    systems: Systems, source: str, type_: str
) -> None:
    """An odd value becomes null, the source's text, or no row; the other rows arrive."""
    cells = [cell for cell in cells_of(source) if cell.column.type == type_]
    kind, name = cells[0].column.kind, cells[0].column.name
    is_good = [not refused_at_reading(cell) for cell in cells]
    meanings = [to_milliseconds(cell.value.meaning) for cell in cells]

    def read(setting: str, value: str) -> list[object]:
        records = systems.sources[source].read(cells, {setting: value})
        found = [record.value.get(name) for record in records]  # type: ignore[attr-defined]
        return [to_milliseconds(of_python(kind, each)) for each in found]

    as_null = [m if good else None for m, good in zip(meanings, is_good, strict=True)]
    assert read("values.out.of.range", "null") == as_null
    assert read("errors.tolerance", "all") == list(compress(meanings, is_good))
    if kind in (Kind.TEXT, Kind.BYTES):
        # Odd texts and bytes have no other text.
        return
    as_text = read("values.out.of.range", "text")
    assert list(compress(as_text, is_good)) == list(compress(meanings, is_good))
    assert None not in [each for each, good in zip(as_text, is_good, strict=True) if not good]
