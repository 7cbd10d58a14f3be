"""Rules of single transformations; test_apache_corpus compares their results with Apache's."""

import logging
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import pytest

from pyconnect_agent.builtin.transforms.routers import JavaReplacement
from pyconnect_agent.builtin.transforms.schemas import SchemaCache
from pyconnect_agent.core.plugin_catalog import RELEASE_4_4
from pyconnect_api import (
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIMESTAMP_SCHEMA,
    ConfigException,
    DataException,
    Header,
    Schema,
    SchemaBuilder,
    SchemaBuilderException,
    Struct,
    decimal_schema,
)
from tests.agent.builtin.transforms.transformations import (
    PAIR,
    WITH_DEFAULT,
    applied,
    pair,
    sink_record,
    source_record,
    struct_of,
    transformation,
)
from tests.support.cases import cases


@cases(
    "name, options",
    ("Flatten$Value", {}), ("InsertField$Value", {"topic_field": "t"}),
    ("ReplaceField$Value", {"exclude": "a"}), ("Cast$Value", {"spec": "a:int8"}),
)  # fmt: skip
@cases("schema", None, PAIR)
def test_tombstones_pass_through(name: str, options: dict[str, str], schema: Schema | None) -> None:
    """Tombstones pass unchanged, with a schema or without one."""
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
    """Some transformations refuse tombstones with Kafka's texts."""
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
    """`replace.null.with.default` decides; a required field without a value is always refused."""
    record = source_record(pair(None, 1), PAIR)
    replaced = applied(transformation(name, **options), record).value
    kept = struct_of(
        applied(transformation(name, replace_null_with_default="false", **options), record)
    )
    assert isinstance(replaced, Struct)
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
    """A required field without a value is refused with a struct's own text."""
    with pytest.raises(DataException, match=r'null used for required field: "[bc]", schema type'):
        transformation(name, **options).apply(source_record(pair("x", None), PAIR))


def test_filter_and_drop_headers_drop_all() -> None:
    """Filter drops all records; DropHeaders drops all headers of a key, or passes the record."""
    assert transformation("Filter").apply(source_record(1)) is None
    headers = [Header("a", None, 1), Header("b", None, 2), Header("a", None, 3)]
    made = transformation("DropHeaders", headers="a,c")
    record = applied(made, source_record(1, headers=headers))
    assert list(record.headers) == [Header("b", None, 2)]
    plain = source_record(1)
    assert made.apply(plain) is plain


def test_insert_header_guesses_the_schema() -> None:
    """The record keeps its headers, also one of the same key."""
    made = transformation("InsertHeader", header="h", value_literal="42")
    given = source_record(1, headers=[Header("h", None, "x")])
    record = applied(made, given)
    assert list(record.headers) == [Header("h", None, "x"), Header("h", INT8_SCHEMA, 42)]
    assert len(given.headers) == 1


def test_extract_field_knows_unknown_fields() -> None:
    """An unknown field is refused with a schema, even for None, and None without one."""
    made = transformation("ExtractField$Value", field="x")
    assert applied(made, source_record({"y": 1})).value is None
    with pytest.raises(DataException, match=r"^Unknown field: x$"):
        made.apply(source_record(None, PAIR))
    of_a = transformation("ExtractField$Value", field="a")
    assert applied(of_a, source_record(None, PAIR)).value_schema == WITH_DEFAULT
    assert applied(of_a, source_record(pair(None, 1), PAIR)).value == "default"


def test_header_from_moves_or_copies() -> None:
    """The headers have the fields' schemas, and a missing field of a map becomes None."""
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
    """None is wrapped too, unless the schema requires a value."""
    made = transformation("HoistField$Value", field="f")
    assert applied(made, source_record(None)).value == {"f": None}
    wrapped = struct_of(applied(made, source_record(None, OPTIONAL_INT32_SCHEMA)))
    assert wrapped.get("f") is None
    with pytest.raises(DataException, match='null used for required field: "f"'):
        made.apply(source_record(None, INT32_SCHEMA))


def test_regex_router_replaces_the_first_match_of_a_search() -> None:
    """The expression has to match the whole topic, but a search finds what is replaced."""
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
    """Tombstones without a schema pass, and schemas of other types than struct are renamed too."""
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
    """The error names the record's place, and none of its data."""
    made = transformation("TimestampRouter", topic_format="${topic}/${timestamp}/${topic}")
    moment = source_record(1, timestamp=1_700_000_000_000)
    assert applied(made, moment).topic == "topic/20231114/topic"
    with pytest.raises(DataException) as caught:
        made.apply(sink_record("secret"))
    assert str(caught.value) == (
        "Timestamp missing on record: SinkRecord{topic='topic', kafkaPartition=3, kafkaOffset=42}"
    )


