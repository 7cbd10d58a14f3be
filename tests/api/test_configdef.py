"""Parsing, validation and description of configuration keys, with Kafka's texts."""

from collections.abc import Mapping, Sequence

import pytest

from pyconnect_api import (
    ConfigDef,
    ConfigException,
    ConfigType,
    Importance,
    Range,
    ValidList,
    Width,
)
from pyconnect_api.configdef import define_table


def _definition() -> ConfigDef:
    return (
        ConfigDef()
        .define("required", ConfigType.STRING, importance=Importance.HIGH)
        .define("count", ConfigType.INT, default="3", validator=Range.at_least(1))
        .define("names", ConfigType.LIST, default=[], validator=ValidList())
    )


def test_parse_fills_in_defaults_and_needs_required_keys() -> None:
    """A parsed config has no unknown keys; the error for a missing key names it."""
    parsed = _definition().parse({"required": "x", "other": "y"})
    assert parsed == {"required": "x", "count": 3, "names": []}
    with pytest.raises(ConfigException) as refused:
        _definition().parse({})
    expected = 'Missing required configuration "required" which has no default value.'
    assert str(refused.value) == expected


def test_lists_are_copied_and_lose_repeated_entries() -> None:
    """Repeated entries of a list are reported (KIP-1161); changing a result changes no default."""
    props = {"required": "x", "names": "a,b,a"}
    assert _definition().parse(props)["names"] == ["a", "b"]
    reported = _definition().validate_all(props)["names"]
    assert reported.error_messages == ["Configuration 'names' values must not be duplicated."]
    definition = _definition()
    first = definition.parse({"required": "x"})["names"]
    assert isinstance(first, list)
    first.append("changed")
    assert definition.parse({"required": "x"})["names"] == []


def test_validation_reports_all_errors_of_all_keys() -> None:
    """Results have the order of definition; a text that cannot be parsed also counts as null."""
    result = _definition().validate_all({"required": "x", "count": "many"})["count"]
    assert result.value is None
    assert result.error_messages == [
        "Invalid value many for configuration count: Not a number of type INT",
        "Invalid value null for configuration count: Value must be non-null",
    ]
    results = _definition().validate({})
    assert [result.name for result in results] == ["required", "count", "names"]
    expected = ['Missing required configuration "required" which has no default value.']
    assert results[0].error_messages == expected


class _DatabaseRecommender:
    """Recommends the tables of the chosen database; without a database the key is invisible."""

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        if parsed["database"] == "broken":
            raise ConfigException("cannot list tables")
        return ["t1", "t2"] if parsed["database"] else []

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        return bool(parsed["database"])


def _with_dependents() -> ConfigDef:
    return (
        ConfigDef()
        .define("database", ConfigType.STRING, default="", dependents=["table"])
        .define("table", ConfigType.STRING, default="", recommender=_DatabaseRecommender())
    )


def test_recommenders_see_parsed_parents_and_may_fail() -> None:
    """Errors of a recommender become messages and do not end the validation."""
    results = _with_dependents().validate_all({"database": "d"})
    assert results["table"].recommended_values == ["t1", "t2"]
    assert results["table"].visible
    assert not _with_dependents().validate_all({})["table"].visible
    results = _with_dependents().validate_all({"database": "broken"})
    assert results["table"].error_messages == ["cannot list tables"]


def test_undefined_dependents_are_reported() -> None:
    """Validation returns an undefined dependent as an invisible key with an error."""
    definition = ConfigDef().define("a", ConfigType.STRING, default="", dependents=["b"])
    result = definition.validate_all({})["b"]
    assert result.error_messages == ["b is referred in the dependents, but not defined."]
    assert not result.visible
    with pytest.raises(ConfigException, match="not defined: b"):
        definition.parse({})


def test_a_key_is_defined_once_with_a_valid_default() -> None:
    """Defining a key twice, or with a default that is not valid, raises an error."""
    with pytest.raises(ConfigException, match="Configuration count is defined twice"):
        _definition().define("count", ConfigType.INT)
    with pytest.raises(ConfigException, match="Value must be at least 1"):
        ConfigDef().define("n", ConfigType.INT, default=0, validator=Range.at_least(1))


