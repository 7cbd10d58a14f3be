"""Answers of Connect's REST interface that few verbs read, as frozen values; see `model`.

These classes are apart from `model`, because each one adds half a millisecond to a verb's start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_cli.rest.model import Json, TaskId, as_list, as_object, bind, member


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """A task and the configuration its connector made for it."""

    id: TaskId
    config: Mapping[str, str | None]
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed plugin; types: source, sink, converter, transformation, ..."""

    class_name: str = member("class")
    type: str
    version: str | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One configuration key that a plugin defines."""

    name: str
    type: str
    required: bool = False
    default_value: str | None = None
    importance: str = ""
    documentation: str = ""
    group: str | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldErrors:
    """The errors that validation found in one key."""

    name: str
    value: str | None = None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The answer of validation; only keys with errors are kept in `fields`.

    `defined` are the keys that connector, converters, transformations and predicates define.
    """

    error_count: int
    fields: tuple[FieldErrors, ...]
    defined: frozenset[str] = frozenset()
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevel:
    """A logger's level; `last_modified` in milliseconds since the epoch, None when never set."""

    name: str
    level: str | None = None
    last_modified: int | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The answer of `GET /health`: healthy, starting or unhealthy."""

    url: str
    status: str
    message: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)


def read_validation(value: object) -> Validation:
    """Read ConfigInfos."""
    body = as_object(value)
    fields: list[FieldErrors] = []
    defined: set[str] = set()
    for entry in map(as_object, as_list(body["configs"])):
        if definition := entry.get("definition"):
            defined.add(str(as_object(definition)["name"]))
        if (found := entry.get("value")) and (errors := bind(FieldErrors, found)).errors:
            fields.append(errors)
    return Validation(
        error_count=int(str(body["error_count"])),
        fields=tuple(fields),
        defined=frozenset(defined),
        raw=body,
    )


def read_loggers(body: object) -> list[LoggerLevel]:
    return [bind(LoggerLevel, level, name=name) for name, level in sorted(as_object(body).items())]


def read_health(url: str, value: object) -> Health:
    body = as_object(value)
    # A failed probe answers with the error envelope instead.
    status = str(body["status"]) if "error_code" not in body else "unhealthy"
    return Health(url=url, status=status, message=str(body["message"]), raw=body)
