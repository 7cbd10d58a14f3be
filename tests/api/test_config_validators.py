"""Validators of config keys."""

import pytest

from pyconnect_api import (
    CaseInsensitiveValidString,
    CompositeValidator,
    ConfigException,
    LambdaValidator,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNullValidator,
    Range,
    ValidList,
    ValidString,
)
from pyconnect_api.configdef import Validator
from tests.support.cases import cases


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
