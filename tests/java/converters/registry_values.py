"""Values of every Connect type, for converters with a schema registry."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

from pyconnect_api import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    DATE_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    SchemaBuilder,
    Struct,
    decimal_schema,
    timestamp_builder,
)

ADDRESS = SchemaBuilder.struct().name("com.example.Address").field("city", STRING_SCHEMA).build()
OPTIONAL_ADDRESS = (
    SchemaBuilder.struct().name("com.example.Second").optional().field("n", INT32_SCHEMA).build()
)

ORDER = (
    SchemaBuilder.struct()
    .name("com.example.Order")
    .field("tiny", INT8_SCHEMA)
    .field("small", INT16_SCHEMA)
    .field("number", INT32_SCHEMA)
    .field("big", INT64_SCHEMA)
    .field("single", FLOAT32_SCHEMA)
    .field("double", FLOAT64_SCHEMA)
    .field("flag", BOOLEAN_SCHEMA)
    .field("text", STRING_SCHEMA)
    .field("raw", BYTES_SCHEMA)
    .field("note", OPTIONAL_STRING_SCHEMA)
    .field("count", OPTIONAL_INT64_SCHEMA)
    .field("price", decimal_schema(2))
    .field("day", DATE_SCHEMA)
    .field("at", TIME_SCHEMA)
    .field("created", timestamp_builder().optional().build())
    .field("tags", SchemaBuilder.array(STRING_SCHEMA).build())
    .field("stock", SchemaBuilder.map(STRING_SCHEMA, INT64_SCHEMA).build())
    .field("codes", SchemaBuilder.map(INT32_SCHEMA, STRING_SCHEMA).build())
    .field("address", ADDRESS)
    .field("second", OPTIONAL_ADDRESS)
    .build()
)


def full_order() -> Struct:
    """Return an order with a value in every field."""
    order = Struct(ORDER)
    for name, value in {
        "tiny": -128,
        "small": 32767,
        "number": -5,
        "big": 2**62,
        "single": 1.5,
        "double": 0.1,
        "flag": True,
        "text": "päckchen ✓",
        "raw": b"\x00\xff",
        "note": "n",
        "count": 0,
        "price": Decimal("-19.90"),
        "day": date(1969, 12, 31),
        "at": time(23, 59, 59, 999000),
        "created": datetime(2026, 2, 28, 12, 30, 1, 500000, tzinfo=UTC),
        "tags": ["a", ""],
        "stock": {"x": 1, "y": -1},
        "codes": {1: "one", -2: "two"},
        "address": Struct(ADDRESS).put("city", "Köln"),
        "second": Struct(OPTIONAL_ADDRESS).put("n", 7),
    }.items():
        order.put(name, value)
    return order


def sparse_order() -> Struct:
    """Return an order without what may be missing, and with empty collections."""
    order = full_order()
    for name in ("note", "count", "created", "second"):
        order.put(name, None)
    return order.put("tags", []).put("stock", {}).put("codes", {}).put("text", "")
