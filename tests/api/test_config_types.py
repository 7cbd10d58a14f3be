"""Values of config keys, from texts and back, by type, and their validators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_api import (
    CaseInsensitiveValidString,
    CompositeValidator,
    ConfigException,
    ConfigType,
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
from tests.support.cases import cases


@cases(
    "config_type, text, value",
    (ConfigType.BOOLEAN, " True ", True), (ConfigType.BOOLEAN, "FALSE", False),
    (ConfigType.STRING, "\t a b \n", "a b"), (ConfigType.INT, "+12", 12),
    (ConfigType.INT, "-2147483648", -(2**31)), (ConfigType.SHORT, "32767", 32767),
    (ConfigType.LONG, "9223372036854775807", 2**63 - 1), (ConfigType.DOUBLE, "1.5e3f", 1500.0),
    (ConfigType.DOUBLE, "-Infinity", float("-inf")),
    (ConfigType.LIST, " a ,b,, c ", ["a", "b", "", "c"]), (ConfigType.LIST, "  ", []),
    (ConfigType.PASSWORD, " secret ", Password("secret")), (ConfigType.CLASS, " a.B ", "a.B"),
)  # fmt: skip
def test_texts_are_parsed_by_type(config_type: ConfigType, text: str, value: object) -> None:
    """Each type parses its texts as Kafka's Java code does."""
    assert parse_type("key", text, config_type) == value


@cases(
    "config_type, value, message",
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
    (ConfigType.LONG, "1.5", "Invalid value 1.5 for configuration k: Not a number of type LONG"),
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
    (ConfigType.LIST, 5, "Invalid value 5 for configuration k: Expected a comma separated list."),
)
def test_wrong_values_get_kafkas_text(config_type: ConfigType, value: object, message: str) -> None:
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


@cases(
    "number, text",
    (0.8, "0.8"), (1.0, "1.0"), (1e7, "1.0E7"), (1.25e-5, "1.25E-5"), (9999999.0, "9999999.0"),
    (-0.0, "-0.0"), (float("nan"), "NaN"),
)  # fmt: skip
def test_doubles_are_shown_as_java_shows_them(number: float, text: str) -> None:
    """The text of a double is that of Java's `Double.toString`."""
    assert to_text(number) == text


def test_classes_are_resolved_by_the_given_resolver() -> None:
    """Kafka's error is raised for a class that the resolver does not find."""
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


@cases(
    "validator, value, message",
    (Range.at_least(1), 0, "Invalid value 0 for configuration k: Value must be at least 1"),
    (Range.between(0, 9), 10, "Invalid value 10 for configuration k: Value must be no more than 9"),
    (Range.at_least(1), None, "Invalid value null for configuration k: Value must be non-null"),
    (
        ValidString.one_of("a", "b"),
        "c",
        "Invalid value c for configuration k: String must be one of: a, b",
    ),
    (
        CaseInsensitiveValidString.one_of("a", "b"),
        None,
        ("Invalid value null for configuration k: String must be one of (case insensitive): A, B"),
    ),
    (NonEmptyString(), "", "Invalid value  for configuration k: String must be non-empty"),
    (NonNullValidator(), None, "Invalid value null for configuration k: entry must be non null"),
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
    (ValidList.one_of("a"), ["b"], "Invalid value b for configuration k: String must be one of: a"),
)
def test_validators_have_kafkas_text(validator: Validator, value: object, message: str) -> None:
    """The message of each validator says which values are valid."""
    with pytest.raises(ConfigException) as refused:
        validator.ensure_valid("k", value)
    assert str(refused.value) == message


def test_composite_validators_stop_at_the_first_error() -> None:
    """The validators after the first error do not run, because they may rely on it."""

    def fail(name: str, value: object) -> None:
        raise AssertionError

    both = CompositeValidator.of(NonNullValidator(), LambdaValidator(fail, "anything"))
    with pytest.raises(ConfigException, match="entry must be non null"):
        both.ensure_valid("k", None)
    assert str(both) == "non-null string, anything"
