"""Many values at once have the results of single conversions."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.converters.base import ByteArrayConverter, StringConverter
from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_agent.tasks.plugins import many_values
from pyconnect_api import (
    BYTES_SCHEMA,
    INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Converter,
    Schema,
    SchemaAndValue,
)


def json(**options: object) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in options.items()}, False)
    return made


def text(encoding: str) -> StringConverter:
    made = StringConverter()
    made.configure({"converter.encoding": encoding}, False)
    return made


CONVERTERS: Sequence[Callable[[], Converter]] = (
    StringConverter,
    lambda: text("ISO-8859-1"),
    ByteArrayConverter,
    json,
    lambda: json(schemas_enable="false"),
)

values = st.none() | st.text() | st.sampled_from(["\ud800"]) | st.binary() | st.integers(-9, 9)
columns = st.lists(st.none() | st.text(), max_size=4) | st.lists(values, max_size=4)
consumed = st.lists(
    st.none()
    | st.binary(max_size=4)
    | st.text().map(str.encode)
    | st.sampled_from([b'{"schema":null,"payload":1}', b"12", b"", b" "]),
    max_size=4,
)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as exc:
        return type(exc)


@pytest.mark.parametrize("make", CONVERTERS)
@given(
    schema=st.sampled_from([None, OPTIONAL_STRING_SCHEMA, INT32_SCHEMA, BYTES_SCHEMA]),
    column=columns,
)
def test_many_values_are_written_as_each_of_them(
    make: Callable[[], Converter], schema: Schema | None, column: list[object]
) -> None:
    """Many values are written as single ones are, or an error has the worker write them singly."""
    converter = make()
    expected = outcome(lambda: [converter.from_connect_data("t", [], schema, v) for v in column])
    found = outcome(lambda: converter.from_connect_many("t", schema, column))
    if isinstance(found, list):
        assert found == expected


@pytest.mark.parametrize("make", CONVERTERS)
@given(data=consumed)
def test_many_are_read_as_single(make: Callable[[], Converter], data: list[bytes | None]) -> None:
    """Many messages are read with the schemas and values of single reads."""
    converter = make()
    expected = outcome(lambda: [tuple(converter.to_connect_data("t", [], each)) for each in data])
    found = outcome(lambda: list(zip(*converter.to_connect_many("t", data), strict=True)))
    if isinstance(found, list):
        assert found == expected


def test_a_class_that_changed_one_form_alone_is_asked_value_by_value() -> None:
    """The inherited method for many values does not call a changed method for one value."""

    class Shouting(StringConverter):
        def from_connect_data(self, *arguments: Any) -> bytes | None:
            data = super().from_connect_data(*arguments)
            return None if data is None else data.upper()

    class Both(Shouting):
        def from_connect_many(self, *arguments: Any) -> list[bytes | None]:
            return []

    class Plain(Converter):
        def from_connect_data(self, *arguments: Any) -> bytes | None:
            return None

        def to_connect_data(self, *arguments: Any) -> SchemaAndValue:
            return SchemaAndValue(None, None)

    assert many_values(StringConverter(), "from_connect") is not None
    assert many_values(Shouting(), "from_connect") is None
    assert many_values(Shouting(), "to_connect") is not None
    assert many_values(Both(), "from_connect") is not None
    for way in ("from_connect", "to_connect"):
        assert many_values(Plain(), way) is None
    patched = StringConverter()
    patched.to_connect_data = Plain().to_connect_data  # type: ignore[method-assign]
    assert many_values(patched, "to_connect") is None
