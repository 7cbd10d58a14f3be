"""What the settings of all connectors of this package share."""

from __future__ import annotations

from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyconnect_api import ConfigDef, ConfigException, LambdaValidator, Range
from pyconnect_api.key_table import define_table

RETRIES = "max.retries"
BACKOFF_MS = "retry.backoff.ms"
GUARANTEE = "delivery.guarantee"

_RETRIES = """
max.retries  INT  MEDIUM  10
    Attempts after a failure that may pass, such as a lost connection, before the task fails.
retry.backoff.ms  INT  MEDIUM  3000
    Time between two attempts in milliseconds.
"""


class Guarantee(StrEnum):
    """Whether a sink keeps consumer offsets beside the rows."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


def define_retries(definition: ConfigDef) -> ConfigDef:
    """Add the keys that say how a task repeats a call whose failure may pass."""
    return define_table(
        definition, _RETRIES, {RETRIES: Range.at_least(0), BACKOFF_MS: Range.at_least(0)}
    )


def _check_zone(name: str, value: object) -> None:
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ConfigException(
            f"Invalid value {value} for configuration {name}: Unknown time zone"
        ) from error


TIME_ZONE = LambdaValidator(_check_zone, "a name of the IANA time zone database")


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty."""
    return None if value is None or value == "" else str(value)


def texts(value: object) -> tuple[str, ...]:
    """Return the entries of a list, none of null."""
    return tuple(map(str, value)) if isinstance(value, list) else ()


def number(value: object) -> int:
    """Return a parsed INT or LONG."""
    assert isinstance(value, int)
    return value
