"""Rules for corpus cases in which our transformations differ from Apache's on purpose."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from struct import pack
from typing import Any

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import ConnectRecord, DataException, Struct
from pyconnect_api.logical import is_logical
from tests.agent.builtin.converters.converter_deviations import SHORTEST_DIGITS_SINCE_JAVA
from tests.agent.builtin.transforms.transform_corpus import Case, Failed, outcome_text

_KAFKA = "org.apache.kafka."
_LEFT_OUT = (
    # Errors must not show values of records.
    (re.compile(r"Value \(.*\) was out of range", re.DOTALL), "Value was out of range"),
    (re.compile(r"convert .* \((class [\w.$\[;]+)\) to", re.DOTALL), r"convert a value of \1 to"),
    (re.compile(r"(was out of range for requested data type) \w+$"), r"\1"),
    (re.compile(r"timestamp: value \(.*\) does not match", re.DOTALL), "timestamp: value does not"),
    (
        re.compile(
            r"value matches pattern (\(.*\)), but not every field is in its range", re.DOTALL
        ),
        r"value does not pattern \1",
    ),
    (re.compile(r"timestamp: value does not match"), "timestamp: value does not"),
    (re.compile(r"for static field: .*"), "for static field"),
    (re.compile(r"Timestamp missing on record: .*", re.DOTALL), "Timestamp missing on record"),
    # The place of a fault in a regular expression has other words here.
    (re.compile(r" near index .*", re.DOTALL), ""),
    (re.compile(r"found: [\w.$\[;]+"), "found: class"),
    (re.compile(r"class [\w.$\[;]+"), "class"),
    (re.compile(r"to be a (?:java\.util\.)?\w+"), "to be a class"),
    (re.compile(r"Invalid Java object"), "Invalid object"),
)
_NONE_IN_REQUIRED = "Invalid value: null used for required field"
_NO_STRUCT = "Cannot list fields on non-struct type"
_STRING = re.compile(r"str \\*'([^'\\]*)\\*'")
_TEMPORAL = re.compile(
    r"(?=.)(?:\d{4}-\d\d-\d\d)?T?(?:\d\d:\d\d:\d\d\.\d{3}Z)?|\d{2}:\d\d:\d\d\.\d{3}Z"
)
_NUMBER = re.compile(r"-?\d+\.\d+(?:E-?\d+)?")
_YEAR = re.compile(r"date(?:time)?\((\d+),[^)]*\)")
_BEFORE_YEAR_1 = re.compile(r"\[str \\*'a moment Python does not know\\*', int -\d+\]")
"""The first of January of the Julian year 1 lies in the year before."""
_INTEGER = re.compile(r"int (-?\d+)")
_UNITS_PER_SECOND = {
    "seconds": 1,
    "milliseconds": 10**3,
    "microseconds": 10**6,
    "nanoseconds": 10**9,
}
_GREGORIAN_CALENDAR_S = -12_219_292_800
"""The 15th of October 1582."""
_DECIMAL = re.compile(r"Decimal\('[^']*'\)")


def reasons(case: Case, java_version: int) -> frozenset[str] | None:
    """Return the names of the rules by which we differ from Apache, None if both agree."""
    ours = case.ours()
    if outcome_text(ours) == outcome_text(case.outcome):
        return None
    return frozenset(rule.__name__ for rule in RULES if rule(case, ours, java_version))


def described(case: Case) -> str:
    """Return the input of a case and both outcomes."""
    return (
        f"{case.java_class} {case.options}\n  {outcome_text(case.record)}\n"
        f"  ours: {outcome_text(case.ours())}\n  java: {outcome_text(case.outcome)}"
    )


def unexplained(case: Case, java_version: int) -> str | None:
    """Return how we differ from Apache without a rule, or None."""
    found = reasons(case, java_version)
    return described(case) if found is not None and not found else None


def _same_refusal(case: Case, ours: Any, _: int) -> bool:
    """Both texts are the same, but for names of classes and parts that are left out on purpose."""
    java = case.outcome
    if not (isinstance(ours, Failed) and isinstance(java, Failed)) or ours.stage != java.stage:
        return False
    same_class = ours.java_class == java.java_class or not java.java_class.startswith(_KAFKA)
    return same_class and _normalized(ours.message) == _normalized(java.message)


def _normalized(message: str | None) -> str:
    text = message or ""
    for expression, replacement in _LEFT_OUT:
        text = expression.sub(replacement, text)
    return text


def _java_crashes(case: Case, ours: Any, _: int) -> bool:
    """Null pointers and the like become DataExceptions."""
    java = case.outcome
    if not (isinstance(ours, Failed) and isinstance(java, Failed)):
        return False
    return not java.java_class.startswith(_KAFKA) and ours.stage == java.stage == "apply"


def _refused_when_configured(case: Case, ours: Any, _: int) -> bool:
    """Apache finds wrong replacements and patterns with the first record they are used for."""
    if not isinstance(ours, Failed) or ours.stage != "configure":
        return False
    if isinstance(case.outcome, Failed) and case.outcome.stage == "configure":
        return False
    wrong = {"RegexRouter": "replacement", "TimestampRouter": "timestamp.format"}.get(case.name)
    if wrong is None:
        return False
    start = f"Invalid value {case.options[wrong]} for configuration {wrong}: "
    return (ours.message or "").startswith(start)


def _cause_instead_of_name(case: Case, ours: Any, _: int) -> bool:
    """Apache passes the cause of some errors in the place of the value."""
    java = case.outcome
    if not (isinstance(ours, Failed) and isinstance(java, Failed)):
        return False
    start = "Invalid value java.lang.IllegalArgumentException: "
    message = java.message or ""
    return message.startswith(start) and message.endswith(f" for configuration {ours.message}")


def _another_of_two_faults(case: Case, ours: Any, _: int) -> bool:
    """We look for missing values before casting others, and cast in the order of the options.

    Apache goes field by field, without a schema in the order of a hash table.
    """
    java = case.outcome
    if not (isinstance(ours, Failed) and isinstance(java, Failed)) or ours.stage != java.stage:
        return False
    if (ours.message or "").startswith(_NONE_IN_REQUIRED):
        return True
    option = {"Cast": "spec", "MaskField": "fields"}.get(case.name)
    if option is None:
        return False
    singly = (
        replace(case, options={**case.options, option: part}).ours()
        for part in case.options[option].split(",")
    )
    return any(isinstance(one, Failed) and _same_refusal(case, one, _) for one in singly)


def _says_what_is_needed(case: Case, ours: Any, _: int) -> bool:
    """Apache names the fields that a schema lacks, and our text names the expected Struct."""
    if not (isinstance(ours, Failed) and isinstance(case.outcome, Failed)):
        return False
    expected = (ours.message or "").startswith("Only Struct objects supported for [")
    return expected and case.outcome.message == _NO_STRUCT


def _every_schema_can_be_renamed(case: Case, ours: Any, _: int) -> bool:
    """Apache's SetSchemaMetadata fails for schemas that are not structs."""
    if case.name != "SetSchemaMetadata" or not isinstance(ours, ConnectRecord):
        return False
    return isinstance(case.outcome, Failed) and case.outcome.message == _NO_STRUCT