def test_embedded_keys_are_validated_under_their_own_names() -> None:
    """Errors have the key without its prefix; the group has the name that `embed` was given."""
    child = ConfigDef().define(
        "field", ConfigType.INT, default=1, validator=Range.at_least(1), group="Inner"
    )
    parent = ConfigDef()
    parent.embed("transforms.a.", "Transforms: a", 2, child)
    assert parent.groups == ("Transforms: a: Inner",)
    assert parent.keys["transforms.a.field"].order_in_group == 2
    result = parent.validate_all({"transforms.a.field": "0"})["transforms.a.field"]
    expected = ["Invalid value 0 for configuration field: Value must be at least 1"]
    assert result.error_messages == expected


def test_embedded_recommenders_see_unprefixed_names() -> None:
    """The recommender of an embedded key works without change."""
    parent = ConfigDef()
    parent.embed("p.", "P", 0, _with_dependents())
    results = parent.validate_all({"p.database": "d"})
    assert results["p.table"].recommended_values == ["t1", "t2"]


def test_sorted_keys_go_by_group_order_requirement_importance_and_name() -> None:
    """Keys are sorted by this order before `embed` numbers them."""
    definition = (
        ConfigDef()
        .define("z", ConfigType.STRING, default="", group="G", order_in_group=1)
        .define("b", ConfigType.STRING, default="", importance=Importance.LOW)
        .define("a", ConfigType.STRING, default="", importance=Importance.LOW)
        .define("high", ConfigType.STRING, default="", importance=Importance.HIGH)
        .define("required", ConfigType.STRING, importance=Importance.LOW)
    )
    assert [key.name for key in definition.sorted_keys()] == ["required", "high", "a", "b", "z"]


def test_key_info_has_the_rest_apis_members() -> None:
    """A key without default is required, and its default value is null."""
    info = _definition().to_key_info()
    assert info[0] == {
        "name": "required",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": "",
        "group": None,
        "width": "NONE",
        "display_name": "required",
        "dependents": [],
        "order_in_group": -1,
    }
    assert info[1]["default_value"] == "3"


_TABLE = """
topic  STRING  HIGH  !
    Topic of the rows,
    which must be set.
user  STRING  LOW  ~
prefix  STRING  LOW  ""
options  STRING  LOW  -a -b
rows  INT  MEDIUM  10
"""


def test_lines_are_keys_with_defaults_documentation_and_forms() -> None:
    """Documentation has any number of lines; defaults and groups may have spaces."""
    keys = define_table(ConfigDef(), _TABLE).keys
    assert list(keys) == ["topic", "user", "prefix", "options", "rows"]
    assert keys["topic"].documentation == "Topic of the rows, which must be set."
    assert (keys["user"].documentation, keys["rows"].type) == ("", ConfigType.INT)
    keys = define_table(ConfigDef(), _TABLE).keys
    assert not keys["topic"].has_default
    defaults = [key.default for key in keys.values()][1:]
    assert defaults == [None, "", "-a -b", 10]
    table = "a  INT  LOW  1\n    [Error Handling, 3, SHORT] A title\n    What it is."
    key = define_table(ConfigDef(), table).keys["a"]
    shown = (key.group, key.order_in_group, key.width, key.display_name, key.documentation)
    assert shown == ("Error Handling", 3, Width.SHORT, "A title", "What it is.")


def test_validators_are_given_by_name() -> None:
    """A validator for a key that does not exist is refused, because it would check nothing."""
    definition = define_table(ConfigDef(), _TABLE, {"rows": Range.at_least(1)})
    with pytest.raises(ConfigException, match="rows"):
        definition.parse({"topic": "t", "rows": "0"})
    with pytest.raises(ValueError, match="row"):
        define_table(ConfigDef(), _TABLE, {"row": Range.at_least(1)})
