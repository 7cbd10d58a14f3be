"""Parts of the converters with a schema registry, tested without a registry and a network."""

import json
import sys
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.converters import registry
from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_agent.builtin.converters.avro.reading import connect_schema, without_logical_types
from pyconnect_agent.builtin.converters.avro.writing import AvroOptions, avro_schema
from pyconnect_agent.builtin.converters.json_writer import JsonOptions
from pyconnect_agent.builtin.converters.protobuf.converter import ProtobufConverter
from pyconnect_agent.builtin.converters.protobuf.writing import ProtobufOptions, proto_text
from pyconnect_agent.builtin.converters.registry import (
    RegistryConverter,
    registry_config_def,
    registry_options,
    subject_strategy,
)
from pyconnect_agent.builtin.converters.registry_json import JsonSchemaConverter, json_schema
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_agent.tasks.trace import format_trace
from pyconnect_api import (
    INT8_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConfigException,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    decimal_schema,
)
from pyconnect_clients.installation import install_command
from tests.support.cases import cases

PLAIN = (
    SchemaBuilder.struct()
    .name("com.example.Order")
    .version(2)
    .field("tiny", INT8_SCHEMA)
    .field("note", OPTIONAL_STRING_SCHEMA)
    .field("state", SchemaBuilder.string().default("new").build())
    .field("price", decimal_schema(2))
    .build()
)


@given(st.integers(0, 2**32 - 1), st.binary())
def test_a_frame_comes_apart_as_it_was_put_together(schema_id: int, body: bytes) -> None:
    """A frame is the magic byte, four bytes of id, and the body."""
    frame = registry.parse(registry.prefix(schema_id) + body, [], is_key=False)
    assert (frame.schema, frame.body) == (schema_id, body)


def test_a_schema_may_be_named_in_a_header() -> None:
    """A header may name a schema by GUID, for key or value; the last header of the name counts."""
    guid = UUID("12345678-1234-5678-1234-567812345678")
    named = b"\x01" + guid.bytes
    headers: list[tuple[str, bytes | None]] = [
        ("__value_schema_id", b"\x00" + bytes(4)),
        ("__value_schema_id", named + b"\x00"),
    ]
    frame = registry.parse(b"body", headers, is_key=False)
    assert frame == registry.Frame(str(guid), b"body", b"\x00")
    with pytest.raises(DataException, match="magic byte"):
        registry.parse(b"body", headers, is_key=True)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.binary())
def test_message_indexes_survive_a_round_trip(indexes: list[int], rest: bytes) -> None:
    """Message indexes are zigzag varints after their count, and are read back equal."""
    assert registry.read_indexes(registry.write_indexes(indexes) + rest) == (tuple(indexes), rest)


def test_the_first_message_has_a_path_of_one_byte() -> None:
    """The first message's path is one byte, as by other serializers; damaged paths are refused."""
    assert registry.write_indexes([0]) == b"\0"
    assert registry.write_indexes([1, 0]) == bytes([4, 2, 0])
    for damaged in (b"", b"\x02", b"\xff", b"\x02\x01"):
        with pytest.raises(DataException):
            registry.read_indexes(damaged)


@cases(
    "name, expected",
    ("TopicNameStrategy", "t-value"),
    ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "com.example.R"),
    ("TopicRecordNameStrategy", "t-com.example.R"),
)
def test_subjects_are_named_by_strategy(name: str, expected: str) -> None:
    """Each strategy names its subject, for records with a package or without one."""
    assert subject_strategy(name)("t", False, "com.example.R") == expected


def test_strategies_and_logins_are_checked() -> None:
    """Record strategies need a record's name, and errors do not show a login."""
    with pytest.raises(DataException, match="key of topic t"):
        subject_strategy("RecordNameStrategy")("t", True, None)
    with pytest.raises(ConfigException, match="Unknown subject name strategy Nope"):
        subject_strategy("Nope")
    with pytest.raises(ConfigException, match="hidden") as refused:
        client_settings(basic_auth_credentials_source="SASL_INHERIT", sasl_jaas_config="hunter2")
    assert "hunter2" not in str(refused.value)


def client_settings(**settings: str) -> Mapping[str, object]:
    given_settings = {name.replace("_", "."): value for name, value in settings.items()}
    always = {"schema.registry.url": "http://r", "converter.type": "value"}
    config = registry_config_def().parse({**always, **given_settings})
    options = registry_options(config, is_key=False)
    assert "hunter2" not in repr(options)
    return options.client


