"""TimestampConverter between all of its forms."""

from datetime import UTC, date, datetime, time

import pytest

from pyconnect_api import (
    DATE_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    ConfigException,
    ConnectException,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
)
from tests.agent.builtin.transforms.transformations import (
    applied,
    source_record,
    struct_of,
    transformation,
)
from tests.support.cases import cases

FORMAT = "yyyy-MM-dd HH:mm:ss.SSS"
MOMENTS = (
    datetime(2024, 3, 5, 16, 7, 8, 9000, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
)
PRECISIONS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
SCHEMAS = {
    "string": STRING_SCHEMA,
    "unix": INT64_SCHEMA,
    "Date": DATE_SCHEMA,
    "Time": TIME_SCHEMA,
    "Timestamp": TIMESTAMP_SCHEMA,
}


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def in_form(form: str, moment: datetime, precision: str) -> object:
    match form:
        case "string":
            return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
        case "unix":
            units = milliseconds(moment) * PRECISIONS[precision]
            return units // 1000 if units >= 0 else -(-units // 1000)
        case "Date":
            return moment.date()
        case "Time":
            return moment.time()
    return moment


def held_by(form: str, moment: datetime, precision: str) -> datetime:
    """Return the part of the moment that the form can hold."""
    if form == "Date":
        return datetime.combine(moment.date(), time(0), UTC)
    if form == "Time":
        return datetime.combine(date(1970, 1, 1), moment.time(), UTC)
    if form == "unix" and precision == "seconds":
        return datetime.fromtimestamp(int(milliseconds(moment) / 1000), UTC)
    return moment


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("target", SCHEMAS)
@pytest.mark.parametrize("source", SCHEMAS)
@cases("with_schema", False, True)
def test_every_form_becomes_every_other_one(
    source: str, target: str, moment: datetime, precision: str, with_schema: bool
) -> None:
    """Parts that the source form lacks are lost, and finer digits are cut towards zero."""
    converter = transformation(
        "TimestampConverter$Value", target_type=target, format=FORMAT, unix_precision=precision
    )
    schema = SCHEMAS[source] if with_schema else None
    given = source_record(in_form(source, moment, precision), schema)
    record = applied(converter, given)
    expected = in_form(target, held_by(source, moment, precision), precision)
    assert record.value == expected
    assert record.value.__class__ is expected.__class__
    assert record.value_schema == (SCHEMAS[target] if with_schema else None)


def test_a_field_keeps_its_optionality_and_loses_its_default() -> None:
    """The struct keeps its description, and the default is read before the conversion."""
    created = SchemaBuilder.int64().optional().default(5).build()
    schema = SchemaBuilder.struct().name("n").optional().field("created", created).build()
    options = {"target_type": "Timestamp", "field": "created"}
    converter = transformation("TimestampConverter$Value", **options)
    record = applied(converter, source_record(Struct(schema), schema))
    field = SchemaBuilder.int64().name(TIMESTAMP_SCHEMA.name or "").version(1).optional().build()
    expected = SchemaBuilder.struct().name("n").optional().field("created", field).build()
    assert record.value_schema == expected
    assert struct_of(record).get("created") == datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    plain = transformation("TimestampConverter$Value", replace_null_with_default="false", **options)
    kept = struct_of(applied(plain, source_record(Struct(schema), schema)))
    assert kept.get("created") is None
    assert applied(converter, source_record(None, schema)).value_schema == expected


def test_missing_fields_and_none_are_no_errors() -> None:
    """A missing field is ignored with a schema and None without; a whole None gets the schema."""
    converter = transformation("TimestampConverter$Value", target_type="unix", field="created")
    assert applied(converter, source_record({"a": 1})).value == {"a": 1, "created": None}
    schema = SchemaBuilder.struct().field("a", INT32_SCHEMA).build()
    struct = Struct(schema).put("a", 1)
    assert applied(converter, source_record(struct, schema)).value == struct
    converter = transformation("TimestampConverter$Value", target_type="Date")
    assert applied(converter, source_record(None)).value is None
    record = applied(converter, source_record(None, INT64_SCHEMA))
    assert (record.value_schema, record.value) == (DATE_SCHEMA, None)


@cases("schema", INT32_SCHEMA, SchemaBuilder.array(STRING_SCHEMA).build())
def test_a_schema_without_a_form_is_refused(schema: Schema) -> None:
    """A field's schema without a form is refused once a struct has it."""
    message = "does not correspond to a known timestamp type format"
    converter = transformation("TimestampConverter$Value", target_type="Date")
    with pytest.raises(ConnectException, match=message):
        converter.apply(source_record(None, schema))
    struct_schema = SchemaBuilder.struct().field("f", schema).build()
    of_field = transformation("TimestampConverter$Value", target_type="Date", field="f")
    assert applied(of_field, source_record(None, struct_schema)).value is None
    with pytest.raises(ConnectException, match=message):
        of_field.apply(source_record(Struct(struct_schema), struct_schema))


@cases("value", True, 1.5, b"x", [1])
def test_a_class_without_a_form_is_refused(value: object) -> None:
    """A class without a form is refused, and bool is not a number here."""
    converter = transformation("TimestampConverter$Value", target_type="unix")
    with pytest.raises(DataException, match=f"does not support class {type(value).__name__}"):
        converter.apply(source_record(value))


def test_strings_need_a_format() -> None:
    """A format is needed for writing when configured, and for reading when a string comes."""
    with pytest.raises(ConfigException, match="requires format option to be specified"):
        transformation("TimestampConverter$Value", target_type="string")
    with pytest.raises(ConfigException, match=r"SimpleDateFormat-compatible pattern .*: b$"):
        transformation("TimestampConverter$Value", target_type="unix", format="b")
    converter = transformation("TimestampConverter$Value", target_type="unix")
    with pytest.raises(DataException, match="requires the format option"):
        converter.apply(source_record("2024"))


def test_numbers_are_limited_to_sixty_four_bits() -> None:
    """Numbers are limited to 64 bits, as in Java's TimeUnit."""
    options = {"target_type": "unix", "unix_precision": "seconds"}
    converter = transformation("TimestampConverter$Value", **options)
    assert applied(converter, source_record(2**62)).value == (2**63 - 1) // 1000
