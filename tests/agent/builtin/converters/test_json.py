"""The JSON converter."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_api import (
    DATE_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    NULL,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    ConfigException,
    DataException,
    Schema,
    SchemaAndValue,
    SchemaBuilder,
    Struct,
    Type,
    decimal_schema,
)
from pyconnect_api.logical import decimal_of
from pyconnect_api.validation import hashable_key
from tests.support.cases import cases

RECORD = (
    SchemaBuilder.struct()
    .name("r")
    .field("id", INT32_SCHEMA)
    .field("n", OPTIONAL_STRING_SCHEMA)
    .build()
)
RECORD_BYTES = (
    b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},'
    b'{"type":"string","optional":true,"field":"n"}],"optional":false,"name":"r"},'
    b'"payload":{"id":1,"n":null}}'
)


def converter(**options: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in options.items()}, False)
    return made


def plain() -> JsonConverter:
    return converter(schemas_enable="false")


def written(made: JsonConverter, schema: Schema | None, value: object) -> bytes | None:
    return made.from_connect_data("topic", [], schema, value)


def read(made: JsonConverter, data: bytes | None) -> SchemaAndValue:
    return made.to_connect_data("topic", [], data)


def read_as(schema_text: str, payload: str, **options: str) -> object:
    data = f'{{"schema":{schema_text},"payload":{payload}}}'.encode()
    return read(converter(**options), data).value


def test_the_envelope_holds_schema_and_payload_in_kafkas_order() -> None:
    """The envelope equals the specification's example byte for byte."""
    assert written(converter(), RECORD, Struct(RECORD).put("id", 1)) == RECORD_BYTES


def test_null_needs_an_optional_schema() -> None:
    """Only no schema with no value becomes Kafka's null; a required value is never null."""
    for made in (converter(), plain()):
        assert written(made, None, None) is None
        assert read(made, None) == NULL
    null_record = written(converter(), OPTIONAL_INT32_SCHEMA, None)
    assert null_record == b'{"schema":{"type":"int32","optional":true},"payload":null}'
    assert written(plain(), OPTIONAL_INT32_SCHEMA, None) == b"null"
    with pytest.raises(DataException, match="required and has no default value"):
        written(plain(), INT32_SCHEMA, None)
    with pytest.raises(DataException, match="Invalid null value for required INT32 field"):
        read_as('{"type":"int32"}', "null")


def test_null_is_replaced_by_the_default_unless_switched_off() -> None:
    """`replace.null.with.default` applies to writing and reading."""
    schema = SchemaBuilder.int32().optional().default(7).build()
    assert written(plain(), schema, None) == b"7"
    kept = converter(schemas_enable="false", replace_null_with_default="false")
    assert written(kept, schema, None) == b"null"
    text = '{"type":"int32","optional":true,"default":7}'
    assert read_as(text, "null") == 7
    assert read_as(text, "null", replace_null_with_default="false") is None


def test_decimals_are_base64_or_numbers() -> None:
    """`decimal.format` decides how decimals are written, and both forms are read."""
    schema, value = decimal_schema(4), Decimal("10.2345")
    numeric = converter(schemas_enable="false", decimal_format="numeric")
    assert written(plain(), schema, value) == b'"AY/J"'
    assert written(numeric, schema, value) == b"10.2345"
    for made in (converter(), converter(decimal_format="NUMERIC")):
        data = written(made, schema, value)
        assert read(made, data) == SchemaAndValue(schema, value)


def test_infinite_and_nan_numbers_are_written_as_text_and_read_back() -> None:
    """JSON has no NaN; Apache writes these texts, but reads them as 0."""
    for schema in (FLOAT32_SCHEMA, FLOAT64_SCHEMA):
        assert written(plain(), schema, float("-inf")) == b'"-Infinity"'
        data = written(converter(), schema, float("nan"))
        assert str(read(converter(), data).value) == "nan"


@cases(
    "payload",
    "1", "null", "{}", "[]", '{"schema":null}', '{"schema":null,"payload":1,"x":1}', "", " ",
)  # fmt: skip
def test_with_schemas_only_an_envelope_is_read(payload: str) -> None:
    """The error of a value without an envelope says which setting to change."""
    with pytest.raises(DataException, match=r'requires "schema" and "payload" fields'):
        read(converter(), payload.encode())


@cases("data", b"{", b"\xff", b'{"schema":null,"payload":1}x', b"{}{}")
def test_bytes_that_are_no_single_json_value_are_refused(data: bytes) -> None:
    """Apache ignores bytes after the first value, so a doubled record would go unnoticed."""
    for made in (converter(), plain()):
        with pytest.raises(DataException, match="failed due to serialization error"):
            read(made, data)