def _rename_of_nothing(case: Case, ours: Any, _: int) -> bool:
    """Apache gives a field that already has the new name the value of the old name.

    Apache fails if no such field exists, or if its value does not fit.
    """
    if case.name != "ReplaceField" or not isinstance(ours, ConnectRecord):
        return False
    is_key = case.java_class.endswith("$Key")
    given = case.record.key if is_key else case.record.value
    kept = ours.key if is_key else ours.value
    if not (isinstance(given, Struct) and isinstance(kept, Struct)):
        return False
    new_names = dict(
        mapping.split(":")[:2] for mapping in case.options.get("renames", ":").split(",")
    )
    return any(
        given.schema.field(new) and kept.schema.field(new) and kept.get(new) == given.get(new)
        for new in new_names.values()
    )


def _no_longer_logical(case: Case, ours: Any, _: int) -> bool:
    """A cast whole value has no logical type any more, so defaults fit."""
    if case.name != "Cast" or ":" in case.options["spec"] or not isinstance(ours, ConnectRecord):
        return False
    is_key = case.java_class.endswith("$Key")
    if not is_logical(case.record.key_schema if is_key else case.record.value_schema):
        return False
    if isinstance(case.outcome, Failed):
        return case.outcome.message == "Invalid default value"
    assert isinstance(case.outcome, ConnectRecord)
    java_value = case.outcome.key if is_key else case.outcome.value
    value = ours.key if is_key else ours.value
    return value == java_value or _are_temporal_texts(value, java_value)


def _decimals_have_their_scale(case: Case, ours: Any, _: int) -> bool:
    """Apache masks Decimals by numbers of another scale, which fail when they are written."""
    if case.name != "MaskField" or isinstance(case.outcome, Failed):
        return False
    if isinstance(ours, Failed):
        return " to a Decimal of scale " in (ours.message or "")
    same = _DECIMAL.sub("", outcome_text(ours)) == _DECIMAL.sub("", outcome_text(case.outcome))
    return same and case.record != ours


def _temporals_by_class(case: Case, ours: Any, _: int) -> bool:
    """Apache decides by the number of milliseconds whether a temporal is a date or a time."""
    if case.name != "Cast" or isinstance(ours, Failed) or isinstance(case.outcome, Failed):
        return False
    return _with_strings_alike(ours, case.outcome, _are_temporal_texts)


