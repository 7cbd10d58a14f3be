"""Rules of single transformations; their results are compared with Apache's elsewhere."""

from functools import partial

import pytest

from pyconnect_agent.builtin.transforms.schemas import SchemaCache
from pyconnect_agent.core.plugin_catalog import RELEASE_4_4
from pyconnect_api import (
    INT8_SCHEMA,
    INT32_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    ConfigException,
    DataException,
    Header,
    Schema,
    SchemaBuilder,
    Struct,
)
from tests.agent.builtin.transforms.transformations import (
    PAIR,
    WITH_DEFAULT,
    applied,
    pair,
    sink_record,
    source_record,
    transformation,
)
from tests.support.cases import cases


@cases(
    "name, options",
    ("Flatten$Value", {}),
    ("InsertField$Value", {"topic_field": "t"}),
    ("ReplaceField$Value", {"exclude": "a"}),
    ("Cast$Value", {"spec": "a:int8"}),
)
@cases("schema", None, PAIR)
def test_tombstones_pass_through(name: str, options: dict[str, str], schema: Schema | None) -> None:
    """With a schema or without."""
    record = source_record(None, schema)
    assert transformation(name, **options).apply(record) is record


@cases(
    "name, options, purpose",
    ("MaskField$Value", {"fields": "a"}, "mask fields"),
    ("ValueToKey", {"fields": "a"}, "copying fields from value to key"),
    ("HeaderFrom$Key", {"fields": "a", "headers": "h", "operation": "move"}, "header move"),
    ("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "copy"}, "header copy"),
)
def test_some_refuse_tombstones(name: str, options: dict[str, str], purpose: str) -> None:
    """The messages are Kafka's."""
    made = transformation(name, **options)
    with pytest.raises(DataException, match=r"^Only Map objects supported in absence of schema"):
        made.apply(source_record(None))
    with pytest.raises(DataException) as caught:
        made.apply(source_record(None, PAIR))
    assert str(caught.value) == f"Only Struct objects supported for [{purpose}], found: null"


@cases(
    "name, options",
    ("ReplaceField$Value", {"exclude": "x"}),
    ("InsertField$Value", {"static_field": "x", "static_value": "y"}),
    ("SetSchemaMetadata$Value", {"schema_version": "3"}),
    ("MaskField$Value", {"fields": "b"}),
    ("TimestampConverter$Value", {"field": "x", "target_type": "unix"}),
    ("Cast$Value", {"spec": "b:int64"}),
    ("HeaderFrom$Value", {"fields": "b", "headers": "h", "operation": "move"}),
)
def test_a_default_replaces_none_unless_switched_off(name: str, options: dict[str, str]) -> None:
    """`replace.null.with.default`; a required field without a value is refused either way."""
    record = source_record(pair(None, 1), PAIR)
    replaced = applied(transformation(name, **options), record).value
    kept = applied(transformation(name, replace_null_with_default="false", **options), record).value
    assert isinstance(replaced, Struct)
    assert isinstance(kept, Struct)
    assert replaced.get_without_default("a") == "default"
    assert kept.get_without_default("a") is None


@cases(
    "name, options",
    ("ReplaceField$Value", {"renames": "b:c"}),
    ("InsertField$Value", {"static_field": "x", "static_value": "y"}),
    ("SetSchemaMetadata$Value", {"schema_name": "n"}),
    ("ValueToKey", {"fields": "b"}),
    ("Flatten$Value", {}),
)
def test_a_required_field_without_a_value_is_refused(name: str, options: dict[str, str]) -> None:
    """In the words a struct uses."""
    with pytest.raises(DataException, match=r'null used for required field: "[bc]", schema type'):
        transformation(name, **options).apply(source_record(pair("x", None), PAIR))


def test_filter_and_drop_headers_drop_all() -> None:
    """Predicates decide which records; a record without headers passes unchanged."""
    assert transformation("Filter").apply(source_record(1)) is None
    headers = [Header("a", None, 1), Header("b", None, 2), Header("a", None, 3)]
    made = transformation("DropHeaders", headers="a,c")
    record = applied(made, source_record(1, headers=headers))
    assert list(record.headers) == [Header("b", None, 2)]
    plain = source_record(1)
    assert made.apply(plain) is plain


def test_insert_header_guesses_the_schema() -> None:
    """The record keeps the headers it has, even of the same key."""
    made = transformation("InsertHeader", header="h", value_literal="42")
    given = source_record(1, headers=[Header("h", None, "x")])
    record = applied(made, given)
    assert list(record.headers) == [Header("h", None, "x"), Header("h", INT8_SCHEMA, 42)]
    assert len(given.headers) == 1


def test_extract_field_knows_unknown_fields() -> None:
    """With a schema they are refused, even for None; without one they are None."""
    made = transformation("ExtractField$Value", field="x")
    assert applied(made, source_record({"y": 1})).value is None
    with pytest.raises(DataException, match=r"^Unknown field: x$"):
        made.apply(source_record(None, PAIR))
    of_a = transformation("ExtractField$Value", field="a")
    assert applied(of_a, source_record(None, PAIR)).value_schema == WITH_DEFAULT
    assert applied(of_a, source_record(pair(None, 1), PAIR)).value == "default"


def test_header_from_moves_or_copies() -> None:
    """The headers have the fields' schemas; a missing field of a map becomes None."""
    options = {"fields": "a,x", "headers": "h,g"}
    move = transformation("HeaderFrom$Value", operation="move", **options)
    record = applied(move, source_record({"a": 1, "b": 2}))
    assert record.value == {"b": 2}
    assert list(record.headers) == [Header("h", None, 1), Header("g", None, None)]
    copy = transformation("HeaderFrom$Value", operation="copy", fields="a", headers="h")
    kept = applied(copy, source_record(pair("x", 1), PAIR))
    assert kept.value == pair("x", 1)
    assert list(kept.headers) == [Header("h", WITH_DEFAULT, "x")]
    with pytest.raises(DataException, match=r"^Field does not exist: x$"):
        move.apply(source_record(pair("x", 1), PAIR))
    with pytest.raises(ConfigException, match="must have the same number of elements"):
        transformation("HeaderFrom$Value", fields="a,b", headers="h", operation="copy")


def test_hoist_field_wraps_none_too() -> None:
    """Unless the schema requires a value."""
    made = transformation("HoistField$Value", field="f")
    assert applied(made, source_record(None)).value == {"f": None}
    wrapped = applied(made, source_record(None, OPTIONAL_INT32_SCHEMA)).value
    assert isinstance(wrapped, Struct)
    assert wrapped.get("f") is None
    with pytest.raises(DataException, match='null used for required field: "f"'):
        made.apply(source_record(None, INT32_SCHEMA))


def test_regex_router_replaces_the_first_match_of_a_search() -> None:
    """Only topics that match as a whole; the search may find less."""
    shorter = transformation("RegexRouter", regex="a|ab", replacement="x")
    assert applied(shorter, source_record(1, topic="ab")).topic == "xb"
    untouched = source_record(1, topic="abc")
    assert shorter.apply(untouched) is untouched
    groups = transformation("RegexRouter", regex="(.*)-(?<n>\\d+)", replacement="${n}.$1")
    for _ in range(2):
        assert applied(groups, source_record(1, topic="orders-12")).topic == "12.orders"
    with pytest.raises(ConfigException, match="No group 1"):
        transformation("RegexRouter", regex="a", replacement="$1")
    with pytest.raises(ConfigException, match="Invalid regex: "):
        transformation("RegexRouter", regex="(", replacement="x")


def test_set_schema_metadata_needs_a_schema() -> None:
    """Tombstones without one pass; other types than structs are renamed as well."""
    made = transformation("SetSchemaMetadata$Value", schema_name="n", schema_version="2")
    tombstone = source_record(None)
    assert made.apply(tombstone) is tombstone
    with pytest.raises(DataException, match=r"^Schema required for \[updating schema metadata\]$"):
        made.apply(source_record(1))
    record = applied(made, source_record(1, INT32_SCHEMA))
    assert record.value_schema == SchemaBuilder.int32().name("n").version(2).build()
    renamed = applied(made, source_record(pair("x", 1), PAIR))
    assert isinstance(renamed.value, Struct)
    assert renamed.value.schema is renamed.value_schema
    assert (renamed.value.schema.name, renamed.value.schema.version) == ("n", 2)


def test_timestamp_router_needs_a_timestamp() -> None:
    """The message tells where the record is, and nothing of its data."""
    made = transformation("TimestampRouter", topic_format="${topic}/${timestamp}/${topic}")
    moment = source_record(1, timestamp=1_700_000_000_000)
    assert applied(made, moment).topic == "topic/20231114/topic"
    with pytest.raises(DataException) as caught:
        made.apply(sink_record("secret"))
    assert str(caught.value) == (
        "Timestamp missing on record: SinkRecord{topic='topic', kafkaPartition=3, kafkaOffset=42}"
    )


def test_value_to_key_takes_fields_in_the_order_of_the_option() -> None:
    """The key's schema has no name; a field that a struct lacks is refused."""
    made = transformation("ValueToKey", fields="b,a")
    assert applied(made, source_record({"a": 1})).key == {"b": None, "a": 1}
    record = applied(made, source_record(pair("x", 1), PAIR))
    expected = SchemaBuilder.struct().field("b", INT32_SCHEMA).field("a", WITH_DEFAULT).build()
    assert record.key_schema == expected
    with pytest.raises(DataException, match=r"^Field does not exist: z$"):
        transformation("ValueToKey", fields="z").apply(source_record(pair("x", 1), PAIR))


def test_value_to_key_takes_paths_in_kafka_4_4() -> None:
    """The key's field has the whole path as its name; 4.3 takes it for a name."""
    outer = SchemaBuilder.struct().field("p", PAIR).build()
    record = source_record(Struct(outer).put("p", pair(None, 1)), outer)
    nested = partial(transformation, "ValueToKey", RELEASE_4_4, field_syntax_version="V2")
    found = applied(nested(fields="p.b,p.a"), record)
    assert found.key_schema is not None
    expected = [("p.b", INT32_SCHEMA), ("p.a", WITH_DEFAULT)]
    assert [(f.name, f.schema) for f in found.key_schema.fields] == expected
    assert isinstance(found.key, Struct)
    assert (found.key.get("p.b"), found.key.get("p.a")) == (1, "default")
    without = applied(nested(fields="p.a", replace_null_with_default="false"), record).key
    assert isinstance(without, Struct)
    assert without.get_without_default("p.a") is None
    assert applied(nested(fields="p.b"), source_record({"p": {"b": 2}})).key == {"p.b": 2}
    for old in (
        transformation("ValueToKey", RELEASE_4_4, fields="p.b"),
        transformation("ValueToKey", fields="p.b"),
    ):
        with pytest.raises(DataException, match=r"^Field does not exist: p\.b$"):
            old.apply(record)


def test_facts_of_a_schema_are_computed_once() -> None:
    """For equal schemas too; the least recently used of more than 16 is forgotten."""
    asked: list[Schema] = []

    def work_out(schema: Schema) -> str:
        asked.append(schema)
        return str(schema)

    cache = SchemaCache(work_out)
    schemas = [SchemaBuilder.int8().name(f"s{number}").build() for number in range(17)]
    assert cache.of(schemas[0]) == cache.of(SchemaBuilder.int8().name("s0").build())
    assert len(asked) == 1
    for schema in schemas:
        cache.of(schema)
    assert len(asked) == 17
    cache.of(schemas[0])
    assert len(asked) == 18
