"""The converters with a schema registry, against a real one with Confluent's API."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from confluent_kafka.schema_registry import Schema as RegistrySchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_agent.builtin.converters.protobuf.converter import ProtobufConverter
from pyconnect_agent.builtin.converters.registry import RegistryConverter
from pyconnect_agent.builtin.converters.registry_json import JsonSchemaConverter
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
    NULL,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    ConfigException,
    DataException,
    RetriableException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    decimal_schema,
    timestamp_builder,
)
from pyconnect_cli.dlq.carry_out import mender
from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import TopicRecord
from pyconnect_reconcile.spec import Registry

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
    """Return an order with null optional fields and empty collections."""
    order = full_order()
    for name in ("note", "count", "created", "second"):
        order.put(name, None)
    return order.put("tags", []).put("stock", {}).put("codes", {}).put("text", "")


pytestmark = pytest.mark.java

CONVERTERS: list[type[RegistryConverter]] = [AvroConverter, JsonSchemaConverter, ProtobufConverter]

FAITHFUL: dict[type[RegistryConverter], dict[str, str]] = {
    ProtobufConverter: {
        "optional_for_nullables": "true",
        "enhanced_protobuf_schema_support": "true",
    }
}
"""The settings with which a format keeps the whole schema of an order."""


@pytest.fixture
def converter_of(schema_registry_url: str) -> Iterator[Callable[..., RegistryConverter]]:
    made = ExitStack()

    def make(
        kind: type[RegistryConverter], *, is_key: bool = False, **options: str
    ) -> RegistryConverter:
        converter = kind()
        made.callback(converter.close)
        settings = {name.replace("_", "."): value for name, value in options.items()}
        converter.configure({"schema.registry.url": schema_registry_url, **settings}, is_key)
        return converter

    with made:
        yield make


@pytest.fixture
def registry(schema_registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": schema_registry_url}) as client:
        yield client


Make = Callable[..., RegistryConverter]
Names = Callable[[str], str]


@pytest.mark.parametrize("kind", CONVERTERS)
@pytest.mark.parametrize("order", [full_order(), sparse_order()], ids=["full", "sparse"])
def test_a_struct_of_every_type_comes_back_as_it_was(
    kind: type[RegistryConverter], order: Struct, converter_of: Make, unique_name: Names
) -> None:
    """Another converter reads the same schema and value, with logical types and nulls."""
    topic = unique_name("orders")
    options = FAITHFUL.get(kind, {})
    message = converter_of(kind, **options).from_connect_data(topic, [], ORDER, order)
    found = converter_of(kind, **options).to_connect_data(topic, [], message)
    assert found.schema == ORDER
    assert found.value == order


@pytest.mark.parametrize("kind", CONVERTERS)
def test_a_dead_letter_is_mended_with_its_schema(
    kind: type[RegistryConverter], converter_of: Make, schema_registry_url: str, unique_name: Names
) -> None:
    """`dlq replay --mend` changes one field and keeps the schema; it refuses Protobuf."""
    schema = SchemaBuilder.struct().field("n", INT64_SCHEMA).field("s", STRING_SCHEMA).build()
    topic, converter = unique_name("orders"), converter_of(kind)
    value = Struct(schema).put("n", 1).put("s", "12 EUR")
    message = converter.from_connect_data(topic, [], schema, value)
    letter = TopicRecord(
        topic="dead", partition=0, offset=0, timestamp_ms=0, key=None, value=message
    )
    mend = mender('.s |= rtrimstr(" EUR")', registry=Registry(url=schema_registry_url))
    if kind is ProtobufConverter:
        with pytest.raises(UsageError, match="is PROTOBUF"):
            mend(letter)
        return
    found = converter.to_connect_data(topic, [], mend(letter))
    assert (found.schema, found.value) == (schema, value.put("s", "12"))


@pytest.mark.parametrize("kind", CONVERTERS)
def test_a_null_is_a_null_with_any_schema(
    kind: type[RegistryConverter], converter_of: Make
) -> None:
    """A null value is written as a tombstone, unlike JsonConverter's."""
    converter = converter_of(kind)
    assert converter.from_connect_data("t", [], ORDER, None) is None
    assert converter.to_connect_data("t", [], None) == NULL