def test_access_is_handed_to_the_client() -> None:
    """The client gets Basic logins of two kinds, bearer tokens, and PEM stores."""
    assert client_settings() == {"url": "http://r", "cache.capacity": 1000}
    basic = client_settings(
        basic_auth_credentials_source="USER_INFO", basic_auth_user_info="u:hunter2"
    )
    assert basic["basic.auth.user.info"] == "u:hunter2"
    login = 'x.PlainLoginModule required username="u" password="hunter2";'
    inherited = client_settings(
        basic_auth_credentials_source="SASL_INHERIT", sasl_jaas_config=login
    )
    assert inherited["basic.auth.user.info"] == "u:hunter2"
    bearer = client_settings(
        bearer_auth_credentials_source="STATIC_TOKEN", bearer_auth_token="hunter2"
    )
    assert bearer["bearer.auth.token"] == "hunter2"
    stores = client_settings(
        schema_registry_ssl_truststore_location="/ca.pem",
        schema_registry_ssl_truststore_type="PEM",
        schema_registry_ssl_key_password="hunter2",
    )
    assert stores["ssl.ca.location"] == "/ca.pem"
    assert stores["ssl.key.password"] == "hunter2"


@cases(
    "settings, text",
    ({"basic_auth_credentials_source": "USER_INFO"}, "basic.auth.user.info' is missing"),
    ({"schema_registry_ssl_truststore_location": "/a.jks"}, "must be a PEM file"),
    ({"use_latest_version": "true"}, "auto.register.schemas"),
    ({"value_subject_name_strategy": "Nope"}, "Unknown subject name strategy"),
)
def test_wrong_access_is_refused(settings: dict[str, str], text: str) -> None:
    """Wrong access is refused before a connection is made."""
    with pytest.raises(ConfigException, match=text):
        client_settings(**settings)


def test_the_avro_schema_is_what_confluents_converter_writes() -> None:
    """Properties, the order of a union's branches, and defaults are Confluent's."""
    assert avro_schema(PLAIN, AvroOptions()) == {
        "type": "record",
        "name": "Order",
        "namespace": "com.example",
        "fields": [
            {"name": "tiny", "type": {"type": "int", "connect.type": "int8"}},
            {"name": "note", "type": ["null", "string"], "default": None},
            {
                "name": "state",
                "type": {"type": "string", "connect.default": "new"},
                "default": "new",
            },
            {
                "name": "price",
                "type": {
                    "type": "bytes",
                    "scale": 2,
                    "precision": 64,
                    "logicalType": "decimal",
                    "connect.name": "org.apache.kafka.connect.data.Decimal",
                    "connect.version": 1,
                    "connect.parameters": {"scale": "2"},
                },
            },
        ],
        "connect.version": 2,
        "connect.name": "com.example.Order",
    }


def one_field(name: str, schema: Schema = INT64_SCHEMA) -> Schema:
    return SchemaBuilder.struct().field(name, schema).build()


def test_avro_lacks_some_names_and_endless_records() -> None:
    """Names are refused or changed as scrub.invalid.names says; recursive schemas are refused."""
    with pytest.raises(DataException, match="scrub"):
        avro_schema(one_field("a-b"), AvroOptions())
    changed = avro_schema(one_field("1-b"), AvroOptions(scrub_invalid_names=True))
    assert isinstance(changed, dict)
    assert changed["fields"][0]["name"] == "x1_b"
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"], "default": None}],
    }
    with pytest.raises(DataException, match="Node contains itself"):
        connect_schema(without_logical_types(node), {"Node": node}, AvroOptions())


def test_unnamed_structs_are_numbered_and_named_ones_defined_once() -> None:
    """Unnamed structs are numbered, and two structs with one name must be the same."""
    inner = one_field("n")
    outer = avro_schema(one_field("in", inner), AvroOptions())
    assert "ConnectDefault2" in json.dumps(outer)
    part = SchemaBuilder.struct().name("P").field("n", INT64_SCHEMA).build()
    other = SchemaBuilder.struct().name("P").field("m", INT64_SCHEMA).build()
    twice = SchemaBuilder.struct().field("a", part).field("b", part).build()
    found = avro_schema(twice, AvroOptions())
    assert isinstance(found, dict)
    assert found["fields"][1]["type"] == "P"
    contradicting = SchemaBuilder.struct().field("a", part).field("b", other).build()
    with pytest.raises(DataException, match="Two different structs are named P"):
        avro_schema(contradicting, AvroOptions())


