"""Option definitions and validators that several transformations and predicates use.

Layer: builtin. Corresponds to `NonEmptyListValidator`, `RegexValidator` and `FieldSyntaxVersion`
of Kafka's transformations.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import CaseInsensitiveValidString, ConfigDef, LambdaValidator, ValidList
from pyconnect_api.config_validators import Validator
from pyconnect_api.configdef import invalid_value
from pyconnect_api.key_table import define_table

REPLACE_NULL_WITH_DEFAULT = "replace.null.with.default"
FIELD_SYNTAX_VERSION = "field.syntax.version"

_NULL_KEY = """
replace.null.with.default  BOOLEAN  MEDIUM  true
    With true, a field that holds null is read as the default of its schema, if it has one; with
    false it stays null.
"""
FIELD_SYNTAX_KEY = """
field.syntax.version  STRING  HIGH  V1
    How field names are read. V1: as the name of a field at the top. V2: as a path into nested data,
    its steps separated by dots; a step that itself contains dots is put between backticks, as in
    `foo.bar`.baz.
"""
"""KIP-821: whether a field name may lead into nested data. Its values are `SYNTAX_VERSION`."""
SYNTAX_VERSION = CaseInsensitiveValidString.one_of("V1", "V2")


def with_null_key(table: str, validators: Mapping[str, Validator] | None = None) -> ConfigDef:
    """Return the keys of a table, and whether fields without a value read as their default."""
    return define_table(ConfigDef(), table.rstrip() + _NULL_KEY, validators)


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


def split_at_colons(text: str) -> list[str]:
    """Return what `text.split(":")` returns in Java: without the empty parts at the end.

    A text without a colon is its one part, even if it is empty; of colons alone nothing is left.
    """
    if ":" not in text:
        return [text]
    parts = text.split(":")
    while parts and not parts[-1]:
        parts.pop()
    return parts