def test_members_of_the_envelope_may_come_in_any_order_and_form() -> None:
    """Other producers write the members in another order and form."""
    made = converter()
    for data in (
        b'{"payload":[1],"schema":{"items":{"type":"int8"},"type":"array"}}',
        b'{ "schema" : {"type":"array", "items":{"type":"int8"}}, "payload" : [ 1 ] }\n',
        b'{"schema":{"type":"array","items":{"type":"int8"}},"payload":[001]}',
        b'{"schema":null,"payload":2,"schema":{"type":"array","items":{"type":"int8"}},"payload":[1]}',
    ):
        schema = SchemaBuilder.array(INT8_SCHEMA).build()
        assert read(made, data) == SchemaAndValue(schema, [1])


def test_a_payload_that_contains_the_end_of_an_envelope_is_read_whole() -> None:
    """A payload may contain the text that ends an envelope, because only a prefix is compared."""
    made = converter()
    tricky = '","payload":{"schema":null}}'
    for value in ("x", tricky, "y", tricky):
        data = written(made, STRING_SCHEMA, value)
        assert read(made, data) == SchemaAndValue(STRING_SCHEMA, value)
    extended = b'{"schema":{"type":"string","optional":false},"payload":"x","more":1}'
    with pytest.raises(DataException, match="may not contain additional fields"):
        read(made, extended)


@cases(
    "schema, payload",
    ('{"type":"int8"}', "128"),
    ('{"type":"int32"}', "2147483648"),
    ('{"type":"int64"}', "9223372036854775808"),
    ('{"type":"int64"}', "1e999999999"),
    ('{"type":"int64"}', "1.5"),
    ('{"type":"int8"}', "1e-400"),
    ('{"type":"double"}', "1e400"),
    ('{"type":"float"}', "-1e39"),
    ('{"type":"int32"}', '"1"'),
    ('{"type":"int32"}', "true"),
    ('{"type":"double"}', '"x"'),
    ('{"type":"boolean"}', "1"),
    ('{"type":"string"}', "1"),
    ('{"type":"bytes"}', '"?"'),
    ('{"type":"bytes"}', "1"),
    ('{"type":"array","items":{"type":"int8"}}', "{}"),
    ('{"type":"int32","name":"org.apache.kafka.connect.data.Time"}', "86400000"),
    ('{"type":"int32","name":"org.apache.kafka.connect.data.Date"}', "1.5"),
    ('{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp"}', "1" + "0" * 17),
)
def test_data_that_would_be_altered_is_refused(schema: str, payload: str) -> None:
    """Apache would keep the low bits or store 0, which the source did not send."""
    with pytest.raises(DataException):
        read_as(schema, payload)


@cases(
    "payload, value",
    ("0.1", 0.1),
    ("5E-324", 5e-324),
    ("1.7976931348623157E+308", 1.7976931348623157e308),
    ("9223372036854775807", 2**63 - 1),
    ("9223372036854775808", Decimal(2**63)),
    ("12345678901234567890.123456789", Decimal("12345678901234567890.123456789")),
    ("1E+400", Decimal("1E+400")),
    ("-1E-400", Decimal("-1E-400")),
    ("9007199254740993.0", Decimal("9007199254740993.0")),
)
def test_schemaless_numbers_keep_their_digits(payload: str, value: object) -> None:
    """A schemaless number that 64 bits would change is a Decimal, which is written as it was."""
    found = read_as("null", payload)
    assert found == value
    assert type(found) is type(value)
    assert read(plain(), written(plain(), None, [found])).value == [value]


@cases(
    "digits", "0.10000000000000001", "0.1000000000000000055511151231257827", "1e-1", "0.100000000"
)
def test_a_number_that_a_double_has_is_a_double(digits: str) -> None:
    """A number with the 17 digits that some languages write is a double, not a Decimal."""
    assert read_as("null", digits) == 0.1


@cases(
    "schema, value",
    (INT32_SCHEMA, True), (INT32_SCHEMA, 2**31), (INT32_SCHEMA, "1"), (FLOAT64_SCHEMA, 1),
    (STRING_SCHEMA, b"x"), (Schema(Type.BOOLEAN), 1), (RECORD, {"id": 1}),
    (RECORD, Struct(SchemaBuilder.struct().build())), (DATE_SCHEMA, 1),
    (TIME_SCHEMA, datetime(2020, 1, 1, tzinfo=UTC)), (TIMESTAMP_SCHEMA, 1),
    (decimal_schema(2), Decimal("1.5")), (decimal_schema(2), 1.5), (None, Decimal("NaN")),
    (None, Struct(SchemaBuilder.struct().build())),
)  # fmt: skip
def test_values_that_do_not_fit_a_schema_are_refused(schema: Schema | None, value: object) -> None:
    """The converter does not cast a value to the type of its schema."""
    for made in (converter(), plain()):
        with pytest.raises(DataException):
            written(made, schema, value)


def test_schemaless_data_is_read_as_plain_values() -> None:
    """Schemaless numbers with a fraction are floats, and whole ones integers."""
    data = b'{"a":[1,1.5,1e2,true,null,"x"],"b":{}}'
    expected = {"a": [1, 1.5, 100.0, True, None, "x"], "b": {}}
    assert read(plain(), data) == SchemaAndValue(None, expected)
    assert read(plain(), b"") == NULL