def test_value_to_key_takes_fields_in_the_order_of_the_option() -> None:
    """The key's schema has no name, and a field that a struct lacks is refused."""
    made = transformation("ValueToKey", fields="b,a")
    assert applied(made, source_record({"a": 1})).key == {"b": None, "a": 1}
    record = applied(made, source_record(pair("x", 1), PAIR))
    expected = SchemaBuilder.struct().field("b", INT32_SCHEMA).field("a", WITH_DEFAULT).build()
    assert record.key_schema == expected
    with pytest.raises(DataException, match=r"^Field does not exist: z$"):
        transformation("ValueToKey", fields="z").apply(source_record(pair("x", 1), PAIR))


def test_value_to_key_takes_paths_in_kafka_4_4() -> None:
    """In 4.4 the key's field has the whole path as its name; 4.3 takes the path for a name."""
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
    """Equal schemas share their facts, and the least recently used of more than 16 is forgotten."""
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


def test_flatten_makes_fields_of_an_optional_struct_optional() -> None:
    """A missing struct leaves its fields without values; defaults are those of the inner fields."""
    inner = SchemaBuilder.struct().optional().field("a", WITH_DEFAULT).field("b", INT32_SCHEMA)
    outer = SchemaBuilder.struct().name("n").field("in", inner).field("c", INT32_SCHEMA).build()
    made = transformation("Flatten$Value", delimiter="_")
    record = applied(made, source_record(Struct(outer).put("c", 1), outer))
    assert record.value_schema == (
        SchemaBuilder.struct()
        .name("n")
        .field("in_a", WITH_DEFAULT)
        .field("in_b", OPTIONAL_INT32_SCHEMA)
        .field("c", INT32_SCHEMA)
        .build()
    )
    assert struct_of(record).stored_values() == [None, None, 1]


def test_flatten_joins_names_of_maps() -> None:
    """Empty maps vanish, lists stay, and the last of equal names stays."""
    made = transformation("Flatten$Value")
    value = {"a": {"b": 1, "c": {}, "d": [{"e": 2}]}, "a.b": 3, "n": None}
    assert applied(made, source_record(value)).value == {"a.b": 3, "a.d": [{"e": 2}], "n": None}
    with pytest.raises(DataException, match="not supported by Connect's data API"):
        made.apply(source_record({"a": Decimal(1)}))
    with pytest.raises(DataException, match="does not support class Struct"):
        made.apply(source_record({"a": pair("x", 1)}))
    with pytest.raises(DataException, match="does not support keys of class int"):
        made.apply(source_record({1: 1}))
    maps = SchemaBuilder.map(STRING_SCHEMA, INT32_SCHEMA).build()
    schema = SchemaBuilder.struct().field("m", maps).build()
    with pytest.raises(DataException, match=r"does not support MAP .* \(for field m\)"):
        made.apply(source_record(Struct(schema).put("m", {}), schema))


def test_insert_field_adds_what_is_known_in_order() -> None:
    """An exclamation mark makes a field required; a question mark or nothing makes it optional."""
    options = {
        "topic_field": "t!",
        "partition_field": "p?",
        "offset_field": "o",
        "timestamp_field": "w!",
        "static_field": "s",
        "static_value": "v",
    }
    made = transformation("InsertField$Value", **options)
    plain = applied(made, sink_record({"t": 0}, timestamp=5))
    assert plain.value == {"t": "topic", "p": 3, "o": 42, "w": 5, "s": "v"}
    record = applied(made, sink_record(pair("x", 1), PAIR, timestamp=5))
    assert isinstance(record.value, Struct)
    moment = datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    assert record.value.stored_values() == ["x", 1, "topic", 3, 42, moment, "v"]
    assert [(field.name, field.schema) for field in record.value.schema.fields[2:]] == [
        ("t", STRING_SCHEMA),
        ("p", OPTIONAL_INT32_SCHEMA),
        ("o", OPTIONAL_INT64_SCHEMA),
        ("w", TIMESTAMP_SCHEMA),
        ("s", OPTIONAL_STRING_SCHEMA),
    ]


def test_insert_field_leaves_out_what_is_not_known_and_takes_no_field() -> None:
    """A required field without a value fails in the struct's check; a map's field is replaced."""
    options = {"partition_field": "p!", "timestamp_field": "w!"}
    made = transformation("InsertField$Value", **options)
    assert applied(made, source_record({})).value == {}
    struct = struct_of(applied(made, source_record(pair("x", 1), PAIR)))
    with pytest.raises(DataException, match='null used for required field: "p"'):
        struct.validate()
    with pytest.raises(DataException, match=r"^Only SinkRecord supported for .field insertion."):
        transformation("InsertField$Value", offset_field="o").apply(source_record({}))
    made = transformation("InsertField$Value", topic_field="a")
    assert applied(made, source_record({"a": 1})).value == {"a": "topic"}
    with pytest.raises(SchemaBuilderException, match="field name duplication a"):
        made.apply(source_record(pair("x", 1), PAIR))


