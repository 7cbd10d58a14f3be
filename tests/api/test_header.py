"""The headers of a record."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from pyconnect_api import (
    DATE_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConnectHeaders,
    DataException,
    Header,
    SchemaBuilder,
    Struct,
    decimal_schema,
)


def keys(headers: ConnectHeaders) -> list[str]:
    return [header.key for header in headers]


def test_headers_are_a_list_that_functions_change() -> None:
    """A function that returns None removes a header; `retain_latest` keeps the last of a key."""
    headers = ConnectHeaders().add_int("b", 1).add_int("a", 2).add_int("b", 3)
    assert keys(headers) == ["b", "a", "b"]
    assert [header.value for header in headers.all_with_name("b")] == [1, 3]
    assert headers.last_with_name("b") == Header("b", INT32_SCHEMA, 3)
    assert headers.last_with_name("c") is None

    def abab() -> ConnectHeaders:
        return ConnectHeaders([Header(key, None, i) for i, key in enumerate("abab")])

    assert [h.value for h in abab().retain_latest()] == [2, 3]
    assert [h.value for h in abab().retain_latest("a")] == [1, 2, 3]
    headers = ConnectHeaders([Header(key, STRING_SCHEMA, key) for key in "abc"])
    assert keys(headers.remove("a")) == ["b", "c"]
    headers.apply(lambda header: header.with_key("x"), "b")
    assert keys(headers) == ["x", "c"]
    headers.apply(lambda header: None if header.key == "c" else header)
    assert keys(headers) == ["x"]
    assert len(headers.clear()) == 0


def test_a_value_must_fit_the_class_of_its_schema() -> None:
    """Logical and base values both fit; None needs an optional schema."""
    headers = ConnectHeaders()
    headers.add("a", 1, DATE_SCHEMA).add("b", date(2020, 1, 1), DATE_SCHEMA).add("c", object())
    with pytest.raises(DataException, match="is not compatible with the schema"):
        headers.add("d", "x", INT32_SCHEMA)
    with pytest.raises(DataException, match="A null value requires an optional schema"):
        headers.add("d", None, INT32_SCHEMA)
    assert keys(headers) == ["a", "b", "c"]


def test_typed_adders_choose_the_schema() -> None:
    """Each typed adder uses the schema of its name."""
    struct = Struct(SchemaBuilder.struct().build())
    headers = (
        ConnectHeaders()
        .add_string("s", None)
        .add_bytes("b", b"")
        .add_long("l", 1)
        .add_decimal("d", Decimal("1.50"))
        .add_date("day", date(2020, 1, 1))
        .add_time("time", time(1))
        .add_timestamp("ts", datetime(2020, 1, 1, tzinfo=UTC))
        .add_struct("st", struct)
        .add_list("list", [1], SchemaBuilder.array(INT32_SCHEMA).build())
        .add_map("map", None, INT32_SCHEMA)
    )
    schemas = {header.key: header.schema for header in headers}
    assert schemas["s"] is OPTIONAL_STRING_SCHEMA
    assert schemas["l"] is INT64_SCHEMA
    assert schemas["d"] == decimal_schema(2)
    assert schemas["st"] is struct.schema
    assert schemas["map"] is None
    with pytest.raises(DataException, match="Expecting ARRAY but instead found INT32"):
        headers.add_list("x", [1], INT32_SCHEMA)
    with pytest.raises(DataException, match="no scale"):
        headers.add_decimal("x", Decimal("NaN"))


def test_a_duplicate_changes_on_its_own() -> None:
    """A duplicate shares the header objects but not the collection."""
    headers = ConnectHeaders().add_int("a", 1)
    duplicate = headers.duplicate()
    assert duplicate == headers
    duplicate.add_int("b", 2)
    assert keys(headers) == ["a"]
