"""Rules that put headers on REST responses (``response.http.headers.config``).

Layer: core. Corresponds to the rules Kafka Connect hands to Jetty's ``HeaderFilter``; error texts
are Kafka's.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from enum import Enum

from pyconnect_api.config_validators import LambdaValidator
from pyconnect_api.errors import ConfigException


class HeaderAction(Enum):
    """A header: replaced or appended, a text or a date that many milliseconds from now."""

    SET = "set"
    ADD = "add"
    SET_DATE = "setDate"
    ADD_DATE = "addDate"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRule:
    """One rule; for the date actions ``value`` is a number of milliseconds."""

    action: HeaderAction
    name: str
    value: str


_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ACTIONS = {action.value.lower(): action for action in HeaderAction}


def parse_header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Return the rules of a comma list of ``[action] [header name]:[header value]``.

    A rule that holds a comma is put into double quotes. Blank text has no rules. Raises
    ConfigException.
    """
    if not text.strip():
        return ()
    # HTTP cannot carry control characters: Apache's worker sends blanks. So csv meets no line end.
    rules = next(csv.reader([_CONTROL.sub(" ", text)], skipinitialspace=True))
    return tuple(_parse_rule(rule.strip()) for rule in rules)


def _parse_rule(rule: str) -> HeaderRule:
    tokens = rule.split(maxsplit=1)
    if len(tokens) != 2:
        raise ConfigException(
            f"Invalid format of header config '{rule}'. "
            "Expected: '[action] [header name]:[header value]'"
        )
    action_text, header = tokens
    action = _ACTIONS.get(action_text.lower())
    if action is None:
        options = ", ".join(item.value for item in HeaderAction)
        raise ConfigException(
            f"Invalid header config action: '{action_text}'. Expected one of [{options}]"
        )
    name, _, value = header.partition(":")
    # Kafka refuses a second colon too, and a header without a value.
    if not value or ":" in value:
        raise ConfigException(
            f"Invalid format of header name and header value pair '{header}'. "
            "Expected: '[header name]:[header value]'"
        )
    name = name.strip()
    if not name or any(char.isspace() for char in name):
        raise ConfigException(
            f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace"
        )
    if not _NAME.fullmatch(name):
        raise ConfigException(
            f"Invalid header name '{name}'. It may hold letters, digits and !#$%&'*+-.^_`|~ only"
        )
    value = value.strip().encode("latin-1", "replace").decode("latin-1")
    if action in (HeaderAction.SET_DATE, HeaderAction.ADD_DATE) and not _is_number(value):
        raise ConfigException(
            f"Invalid header value '{value}'. A date is given as milliseconds from now"
        )
    return HeaderRule(action=action, name=name, value=value)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _check(_name: str, value: object) -> None:
    parse_header_rules(str(value or ""))


VALID_HEADER_RULES = LambdaValidator(
    _check,
    "Comma-separated header rules, where each header rule is of the form "
    "'[action] [header name]:[header value]' and optionally surrounded by double quotes "
    "if any part of a header rule contains a comma",
)