def test_a_fixed_schema_describes_payloads_without_envelope() -> None:
    """`schema.content` (KIP-1054) applies to reading; written messages keep the envelope."""
    made = converter(schema_content='{"type":"int32"}')
    assert read(made, b"5") == SchemaAndValue(INT32_SCHEMA, 5)
    expected = b'{"schema":{"type":"int32","optional":false},"payload":5}'
    assert written(made, INT32_SCHEMA, 5) == expected
    with pytest.raises(DataException, match="Schema must contain 'type' field"):
        converter(schema_content="{}")


def test_caches_are_bounded_and_right_for_every_size() -> None:
    """More schemas than the caches hold are still written and read correctly."""
    for size in ("0", "1", "2"):
        made = converter(schemas_cache_size=size)
        for _ in range(3):
            for version in range(4):
                schema = SchemaBuilder.int32().version(version).build()
                assert read(made, written(made, schema, 5)) == SchemaAndValue(schema, 5)


def test_options_are_checked() -> None:
    """A wrong option is an error of the config, not of each record."""
    for options in ({"decimal_format": "HEX"}, {"schemas_enable": "maybe"}):
        with pytest.raises(ConfigException):
            converter(**options)
    made = JsonConverter()
    with pytest.raises(ConfigException, match=r"converter\.type"):
        made.configure({})
    made.configure({"converter.type": "header", "schemas.enable": "false"})
    assert made.to_connect_header("t", "h", made.from_connect_header("t", "h", None, "x")) == (
        SchemaAndValue(None, "x")
    )


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


PRIMITIVES: list[tuple[SchemaBuilder, st.SearchStrategy[Any]]] = [
    (SchemaBuilder.int8(), integers(8)),
    (SchemaBuilder.int16(), integers(16)),
    (SchemaBuilder.int32(), integers(32)),
    (SchemaBuilder.int64(), integers(64)),
    (SchemaBuilder.float32(), st.floats(width=32, allow_nan=False)),
    (SchemaBuilder.float64(), st.floats(allow_nan=False)),
    (SchemaBuilder.boolean(), st.booleans()),
    (SchemaBuilder.string(), st.text(st.characters())),
    (SchemaBuilder.bytes(), st.binary()),
]
LOGICAL = [
    (DATE_SCHEMA, st.dates()),
    (TIME_SCHEMA, st.times().map(lambda t: t.replace(microsecond=0, fold=0))),
    (
        TIMESTAMP_SCHEMA,
        st.datetimes(timezones=st.just(UTC)).map(lambda d: d.replace(microsecond=0)),
    ),
    (decimal_schema(3), st.integers().map(lambda unscaled: decimal_of(unscaled, 3))),
]

Pair = tuple[Schema, st.SearchStrategy[Any]]


def leaves() -> st.SearchStrategy[Pair]:
    built = [(builder.build(), found) for builder, found in PRIMITIVES]
    optional = [
        (Schema(schema.type, optional=True, name=schema.name), st.none() | found)
        for schema, found in built
    ]
    return st.sampled_from(built + optional + LOGICAL)


def containers(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def struct_of(members: list[Pair]) -> Pair:
        builder = SchemaBuilder.struct()
        for index, (schema, _) in enumerate(members):
            builder.field(f"f{index}", schema)
        schema = builder.build()
        found = st.tuples(*(values for _, values in members))
        return schema, found.map(lambda values: Struct.of_checked(schema, list(values)))

    def map_of(key: Pair, value: Pair) -> Pair:
        keys = key[1].map(hashable_key)
        return SchemaBuilder.map(key[0], value[0]).build(), st.dictionaries(
            keys, value[1], max_size=3
        )

    arrays = inner.map(
        lambda pair: (SchemaBuilder.array(pair[0]).build(), st.lists(pair[1], max_size=3))
    )
    required = st.sampled_from([(builder.build(), found) for builder, found in PRIMITIVES])
    maps = st.tuples(required, inner).map(lambda pairs: map_of(*pairs))
    return arrays | maps | st.lists(inner, max_size=4).map(struct_of)


SCHEMAS_WITH_VALUES = st.recursive(leaves(), containers, max_leaves=6)


@settings(max_examples=300)
@given(st.data())
def test_every_value_survives_the_round_trip(data: st.DataObject) -> None:
    """Schema and value come back equal, and the bytes are valid JSON."""
    schema, strategy = data.draw(SCHEMAS_WITH_VALUES)
    value = data.draw(strategy)
    made = converter(decimal_format=data.draw(st.sampled_from(["BASE64", "NUMERIC"])))
    first = written(made, schema, value)
    assert first is not None
    json.loads(first)
    assert read(made, first) == SchemaAndValue(schema, value)
    assert read(made, first) == SchemaAndValue(schema, value)
    assert written(made, schema, value) == first