def test_the_json_schema_is_what_confluents_converter_writes() -> None:
    """Fields are ordered by connect.index, optional ones are oneOf, and hints give exact types."""
    document = json_schema(PLAIN, JsonOptions(), additional_properties=False, list_required=True)
    assert document == {
        "type": "object",
        "title": "com.example.Order",
        "connect.version": 2,
        "required": ["tiny", "price"],
        "additionalProperties": False,
        "properties": {
            "tiny": {"type": "integer", "connect.type": "int8", "connect.index": 0},
            "note": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
            "state": {"type": "string", "default": "new", "connect.index": 2},
            "price": {
                "type": "number",
                "title": "org.apache.kafka.connect.data.Decimal",
                "connect.type": "bytes",
                "connect.version": 1,
                "connect.parameters": {"scale": "2"},
                "connect.index": 3,
            },
        },
    }


def test_the_proto_file_is_what_protoc_and_confluents_registry_read() -> None:
    """The package is that of the name, and options hold exact types and scales."""
    name, text = proto_text(PLAIN, ProtobufOptions(optional_for_nullables=True))
    assert name == "com.example.Order"
    assert text == (
        'syntax = "proto3";\n'
        "package com.example;\n"
        'import "confluent/meta.proto";\n'
        'import "confluent/type/decimal.proto";\n'
        "message Order {\n"
        '  int32 tiny = 1 [(confluent.field_meta) = {params: [{key: "connect.type", '
        'value: "int8"}]}];\n'
        "  optional string note = 2;\n"
        "  string state = 3;\n"
        "  confluent.type.Decimal price = 4 [(confluent.field_meta) = {params: "
        '[{key: "precision", value: "64"}, {key: "scale", value: "2"}]}];\n'
        "}\n"
    )


@cases(
    "schema",
    one_field("a-b"),
    one_field("lists", SchemaBuilder.array(SchemaBuilder.array(STRING_SCHEMA)).build()),
    one_field("maps", SchemaBuilder.map(STRING_SCHEMA, SchemaBuilder.array(INT8_SCHEMA)).build()),
    ids=["name", "lists of lists", "maps of lists"],
)
def test_types_that_protobuf_lacks_are_refused(schema: Schema) -> None:
    """A type that Protobuf lacks is refused instead of written as another type."""
    with pytest.raises(DataException, match="Protobuf"):
        proto_text(schema, ProtobufOptions())


SECRET = "hunter2"


class OnlyLatest:
    """A registry with one schema, which is every subject's latest."""

    def __init__(self, text: str, kind: str) -> None:
        self._schema = RegistrySchema(7, text, kind)

    def latest(self, subject: str) -> RegistrySchema:
        return self._schema


@cases(
    "converter, latest",
    (
        AvroConverter(),
        OnlyLatest(
            '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"]}]}', "AVRO"
        ),
    ),
    (ProtobufConverter(), OnlyLatest('syntax = "proto3"; message R { int32 a = 1; }', "PROTOBUF")),
    ids=["avro", "protobuf"],
)
def test_a_value_that_does_not_fit_the_latest_schema_is_not_quoted(
    converter: RegistryConverter, latest: OnlyLatest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither our error nor the library's below it quotes the value."""
    monkeypatch.setattr(registry, "RegistryClient", lambda _: latest)
    settings = {"auto.register.schemas": "false", "use.latest.version": "true"}
    converter.configure({"schema.registry.url": "http://r", **settings}, False)
    schema = SchemaBuilder.struct().name("R").field("a", STRING_SCHEMA).build()
    value = Struct(schema).put("a", SECRET)
    with pytest.raises(DataException) as raised:
        converter.from_connect_data("t", [], schema, value)
    assert SECRET not in format_trace(raised.value)


@cases(
    "converter, extra, missing",
    (AvroConverter, "avro", "fastavro"),
    (JsonSchemaConverter, "json-schema", "jsonschema"),
    (ProtobufConverter, "protobuf", "grpc_tools.protoc"),
    (ProtobufConverter, "protobuf", "confluent_kafka.schema_registry"),
)
def test_a_missing_library_is_reported_with_the_extra_of_the_converter(
    converter: type[RegistryConverter], extra: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validation refuses the connector at its creation, with the extra that the library needs."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigException) as refused:
        converter().config()
    assert str(refused.value) == (
        f"{converter.__name__} needs {missing}, which is not installed; "
        f"install the extra `{extra}`: {install_command(extra)}"
    )
