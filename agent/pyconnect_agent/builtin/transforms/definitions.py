"""Option definitions and validators that several transformations and predicates use.

Layer: builtin. Corresponds to `NonEmptyListValidator`, `RegexValidator` and `FieldSyntaxVersion`
of Kafka's transformations.
"""

from __future__ import annotations

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    Importance,
    LambdaValidator,
    ValidList,
)
from pyconnect_api.configdef import invalid_value

REPLACE_NULL_WITH_DEFAULT = "replace.null.with.default"
FIELD_SYNTAX_VERSION = "field.syntax.version"


def define_replace_null_with_default(definition: ConfigDef) -> ConfigDef:
    """Add `replace.null.with.default`: whether fields without a value read as their default."""
    return definition.define(
        REPLACE_NULL_WITH_DEFAULT,
        ConfigType.BOOLEAN,
        default=True,
        importance=Importance.MEDIUM,
        documentation="With true, a field that holds null is read as the default of its schema, "
        "if it has one; with false it stays null.",
    )


def define_field_syntax_version(definition: ConfigDef) -> ConfigDef:
    """Add `field.syntax.version`: whether a field name may lead into nested data (KIP-821)."""
    return definition.define(
        FIELD_SYNTAX_VERSION,
        ConfigType.STRING,
        default="V1",
        validator=CaseInsensitiveValidString.one_of("V1", "V2"),
        importance=Importance.HIGH,
        documentation="How field names are read. V1: as the name of a field at the top. V2: as a "
        "path into nested data, its steps separated by dots; a step that itself contains dots is "
        "put between backticks, as in `foo.bar`.baz.",
    )


def _check_not_empty(name: str, value: object) -> None:
    if not value:
        raise invalid_value(name, value, "Empty list")


def _check_date_pattern(name: str, value: object) -> None:
    try:
        JavaDateFormat(str(value))
    except ValueError as error:
        raise invalid_value(name, value, str(error)) from error


NON_EMPTY_LIST = LambdaValidator(_check_not_empty, "non-empty list")
NON_EMPTY_UNIQUE_LIST = ValidList.any_non_duplicate_values(allow_empty=False, allow_null=False)
UNIQUE_LIST = ValidList.any_non_duplicate_values(allow_empty=True, allow_null=False)
VALID_DATE_PATTERN = LambdaValidator(_check_date_pattern, "pattern of java.text.SimpleDateFormat")