def test_masks_do_not_share_containers() -> None:
    """Changing the mask in one record must not change the mask of the next one."""
    made = transformation("MaskField$Value", fields="a")
    first, second = (applied(made, source_record({"a": [1]})).value for _ in range(2))
    assert first == second == {"a": []}
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["a"] is not second["a"]


def test_masks_are_of_the_fields_type_and_scale() -> None:
    """A replacement is converted once; Kafka's zero has scale 0 and cannot be written."""
    made = transformation("MaskField$Value", fields="a,b,c", replacement="300")
    record = applied(made, source_record({"a": 1, "b": 1.5, "c": "x"}))
    assert record.value == {"a": 300, "b": 300.0, "c": "300"}
    schema = SchemaBuilder.struct().field("a", INT8_SCHEMA).field("b", INT64_SCHEMA).build()
    struct = struct_of(applied(made, source_record(Struct.of_checked(schema, [1, 1]), schema)))
    assert struct.stored_values() == [44, 300]
    for value in (True, b"x", [1], datetime(2024, 1, 1, tzinfo=UTC)):
        with pytest.raises(DataException, match=r"Cannot mask value of type class"):
            made.apply(source_record({"a": value}))
    schema = SchemaBuilder.struct().field("d", decimal_schema(2)).build()
    record = source_record(Struct(schema).put("d", Decimal("1.25")), schema)
    for options, expected in (({}, "0.00"), ({"replacement": "7"}, "7.00")):
        masked = applied(transformation("MaskField$Value", fields="d", **options), record).value
        assert isinstance(masked, Struct)
        assert str(masked.get("d")) == expected
    too_fine = transformation("MaskField$Value", fields="d", replacement="0.125")
    with pytest.raises(DataException, match="to a Decimal of scale 2"):
        too_fine.apply(record)


def test_replace_field_excludes_before_it_includes_and_renames() -> None:
    """Fields are excluded, included and renamed in this order, and stay in their order."""
    options = {"include": "a,b,d", "exclude": "b", "renames": "a:x,d:y"}
    made = transformation("ReplaceField$Value", **options)
    assert applied(made, source_record({"d": 1, "c": 2, "b": 3, "a": 4})).value == {"y": 1, "x": 4}
    renamed = applied(
        transformation("ReplaceField$Value", renames="b:x"), source_record(pair("v", 1), PAIR)
    )
    assert renamed.value_schema is not None
    assert [field.name for field in renamed.value_schema.fields] == ["a", "x"]


def test_replace_field_knows_kafkas_names_only(caplog: pytest.LogCaptureFixture) -> None:
    """A rename of a missing field leaves its namesake; removed options are reported."""
    made = transformation("ReplaceField$Value", renames="z:a")
    assert applied(made, source_record(pair("v", 1), PAIR)).value == pair("v", 1)
    with caplog.at_level(logging.WARNING):
        made = transformation("ReplaceField$Value", blacklist="a")
    assert applied(made, source_record({"a": 1})).value == {"a": 1}
    assert "'blacklist'" in caplog.text
    assert "'exclude'" in caplog.text


@cases("mapping", "a", "a:b:c", "a:", "")
def test_a_rename_has_two_names(mapping: str) -> None:
    """A rename without two names is refused with Kafka's text."""
    with pytest.raises(ConfigException, match=f"Invalid rename mapping: {mapping}$"):
        transformation("ReplaceField$Value", renames=f"x:y,{mapping}")


REGEX = re.compile(r"(?P<first>\w)(\d)?")


@cases(
    "replacement, expected",
    ("$0", "-a1-b"), ("$1", "-a-b"), ("$2$1", "-1a-b"), ("${first}!", "-a!-b"), ("$12", "-a2-b"),
    (r"\$1\\", "-$1\\-b"), ("", "--b"),
)  # fmt: skip
def test_groups_replace_the_first_match(replacement: str, expected: str) -> None:
    """The text around the match stays."""
    match = REGEX.search("-a1-b")
    assert match is not None
    assert JavaReplacement(replacement, REGEX).replace_first(match) == expected


def test_a_group_without_part_in_the_match_is_empty() -> None:
    """A group without a part in the match is empty, not the text None."""
    match = REGEX.search("a")
    assert match is not None
    assert JavaReplacement("$1[$2]", REGEX).replace_first(match) == "a[]"


@cases(
    "replacement, message",
    ("$3", "No group 3"), ("${x}", "No group with name {x}"),
    ("$", "Illegal group reference: group index is missing"), ("$a", "Illegal group reference"),
    ("\\", "character to be escaped is missing"),
)  # fmt: skip
def test_missing_groups_are_refused_in_javas_words(replacement: str, message: str) -> None:
    """A missing group is refused before the first record, with Java's text."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        JavaReplacement(replacement, REGEX)
