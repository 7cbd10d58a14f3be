"""Rules for corpus cases in which our converters differ from Apache's on purpose."""

import re
from collections.abc import Callable
from decimal import Decimal
from struct import pack
from typing import Any

from pyconnect_api import STRING_SCHEMA, Schema, SchemaAndValue
from pyconnect_api.values import parse_string
from tests.agent.builtin.converters.converter_corpus import (
    JSON,
    SIMPLE_HEADER,
    Case,
    Failed,
    java_class_text,
    text_of,
)

SHORTEST_DIGITS_SINCE_JAVA = 19
"""Older Java gives some numbers more digits than needed in `Float.toString`, `Double.toString`."""

_FLOAT = re.compile(rb"-?[0-9]+\.[0-9]+(?:E-?[0-9]+)?")
_LONE_SURROGATE_ESCAPE = re.compile(rb"\\uD[89A-F]")
_BLANK = re.compile(r"[\x00-\x20]")
_REFUSED_ON_READING = re.compile(
    r"A number (?:is out of range|has a fraction)"
    r"|Invalid type for \w+: found \w+ in the JSON"
    r"|Invalid value for BOOLEAN"
    r"|.*unexpected characters after the JSON value"
    r"|.*is outside the years 1 to 9999"
    r"|Time values must use number of milliseconds"
)
_LENIENT_DATES = {b"2020-02-30", b"24:00:00.000Z"}


def reasons(case: Case, java_version: int) -> frozenset[str] | None:
    """Return the names of the rules by which we differ from Apache, None if both agree."""
    ours = case.ours()
    if text_of(ours) == text_of(case.outcome):
        return None
    return frozenset(rule.__name__ for rule in RULES if rule(case, ours, java_version))


def described(case: Case) -> str:
    """Return the input of a case and both outcomes."""
    asked = f"{case.kind} {case.java_class} {case.options} {case.given}"
    return f"{asked}:\n  {case.ours()}\n  {case.outcome}"


def unexplained(case: Case, java_version: int) -> str | None:
    """Return how we differ from Apache without a rule, or None."""
    found = reasons(case, java_version)
    return described(case) if found is not None and not found else None


def _both_refuse(case: Case, ours: Any, java_version: int) -> bool:
    """Both refuse, with messages that begin alike; ours may name Python's classes or the cause."""
    if not (isinstance(ours, Failed) and isinstance(case.outcome, Failed)):
        return False
    expected, message = java_class_text(case.outcome.message), java_class_text(ours.message)
    return message.startswith(expected.rstrip()) or _refused_on_purpose(case, ours, java_version)


def _refused_on_purpose(case: Case, ours: Any, _: int) -> bool:
    """Apache would alter the value: cut a number, or take 0 or null for another kind of value."""
    if case.java_class != JSON or case.kind != "read" or not isinstance(ours, Failed):
        return False
    if not case.given.strip():
        return "not a JSON value" in (ours.message or "")
    return _REFUSED_ON_READING.match(ours.message or "") is not None


def _more_float_digits(case: Case, ours: Any, java_version: int) -> bool:
    """Old Java writes more digits; both texts are the same numbers."""
    java = case.outcome
    if java_version >= SHORTEST_DIGITS_SINCE_JAVA or case.kind != "write":
        return False
    if not (isinstance(ours, bytes) and isinstance(java, bytes)):
        return False
    our_numbers, java_numbers = _FLOAT.findall(ours), _FLOAT.findall(java)
    return (
        _FLOAT.sub(b"#", ours) == _FLOAT.sub(b"#", java)
        and len(our_numbers) == len(java_numbers)
        and all(map(_same_number, our_numbers, java_numbers))
    )


def _same_number(ours: bytes, java: bytes) -> bool:
    if float(ours) == float(java):
        return True
    return pack(">f", float(ours)) == pack(">f", float(java)) and len(ours) <= len(java)


def _reads_what_it_writes(case: Case, ours: Any, _: int) -> bool:
    """Apache writes NaN and infinities as strings, and reads those as 0; -0.0 loses its sign."""
    if case.java_class != JSON or case.kind != "read" or isinstance(ours, Failed):
        return False
    if isinstance(case.outcome, Failed):
        return False
    zeroed = re.sub(r"float (?:-?inf|nan|-0\.0)\b", "float 0.0", text_of(ours))
    return zeroed == re.sub(r"float -0\.0\b", "float 0.0", text_of(case.outcome))


