"""The keys for heap, options and environment of Java processes, of workers and of connectors.

A worker checks its own values when it starts.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase

from pyconnect_api import ConfigException, LambdaValidator

HEAP = "agent.java.heap"
HEAP_LIMIT = "agent.java.heap.limit"
OPTIONS = "agent.java.options"
ENVIRONMENT = "agent.java.environment"
KAFKA_RELEASES = "agent.java.kafka.releases"
DEFAULT_HEAP = "256m"

_SIZE = re.compile(r"(\d+)([kKmMgG])")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def heap_bytes(key: str, size: str) -> int:
    """Return the bytes of a value of `-Xmx`. Raises ConfigException with the key that has it."""
    found = _SIZE.fullmatch(size)
    if found is None:
        raise ConfigException(
            f"Invalid value {size} for configuration {key}: a size is a number followed by k, m or "
            "g, such as 512m"
        )
    return int(found[1]) * _UNITS[found[2].lower()]


def option_words(text: str) -> tuple[str, ...]:
    """Split `agent.java.options` as a shell does. Raises ConfigException."""
    words = _words(OPTIONS, text)
    for word in words:
        # It would have no effect: the heap's key comes last on the command line.
        if word.startswith(("-Xmx", "-XX:MaxHeapSize=")):
            raise ConfigException(
                f"Invalid value {word} for configuration {OPTIONS}: {HEAP} sets the largest heap"
            )
    return words


def variables(text: str) -> dict[str, str]:
    """Return the variables of `agent.java.environment`. Raises ConfigException."""
    found = {}
    for word in _words(ENVIRONMENT, text):
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ConfigException(
                f"Invalid value {word} for configuration {ENVIRONMENT}: a variable is NAME=value"
            )
        found[name] = value
    return found


def kafka_of_location(text: str, location: str) -> str:
    """Return what `agent.java.kafka.releases` says of a location's name; empty: nothing.

    The first pattern that fits counts. Raises ConfigException.
    """
    for entry in filter(None, map(str.strip, text.split(","))):
        pattern, equals, kafka = map(str.strip, entry.partition("="))
        if not (pattern and equals and kafka):
            raise ConfigException(
                f"Invalid value {entry} for configuration {KAFKA_RELEASES}: an entry is the name of"
                " a plugin location, which may have wildcards, = and a release or a directory of"
                " Kafka, such as debezium-*=4.3"
            )
        if fnmatchcase(location, pattern):
            return kafka
    return ""


def _words(key: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise ConfigException(f"Invalid value {text} for configuration {key}: {exc}") from exc


VALID_HEAP = LambdaValidator(lambda key, size: heap_bytes(key, str(size)), "a number and k, m or g")
VALID_OPTIONS = LambdaValidator(lambda _, text: option_words(str(text)), "options of Java")
VALID_KAFKA_RELEASES = LambdaValidator(
    lambda _, text: kafka_of_location(str(text), ""), "entries PATTERN=KAFKA"
)
VALID_ENVIRONMENT = LambdaValidator(lambda _, text: variables(str(text)), "variables: NAME=value")