@pytest.mark.parametrize("kind", CONVERTERS)
def test_the_subject_follows_its_strategy(
    kind: type[RegistryConverter],
    converter_of: Make,
    registry: SchemaRegistryClient,
    unique_name: Names,
) -> None:
    """The subject has the topic, the record or both, and differs for keys and values."""
    topic, name = unique_name("orders"), f"com.example.R{unique_name('r').replace('-', '')}"
    schema = SchemaBuilder.struct().name(name).field("n", INT64_SCHEMA).build()
    value = Struct(schema).put("n", 1)
    prefix = "io.confluent.kafka.serializers.subject."
    for strategy in ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"):
        options = {"value_subject_name_strategy": prefix + strategy}
        converter_of(kind, **options).from_connect_data(topic, [], schema, value)
    converter_of(kind, is_key=True).from_connect_data(topic, [], schema, value)
    subjects = registry.get_subjects()
    assert {f"{topic}-value", f"{topic}-key", name, f"{topic}-{name}"} <= set(subjects)


@pytest.mark.parametrize("kind", CONVERTERS)
def test_without_registration_an_unknown_schema_is_refused(
    kind: type[RegistryConverter], converter_of: Make, unique_name: Names
) -> None:
    """With auto.register.schemas=false only a registered schema may be written."""
    topic = unique_name("orders")
    careful = converter_of(kind, auto_register_schemas="false")
    with pytest.raises(DataException, match=f"{topic}-value"):
        careful.from_connect_data(topic, [], ORDER, full_order())
    written = converter_of(kind).from_connect_data(topic, [], ORDER, full_order())
    assert careful.from_connect_data(topic, [], ORDER, full_order()) == written


@pytest.mark.parametrize("kind", CONVERTERS)
def test_a_registry_that_cannot_be_reached_is_retriable(
    kind: type[RegistryConverter], converter_of: Make
) -> None:
    """A registry that is down raises RetriableException, so that errors.retry.timeout applies."""
    converter = converter_of(kind, schema_registry_url="http://127.0.0.1:1")
    with pytest.raises(RetriableException, match="could not be reached"):
        converter.from_connect_data("t", [], ORDER, full_order())


@pytest.mark.parametrize("kind", CONVERTERS)
@pytest.mark.parametrize("message", [b"", b"{}", b"\x05abcdef", b"\x00\x00"])
def test_a_message_without_schema_id_is_refused(
    kind: type[RegistryConverter], message: bytes, converter_of: Make
) -> None:
    """A message of another serializer raises DataException."""
    with pytest.raises(DataException, match="magic byte"):
        converter_of(kind).to_connect_data("t", [], message)


@pytest.mark.parametrize("kind", CONVERTERS)
def test_an_id_that_the_registry_does_not_know_is_bad_data(
    kind: type[RegistryConverter], converter_of: Make
) -> None:
    """An unknown schema id raises DataException with the id."""
    with pytest.raises(DataException, match="id 99999999"):
        converter_of(kind).to_connect_data("t", [], b"\0" + (99999999).to_bytes(4, "big") + b"x")


@pytest.mark.parametrize("kind", CONVERTERS)
def test_a_damaged_message_is_bad_data(
    kind: type[RegistryConverter], converter_of: Make, unique_name: Names
) -> None:
    """The DataException of half a message shows nothing of its content."""
    converter, topic = converter_of(kind), unique_name("orders")
    message = converter.from_connect_data(topic, [], ORDER, full_order())
    assert message is not None
    with pytest.raises(DataException) as refused:
        converter.to_connect_data(topic, [], message[:20])
    assert "Köln" not in str(refused.value)


@pytest.mark.parametrize("kind", CONVERTERS)
def test_a_schemaless_map_is_refused(kind: type[RegistryConverter], converter_of: Make) -> None:
    """A map without schema is refused, because there is no schema to register."""
    with pytest.raises(DataException, match="without a schema"):
        converter_of(kind).from_connect_data("t", [], None, {"a": 1})