def _keeps_digits(case: Case, ours: Any, _: int) -> bool:
    """Apache reads schemaless numbers as 64 bits: it rounds, overflows, or keeps the low bits."""
    if case.java_class != JSON or case.kind != "read" or isinstance(ours, Failed):
        return False
    return text_of(_of_64_bits(ours)) == text_of(case.outcome)


def _of_64_bits(value: Any) -> Any:
    match value:
        case SchemaAndValue(None, found):
            return SchemaAndValue(None, _of_64_bits(found))
        case Decimal() if value.as_tuple().exponent == 0:
            return (int(value) + 2**63) % 2**64 - 2**63
        case Decimal():
            return float(value)
        case list():
            return list(map(_of_64_bits, value))
        case dict():
            return {name: _of_64_bits(member) for name, member in value.items()}
    return value


def _lone_surrogate_in_a_name(case: Case, ours: Any, _: int) -> bool:
    """Apache writes such names, but cannot read them back."""
    return (
        case.java_class == JSON
        and isinstance(case.outcome, Failed)
        and not isinstance(ours, Failed)
        and _LONE_SURROGATE_ESCAPE.search(case.given) is not None
    )


def _keeps_what_follows(case: Case, ours: Any, _: int) -> bool:
    """Apache drops the text after a number, array or map; here the whole text is a string."""
    if not _whole_text_is_a_string(case, ours):
        return False
    text = case.given.decode()
    outcome = text_of(case.outcome)
    return any(text_of(parse_string(text[:end])) == outcome for end in range(1, len(text)))


def _no_lenient_dates(case: Case, ours: Any, _: int) -> bool:
    """Apache reads the 30th of February as the 1st of March."""
    return _whole_text_is_a_string(case, ours) and case.given in _LENIENT_DATES


def _no_maps_as_keys(case: Case, ours: Any, _: int) -> bool:
    """A Python dict cannot be a key."""
    return _whole_text_is_a_string(case, ours) and "a map as a key" in text_of(case.outcome)


def _keeps_blanks_in_quotes(case: Case, ours: Any, _: int) -> bool:
    """Apache drops blank tokens within quotes."""
    if case.java_class != SIMPLE_HEADER or case.kind != "read":
        return False
    return text_of(_without_blanks(ours)) == text_of(_without_blanks(case.outcome))


def _no_schema_for_mixtures(case: Case, ours: Any, _: int) -> bool:
    """Apache takes the last of different schemas of one base type for all elements.

    With null beside a common schema Apache takes the whole text for a string.
    """
    if case.java_class != SIMPLE_HEADER or case.kind != "read" or isinstance(ours, Failed):
        return False
    if case.outcome == SchemaAndValue(STRING_SCHEMA, case.given.decode()):
        elements = ours.value.values() if isinstance(ours.value, dict) else ours.value
        return None in elements and ours.schema.value_schema is None
    values_agree = text_of(_without_blanks(ours.value)) == text_of(
        _without_blanks(case.outcome.value)
    )
    return values_agree and _is_vaguer(ours.schema, case.outcome.schema)


def _is_vaguer(ours: Schema | None, java: Schema | None) -> bool:
    if ours is None or ours == java:
        return True
    if java is None or ours.type is not java.type or ours.type.is_primitive:
        return False
    keys_agree = ours.type.name != "MAP" or _is_vaguer(ours.key_schema, java.key_schema)
    return keys_agree and _is_vaguer(ours.value_schema, java.value_schema)


def _whole_text_is_a_string(case: Case, ours: Any) -> bool:
    if case.java_class != SIMPLE_HEADER or case.kind != "read" or not case.given:
        return False
    return bool(ours == SchemaAndValue(STRING_SCHEMA, case.given.decode()))


def _without_blanks(outcome: Any) -> Any:
    match outcome:
        case SchemaAndValue(schema, value):
            return SchemaAndValue(schema, _without_blanks(value))
        case str():
            return _BLANK.sub("", outcome)
        case list() | tuple():
            return type(outcome)(map(_without_blanks, outcome))
        case dict():
            return {_without_blanks(k): _without_blanks(v) for k, v in outcome.items()}
    return outcome


RULES: tuple[Callable[[Case, Any, int], bool], ...] = (
    _both_refuse, _refused_on_purpose, _more_float_digits, _reads_what_it_writes, _keeps_digits,
    _lone_surrogate_in_a_name, _keeps_what_follows, _no_lenient_dates, _no_maps_as_keys,
    _keeps_blanks_in_quotes, _no_schema_for_mixtures,
)  # fmt: skip
