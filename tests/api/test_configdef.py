"""Parsing, validation and description of configuration keys, with Kafka's texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_api import (
    CaseInsensitiveValidString,
    CompositeValidator,
    ConfigDef,
    ConfigException,
    ConfigType,
    Importance,
    LambdaValidator,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNullValidator,
    Password,
    Range,
    ValidList,
    ValidString,
)
from pyconnect_api.config_types import convert_to_string, parse_type, to_text
from pyconnect_api.configdef import Validator


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " True ", True),
        (ConfigType.BOOLEAN, "FALSE", False),
        (ConfigType.STRING, "\t a b \n", "a b"),
        (ConfigType.INT, "+12", 12),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1.5e3f", 1500.0),
        (ConfigType.DOUBLE, "-Infinity", float("-inf")),
        (ConfigType.LIST, " a ,b,, c ", ["a", "b", "", "c"]),
        (ConfigType.LIST, "  ", []),
        (ConfigType.PASSWORD, " secret ", Password("secret")),
        (ConfigType.CLASS, " a.B ", "a.B"),
    ],
)
def test_texts_are_trimmed_and_parsed_by_type(
    config_type: ConfigType, text: str, value: object
) -> None:
    """Every type reads its text as Java does."""
    assert parse_type("key", text, config_type) == value


@pytest.mark.parametrize(
    ("config_type", "value", "message"),
    [
        (ConfigType.INT, "x", "Invalid value x for configuration k: Not a number of type INT"),
        (ConfigType.INT, "1_0", "Invalid value 1_0 for configuration k: Not a number of type INT"),
        (ConfigType.INT, "", "Invalid value  for configuration k: Not a number of type INT"),
        (
            ConfigType.INT,
            "2147483648",
            "Invalid value 2147483648 for configuration k: Not a number of type INT",
        ),
        (
            ConfigType.SHORT,
            "32768",
            "Invalid value 32768 for configuration k: Not a number of type SHORT",
        ),
        (
            ConfigType.LONG,
            "1.5",
            "Invalid value 1.5 for configuration k: Not a number of type LONG",
        ),
        (
            ConfigType.DOUBLE,
            "1,5",
            "Invalid value 1,5 for configuration k: Not a number of type DOUBLE",
        ),
        (
            ConfigType.BOOLEAN,
            "yes",
            "Invalid value yes for configuration k: Expected value to be either true or false",
        ),
        (
            ConfigType.STRING,
            5,
            "Invalid value 5 for configuration k: Expected value to be a string, but it was a int",
        ),
        (
            ConfigType.INT,
            True,
            (
                "Invalid value true for configuration k: "
                "Expected value to be a 32-bit integer, but it was a bool"
            ),
        ),
        (
            ConfigType.LIST,
            5,
            "Invalid value 5 for configuration k: Expected a comma separated list.",
        ),
    ],
)
def test_wrong_values_are_refused_with_kafkas_text(
    config_type: ConfigType, value: object, message: str
) -> None:
    """The text names value, key and what was expected."""
    with pytest.raises(ConfigException) as refused:
        parse_type("k", value, config_type)
    assert str(refused.value) == message


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_number_in_range_survives_its_text(number: int) -> None:
    """Text forms of integers parse to the same integer."""
    assert parse_type("k", to_text(number), ConfigType.INT) == number


@given(st.floats(allow_nan=False))
def test_every_double_survives_its_java_text(number: float) -> None:
    """Java's text form of a double parses to the same double."""
    assert parse_type("k", to_text(number), ConfigType.DOUBLE) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.8, "0.8"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (1.25e-5, "1.25E-5"),
        (9999999.0, "9999999.0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_shown_as_java_shows_them(number: float, text: str) -> None:
    """`Double.toString` decides."""
    assert to_text(number) == text


def test_classes_are_resolved_by_the_given_resolver() -> None:
    """A resolver that knows no such class makes Kafka's error."""
    classes = {"a.B": int}

    def resolve(name: str) -> object:
        return classes[name]

    assert parse_type("k", "a.B", ConfigType.CLASS, resolve) is int
    with pytest.raises(ConfigException, match=r"Class a\.C could not be found"):
        parse_type("k", "a.C", ConfigType.CLASS, resolve)


def test_secrets_are_hidden_wherever_they_are_shown() -> None:
    """A password's text, representation and REST form are `[hidden]`."""
    secret = Password("s3cret")
    assert str(secret) == repr(secret) == "[hidden]"
    assert convert_to_string(secret, ConfigType.PASSWORD) == "[hidden]"
    assert secret.value == "s3cret"


@pytest.mark.parametrize(
    ("validator", "value", "message"),
    [
        (Range.at_least(1), 0, "Invalid value 0 for configuration k: Value must be at least 1"),
        (
            Range.between(0, 9),
            10,
            "Invalid value 10 for configuration k: Value must be no more than 9",
        ),
        (Range.at_least(1), None, "Invalid value null for configuration k: Value must be non-null"),
        (
            ValidString.one_of("a", "b"),
            "c",
            "Invalid value c for configuration k: String must be one of: a, b",
        ),
        (
            CaseInsensitiveValidString.one_of("a", "b"),
            None,
            (
                "Invalid value null for configuration k: "
                "String must be one of (case insensitive): A, B"
            ),
        ),
        (NonEmptyString(), "", "Invalid value  for configuration k: String must be non-empty"),
        (
            NonNullValidator(),
            None,
            "Invalid value null for configuration k: entry must be non null",
        ),
        (
            NonEmptyStringWithoutControlChars(),
            "",
            "Invalid value  for configuration k: String may not be empty",
        ),
        (
            NonEmptyStringWithoutControlChars(),
            "a\x07\x85",
            (
                "Invalid value a\x07\x85 for configuration k: String may not contain control "
                "sequences but had the following ASCII chars: 7, 133"
            ),
        ),
        (ValidList(), None, "Configuration 'k' values must not be null."),
        (ValidList(), ["a", "a"], "Configuration 'k' values must not be duplicated."),
        (ValidList(), ["a", ""], "Configuration 'k' values must not be empty."),
        (
            ValidList(allow_empty=False),
            [],
            "Configuration 'k' must not be empty. Valid values include: any non-empty value",
        ),
        (
            ValidList.one_of("a"),
            ["b"],
            "Invalid value b for configuration k: String must be one of: a",
        ),
    ],
)
def test_validators_refuse_with_kafkas_text(
    validator: Validator, value: object, message: str
) -> None:
    """Each validator says what it wants."""
    with pytest.raises(ConfigException) as refused:
        validator.ensure_valid("k", value)
    assert str(refused.value) == message


def test_composite_validators_stop_at_the_first_error() -> None:
    """The second check may rely on the first."""

    def fail(name: str, value: object) -> None:
        raise AssertionError

    both = CompositeValidator.of(NonNullValidator(), LambdaValidator(fail, "anything"))
    with pytest.raises(ConfigException, match="entry must be non null"):
        both.ensure_valid("k", None)
    assert str(both) == "non-null string, anything"


def _definition() -> ConfigDef:
    return (
        ConfigDef()
        .define("required", ConfigType.STRING, importance=Importance.HIGH)
        .define("count", ConfigType.INT, default="3", validator=Range.at_least(1))
        .define("names", ConfigType.LIST, default=[], validator=ValidList())
    )


def test_parse_fills_in_defaults() -> None:
    """Unset keys have their parsed default, unknown keys do not appear."""
    parsed = _definition().parse({"required": "x", "other": "y"})
    assert parsed == {"required": "x", "count": 3, "names": []}


def test_parse_stops_at_a_missing_required_key() -> None:
    """The text names the key."""
    with pytest.raises(ConfigException) as refused:
        _definition().parse({})
    assert (
        str(refused.value)
        == 'Missing required configuration "required" which has no default value.'
    )


def test_parse_drops_repeated_list_entries_that_validation_reports() -> None:
    """KIP-1161: a worker starts all the same, a connector is told."""
    props = {"required": "x", "names": "a,b,a"}
    assert _definition().parse(props)["names"] == ["a", "b"]
    reported = _definition().validate_all(props)["names"]
    assert reported.error_messages == ["Configuration 'names' values must not be duplicated."]


def test_parsed_lists_are_not_shared_between_calls() -> None:
    """A default is copied, so that changing one result does not change the next."""
    definition = _definition()
    first = definition.parse({"required": "x"})["names"]
    assert isinstance(first, list)
    first.append("changed")
    assert definition.parse({"required": "x"})["names"] == []


def test_validation_reports_type_and_validator_errors_of_one_key() -> None:
    """A bad number is no number and, being none, out of range: two messages."""
    result = _definition().validate_all({"required": "x", "count": "many"})["count"]
    assert result.value is None
    assert result.error_messages == [
        "Invalid value many for configuration count: Not a number of type INT",
        "Invalid value null for configuration count: Value must be non-null",
    ]


def test_validation_reports_every_key_in_order_of_definition() -> None:
    """Errors do not stop it."""
    results = _definition().validate({})
    assert [result.name for result in results] == ["required", "count", "names"]
    assert results[0].error_messages == [
        'Missing required configuration "required" which has no default value.'
    ]


class _DatabaseRecommender:
    """Recommends tables of the chosen database; nothing to choose without one."""

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


def test_recommenders_see_the_parsed_values_of_parents() -> None:
    """Recommended values and visibility follow from other keys."""
    results = _with_dependents().validate_all({"database": "d"})
    assert results["table"].recommended_values == ["t1", "t2"]
    assert results["table"].visible
    assert not _with_dependents().validate_all({})["table"].visible


def test_errors_of_recommenders_become_messages() -> None:
    """They do not end the validation."""
    results = _with_dependents().validate_all({"database": "broken"})
    assert results["table"].error_messages == ["cannot list tables"]


def test_undefined_dependents_are_reported() -> None:
    """Validation shows them as an invisible key in error; parsing refuses."""
    definition = ConfigDef().define("a", ConfigType.STRING, default="", dependents=["b"])
    result = definition.validate_all({})["b"]
    assert result.error_messages == ["b is referred in the dependents, but not defined."]
    assert not result.visible
    with pytest.raises(ConfigException, match="not defined: b"):
        definition.parse({})


def test_a_key_is_defined_once() -> None:
    """Defining it again is an error of the author."""
    with pytest.raises(ConfigException, match="Configuration count is defined twice"):
        _definition().define("count", ConfigType.INT)


def test_defaults_are_checked_when_a_key_is_defined() -> None:
    """An invalid default never gets as far as a user."""
    with pytest.raises(ConfigException, match="Value must be at least 1"):
        ConfigDef().define("n", ConfigType.INT, default=0, validator=Range.at_least(1))


def test_embedded_keys_are_validated_under_their_own_names() -> None:
    """Errors name the key as its author did; the group tells where it was embedded."""
    child = ConfigDef().define(
        "field", ConfigType.INT, default=1, validator=Range.at_least(1), group="Inner"
    )
    parent = ConfigDef()
    parent.embed("transforms.a.", "Transforms: a", 2, child)
    assert parent.groups == ("Transforms: a: Inner",)
    assert parent.keys["transforms.a.field"].order_in_group == 2
    result = parent.validate_all({"transforms.a.field": "0"})["transforms.a.field"]
    assert result.error_messages == [
        "Invalid value 0 for configuration field: Value must be at least 1"
    ]


def test_embedded_recommenders_see_unprefixed_names() -> None:
    """They work as if they were not embedded."""
    parent = ConfigDef()
    parent.embed("p.", "P", 0, _with_dependents())
    results = parent.validate_all({"p.database": "d"})
    assert results["p.table"].recommended_values == ["t1", "t2"]


def test_sorted_keys_go_by_group_order_requirement_importance_and_name() -> None:
    """The order in which embedded keys are numbered."""
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
    """A key without default is required and shows null."""
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