def test_an_incompatible_schema_is_refused_by_the_registry(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """The registry refuses a changed type of a field under BACKWARD compatibility."""
    topic = unique_name("orders")
    registry.set_compatibility(f"{topic}-value", "BACKWARD")
    converter = converter_of(AvroConverter)
    for field, value, fits in ((INT64_SCHEMA, 1, True), (STRING_SCHEMA, "1", False)):
        schema = SchemaBuilder.struct().name("com.example.V").field("n", field).build()
        struct = Struct(schema).put("n", value)
        if fits:
            assert converter.from_connect_data(topic, [], schema, struct)
        else:
            with pytest.raises(DataException, match="HTTP 409"):
                converter.from_connect_data(topic, [], schema, struct)


def test_use_latest_version_writes_with_the_schema_of_the_subject(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """With use.latest.version a field that only the latest schema has gets its default."""
    topic = unique_name("orders")
    latest = (
        '{"type":"record","name":"V","namespace":"com.example","fields":['
        '{"name":"n","type":"long"},{"name":"m","type":"string","default":"none"}]}'
    )
    registry.register_schema(f"{topic}-value", RegistrySchema(latest, "AVRO"))
    schema = SchemaBuilder.struct().name("com.example.V").field("n", INT64_SCHEMA).build()
    converter = converter_of(
        AvroConverter, auto_register_schemas="false", use_latest_version="true"
    )
    message = converter.from_connect_data(topic, [], schema, Struct(schema).put("n", 3))
    found = converter.to_connect_data(topic, [], message).value
    assert isinstance(found, Struct)
    assert (found.get("n"), found.get("m")) == (3, "none")


@pytest.mark.parametrize(
    ("schema", "value"),
    [(INT64_SCHEMA, 5), (FLOAT64_SCHEMA, 0.5), (STRING_SCHEMA, "x"), (BYTES_SCHEMA, b"\x01")],
)
def test_a_scalar_without_schema_is_written_with_the_one_it_suggests(
    schema: Schema, value: object, converter_of: Make, unique_name: Names
) -> None:
    """A value without schema gets the schema of its type, as with Confluent's Avro converter."""
    converter, topic = converter_of(AvroConverter), unique_name("scalars")
    message = converter.from_connect_data(topic, [], None, value)
    assert converter.to_connect_data(topic, [], message) == (schema, value)


def test_avro_types_that_connect_lacks_are_mapped(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """Enums become strings, fixed types bytes, and unions structs; a named type may occur again."""
    topic = unique_name("foreign")
    text = """{"type":"record","name":"Foreign","namespace":"com.example","fields":[
        {"name":"suit","type":{"type":"enum","name":"Suit","symbols":["HEARTS","SPADES"]}},
        {"name":"again","type":"Suit"},
        {"name":"hash","type":{"type":"fixed","name":"Hash","size":2}},
        {"name":"either","type":["null","long","string",
            {"type":"record","name":"Part","fields":[{"name":"p","type":"int"}]}]},
        {"name":"doc","type":["null","string"],"default":null,"doc":"about it"}]}"""
    serializer = AvroSerializer(registry, text)
    context = SerializationContext(topic, MessageField.VALUE)
    common = {"suit": "HEARTS", "again": "SPADES", "hash": b"ab", "doc": None}
    converter = converter_of(AvroConverter)
    for either, field, expected in (
        (7, "long", 7),
        ("x", "string", "x"),
        (("com.example.Part", {"p": 3}), "Part", "Struct{p=3}"),
    ):
        message = serializer({**common, "either": either}, context)
        value = converter.to_connect_data(topic, [], message).value
        assert isinstance(value, Struct)
        assert value.get("hash") == b"ab"
        assert (value.get("suit"), value.get("again")) == ("HEARTS", "SPADES")
        union = value.get_struct("either")
        assert union is not None
        assert str(union.get(field)) == str(expected)
        schema = value.schema.field("doc")
        assert schema is not None
        assert (schema.schema.doc, schema.schema.optional) == ("about it", True)
        suit = value.schema.field("suit")
        assert suit is not None
        assert suit.schema.type is Type.STRING
        assert suit.schema.name == "com.example.Suit"


def test_confluents_own_deserializer_reads_our_avro(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """Confluent's deserializer accepts our framing and our schema."""
    topic = unique_name("orders")
    message = converter_of(AvroConverter).from_connect_data(topic, [], ORDER, full_order())
    found = AvroDeserializer(registry)(message, SerializationContext(topic, MessageField.VALUE))
    order = full_order()
    for name in ("tiny", "text", "raw", "price", "day", "at", "created", "tags", "stock"):
        assert found[name] == order.get(name)


def test_settings_that_contradict_are_refused(converter_of: Make) -> None:
    """use.latest.version is refused together with automatic registration of schemas."""
    with pytest.raises(ConfigException, match=r"use\.latest\.version"):
        converter_of(AvroConverter, use_latest_version="true")


def test_a_json_schema_of_others_is_mapped(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """The converter maps plain types, references, alternatives and lists of types."""
    topic = unique_name("foreign")
    text = """{"type":"object","title":"Foreign","properties":{
        "whole":{"type":"integer"}, "fraction":{"type":"number"},
        "maybe":{"type":["null","string"]},
        "part":{"$ref":"#/definitions/part"},
        "either":{"oneOf":[{"type":"integer"},{"type":"string"}]},
        "colour":{"enum":["red","blue"]},
        "extra":{"type":"object","additionalProperties":{"type":"boolean"}}},
        "definitions":{"part":{"type":"object","properties":{"n":{"type":"integer"}}}}}"""
    schema_id = registry.register_schema(f"{topic}-value", RegistrySchema(text, "JSON"))
    body = (
        b'{"whole":1,"fraction":2.5,"maybe":null,"part":{"n":3},"either":"x","colour":"red",'
        b'"extra":{"a":true}}'
    )
    message = b"\0" + schema_id.to_bytes(4, "big") + body
    schema, value = converter_of(JsonSchemaConverter).to_connect_data(topic, [], message)
    assert isinstance(value, Struct)
    assert schema is not None
    assert schema.name == "Foreign"
    assert str(value) == (
        "Struct{whole=1,fraction=2.5,part=Struct{n=3},"
        "either=Struct{io.confluent.connect.json.OneOf.field.1=x},colour=red,extra={a=true}}"
    )


def test_a_json_message_that_does_not_fit_is_refused_when_asked(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """With json.fail.invalid.schema the error names the field, not the value."""
    topic = unique_name("checked")
    text = '{"type":"object","properties":{"n":{"type":"integer","maximum":5}}}'
    schema_id = registry.register_schema(f"{topic}-value", RegistrySchema(text, "JSON"))
    message = b"\0" + schema_id.to_bytes(4, "big") + b'{"n":77}'
    careful = converter_of(JsonSchemaConverter, json_fail_invalid_schema="true")
    with pytest.raises(DataException, match=r"at n$"):
        careful.to_connect_data(topic, [], message)
    assert converter_of(JsonSchemaConverter).to_connect_data(topic, [], message).value is not None


def test_a_protobuf_schema_of_others_is_mapped(
    converter_of: Make, registry: SchemaRegistryClient, unique_name: Names
) -> None:
    """The converter maps a oneof, an enum, an import, and a message that is not the first one."""
    topic = unique_name("foreign")
    common = 'syntax = "proto3"; package other; message Part { int32 n = 1; }'
    registry.register_schema(f"{topic}-part", RegistrySchema(common, "PROTOBUF"))
    text = """syntax = "proto3"; package p; import "other.proto";
        message First { int32 unused = 1; }
        message Foreign { enum Suit { HEARTS = 0; SPADES = 1; } Suit suit = 1;
            oneof either { string text = 2; uint32 number = 3; }
            other.Part part = 4; repeated double all = 5; }"""
    imports = [SchemaReference("other.proto", f"{topic}-part", 1)]
    schema_id = registry.register_schema(
        f"{topic}-value", RegistrySchema(text, "PROTOBUF", imports)
    )
    # Path [1]; suit = 1; number = 7; part {n = 3}; all = [0.5]
    body = bytes.fromhex("0202" "0801" "1807" "22020803" "2a08000000000000e03f")  # fmt: skip
    message = b"\0" + schema_id.to_bytes(4, "big") + body
    schema, value = converter_of(ProtobufConverter).to_connect_data(topic, [], message)
    assert schema is not None
    assert schema.name == "Foreign"
    assert str(value) == (
        "Struct{suit=SPADES,either_0=Struct{number=7},part=Struct{n=3},all=[0.5]}"
    )


@pytest.mark.parametrize(
    "options", [{}, {"wrapper_for_nullables": "true"}], ids=["plain", "wrappers"]
)
def test_protobuf_keeps_values_even_if_their_schema_changes(
    options: dict[str, str], converter_of: Make, unique_name: Names
) -> None:
    """By default every field is optional when read; wrappers tell nulls from zeros."""
    topic, order = unique_name("orders"), full_order()
    converter = converter_of(ProtobufConverter, **options)
    message = converter.from_connect_data(topic, [], ORDER, order)
    found = converter.to_connect_data(topic, [], message).value
    assert isinstance(found, Struct)
    for name in ("tiny", "text", "raw", "note", "count", "price", "day", "at", "created", "codes"):
        assert found.get(name) == order.get(name)


def test_protobuf_wraps_values_that_are_not_structs(converter_of: Make, unique_name: Names) -> None:
    """Protobuf wraps a scalar in a message and unwraps it again."""
    converter = converter_of(ProtobufConverter, **FAITHFUL[ProtobufConverter])
    topic = unique_name("scalars")
    message = converter.from_connect_data(topic, [], STRING_SCHEMA, "x")
    assert converter.to_connect_data(topic, [], message) == (STRING_SCHEMA, "x")
