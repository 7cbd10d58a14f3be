"""Rules of the transformation and the predicate that take expressions."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from pyconnect_api import (
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    ConfigException,
    DataException,
    Header,
    SchemaBuilder,
    Struct,
    decimal_schema,
)
from pyconnect_api.logical import DATE_SCHEMA, TIME_SCHEMA, TIMESTAMP_SCHEMA
from tests.agent.builtin.transforms.transformations import (
    applied,
    predicate,
    source_record,
    transformation,
)
from tests.support.cases import cases

INNER = SchemaBuilder.struct().field("card", OPTIONAL_STRING_SCHEMA).optional().build()
ORDER = (
    SchemaBuilder.struct()
    .name("order")
    .field("id", INT64_SCHEMA)
    .field("price", decimal_schema(2))
    .field("day", DATE_SCHEMA)
    .field("at", TIME_SCHEMA)
    .field("seen", TIMESTAMP_SCHEMA)
    .field("data", SchemaBuilder.bytes().build())
    .field("ratio", SchemaBuilder.float64().build())
    .field("payment", INNER)
    .build()
)
SEEN = datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=UTC)


def order() -> Struct:
    return (
        Struct(ORDER)
        .put("id", 2**63 - 1)
        .put("price", Decimal("12.50"))
        .put("day", date(2026, 2, 3))
        .put("at", time(13, 5))
        .put("seen", SEEN)
        .put("data", b"\x00\xff")
        .put("ratio", 0.1)
        .put("payment", Struct(INNER).put("card", "4111222233334444"))
    )


@cases(
    "expression, expected",
    ("value.id == 9223372036854775807", True),
    ("value.price == '12.50' && double(value.price) > 12.0", True),
    ("value.day > '2026-01-31' && value.at == '13:05:00'", True),
    ("value.seen == timestamp('2026-02-03T04:05:06.789Z')", True),
    (r"value.data == b'\x00\xff' && value.ratio == 0.1", True),
    ("value.payment != null && value.payment.card.startsWith('41')", True),
    ("has(value.payment.card) && !has(value.payment.gone)", True),
    ("value['payment'].card.substring(12) == '4444'", True),
    ("math.greatest(1, 2) == 2 && topic == 'topic' && partition == null", True),
    ("headers.tenant == 'b' && [1].exists(value, value == 1)", True),
    ("timestamp == timestamp('1970-01-01T00:00:01Z') // value.gone isn't read", True),
    (r"'value.gone' == r'\' || key.id == 1", False),
)
def test_an_expression_sees_values_as_they_are(expression: str, expected: bool) -> None:
    """Expressions see 64-bit integers, all digits, bytes with zeros, and milliseconds."""
    record = source_record(
        order(), ORDER, timestamp=1000, headers=[Header("tenant", None, x) for x in "ab"]
    )
    assert predicate("ExpressionHolds", expression=expression).test(record) is expected


def test_an_expression_drops_routes_masks_and_sets() -> None:
    """All expressions see the record before its change; what they do not name stays."""
    made = transformation(
        "Expression",
        filter="value.id > 5",
        topic="topic + '-' + value.day",
        set_value="{'payment.card': '****' + value.payment.card.substring(12), 'price': '3.00',"
        " 'id': value.id - 1, 'late': value.at > '12:00:00'}",
    )
    record = source_record(order(), ORDER)
    changed = applied(made, record)
    value: Any = changed.value
    assert changed.topic == "topic-2026-02-03"
    assert changed.key is record.key
    assert (value.get("price"), value.get("id")) == (Decimal("3.00"), 2**63 - 2)
    assert value.get("payment").get("card") == "****4444"
    assert value.get("late") is True
    assert changed.value_schema is not None
    assert changed.value_schema is value.schema
    assert changed.value_schema.name == "order"
    assert [*map(str, changed.value_schema.fields[:8])] == [*map(str, ORDER.fields)]
    assert record.value == order()
    assert made.apply(source_record(order().put("id", 5), ORDER)) is None
    plain = transformation("Expression", set_key="{'id': null, 'a.b': key.id}")
    expected = {"id": None, "a": {"c": 1, "b": 7}}
    assert applied(plain, source_record({"id": 7, "a": {"c": 1}})).key == expected


def test_optional_schemas_stay_optional_with_new_fields() -> None:
    """An optional struct stays optional when it gets fields, within a struct too."""
    made = transformation("Expression", set_value="{'payment.bank': 'x'}")
    schema = applied(made, source_record(order(), ORDER)).value_schema
    assert schema is not None
    payment = schema.fields[-1].schema
    assert [field.name for field in payment.fields] == ["card", "bank"]
    assert payment.optional
    assert payment.fields[1].schema is OPTIONAL_STRING_SCHEMA


@cases(
    "expression, text",
    ("value.gone == 1", "the record has no value.gone"),
    ("value.id + 1 > 0", "'expression' failed: OverflowError"),
    ("value.id > 'a'", "No such overload"),
    ("value.id", "returned a int, expected a bool"),
    ("headers.big == 1", "headers.big is an integer of more than 64 bits"),
    ("headers.odd == 1", "headers.odd is a object, for which CEL has no type"),
)
def test_a_value_that_would_change_is_refused(expression: str, text: str) -> None:
    """The error of a refused value, or of an expression that fails, shows no values."""
    headers = [Header("big", None, 2**63), Header("odd", None, object())]
    with pytest.raises(DataException, match=text) as failed:
        predicate("ExpressionHolds", expression=expression).test(
            source_record(order(), ORDER, headers=headers)
        )
    assert "9223372036854775807" not in str(failed.value)


@cases(
    "expression, text",
    ("{'id': 1.5}", "value.id"),
    ("{'price': '1.5'}", "scale"),
    ("{'day': 'x'}", "new text of value.day is not a"),
    ("{'other': null}", "value.other is a new field, and a null has no type"),
    ("{'id.x': 1}", "value.id is a int and has no fields"),
)
def test_a_new_value_must_be_of_the_fields_type(expression: str, text: str) -> None:
    """Only texts of decimals, dates and times are converted."""
    with pytest.raises(DataException, match=text):
        transformation("Expression", set_value=expression).apply(source_record(order(), ORDER))


@cases(
    "options, text",
    ({}, "Set at least one of filter, topic, set.key, set.value"),
    ({"filter": "1 +"}, "Invalid value 1 \\+ for configuration filter"),
    ({"filter": "vlaue.a == 1"}, "vlaue is not a part of a record, which are topic"),
)
def test_a_faulty_expression_is_refused_by_validation(options: dict[str, str], text: str) -> None:
    """Validation refuses a faulty expression and a misspelt name."""
    with pytest.raises(ConfigException, match=text):
        transformation("Expression", **options)