def _more_float_digits(case: Case, ours: Any, java_version: int) -> bool:
    """Old Java writes more digits; both texts are the same numbers."""
    if java_version >= SHORTEST_DIGITS_SINCE_JAVA or case.name != "Cast":
        return False
    if isinstance(ours, Failed) or isinstance(case.outcome, Failed):
        return False
    return _with_strings_alike(ours, case.outcome, _are_same_number)


def _with_strings_alike(
    ours: ConnectRecord | None, java: Any, alike: Callable[[object, object], bool]
) -> bool:
    """Return whether both are equal, apart from strings that are alike."""
    our_text, java_text = outcome_text(ours), outcome_text(java)
    our_strings, java_strings = _STRING.findall(our_text), _STRING.findall(java_text)
    if _STRING.sub("", our_text) != _STRING.sub("", java_text):
        return False
    pairs = zip(our_strings, java_strings, strict=True)
    return all(left == right or alike(left, right) for left, right in pairs)


def _are_temporal_texts(ours: object, java: object) -> bool:
    return all(isinstance(text, str) and _TEMPORAL.fullmatch(text) for text in (ours, java))


def _are_same_number(ours: object, java: object) -> bool:
    assert isinstance(ours, str)
    assert isinstance(java, str)
    if not (_NUMBER.fullmatch(ours) and _NUMBER.fullmatch(java)):
        return False
    if float(ours) == float(java):
        return True
    return pack(">f", float(ours)) == pack(">f", float(java)) and len(ours) <= len(java)


def _no_lenient_dates(case: Case, ours: Any, _: int) -> bool:
    """Apache reads the 30th of February as the 1st of March, and minute 70 as the next hour."""
    if case.name != "TimestampConverter" or not isinstance(ours, Failed):
        return False
    out_of_range = (ours.message or "").endswith("but not every field is in its range")
    return out_of_range and not isinstance(case.outcome, Failed)


def _no_negative_fields(case: Case, ours: Any, _: int) -> bool:
    """Apache reads 2024-13 by the pattern yyyyMM as a negative month of the year 2024."""
    if case.name != "TimestampConverter" or not isinstance(ours, Failed):
        return False
    if isinstance(case.outcome, Failed) or "does not match pattern" not in (ours.message or ""):
        return False
    signs = case.options["format"].count("-")
    return any(text.count("-") > signs for text in _STRING.findall(outcome_text(case.record)))


def _one_calendar(case: Case, ours: Any, _: int) -> bool:
    """Java's dates before October 1582 are of the Julian calendar."""
    if case.name != "TimestampConverter" or isinstance(ours, Failed):
        return False
    if isinstance(case.outcome, Failed) or not _is_before_gregorian_calendar(case):
        return False
    return _without_old_dates(ours) == _without_old_dates(case.outcome)


def _is_before_gregorian_calendar(case: Case) -> bool:
    """Return whether a timestamp of the record is before the Gregorian calendar."""
    given = outcome_text(case.record)
    divisor = _UNITS_PER_SECOND[case.options.get("unix.precision", "milliseconds")]
    seconds = [int(number) / divisor for number in _INTEGER.findall(given)]
    if "format" in case.options:
        date_format = JavaDateFormat(case.options["format"])
        for text in _STRING.findall(given):
            with suppress(DataException):
                seconds.append(date_format.milliseconds(text) / 1000)
    return any(second < _GREGORIAN_CALENDAR_S for second in seconds)


def _without_old_dates(record: ConnectRecord | bool | None) -> str:
    def hidden(match: re.Match[str]) -> str:
        return "date" if int(match[1]) < 1583 else match[0]

    text = _BEFORE_YEAR_1.sub("datetime.date(1, )", outcome_text(record))
    text = _YEAR.sub(hidden, _STRING.sub("str", text))
    text = re.sub(r"date(?:time)? datetime\.date", "datetime.date", text)
    return re.sub(r"int -\d{8,}", "int", text)


def _no_day_of_weeks(case: Case, ours: Any, _: int) -> bool:
    """Texts with the week of a month are not read."""
    if case.name != "TimestampConverter" or not isinstance(ours, Failed):
        return False
    return "can be written but not read" in (ours.message or "")


def _years_of_python(case: Case, ours: Any, _: int) -> bool:
    """Python's dates end with the year 9999."""
    if not isinstance(ours, Failed) or isinstance(case.outcome, Failed):
        return False
    return "is outside the years 1 to 9999" in (ours.message or "")


RULES: tuple[Callable[[Case, Any, int], bool], ...] = (
    _same_refusal, _java_crashes, _refused_when_configured, _cause_instead_of_name,
    _another_of_two_faults, _says_what_is_needed, _every_schema_can_be_renamed, _rename_of_nothing,
    _no_longer_logical, _decimals_have_their_scale, _temporals_by_class, _more_float_digits,
    _no_lenient_dates, _no_negative_fields, _one_calendar, _no_day_of_weeks, _years_of_python,
)  # fmt: skip
