"""Addresses of the REST server, the address that other workers use, and headers of responses.

Corresponds to ``RestServerConfig`` and ``RestServer.advertisedUrl`` of Kafka Connect, and to the
header rules of Jetty's ``HeaderFilter``; error texts are theirs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyconnect_api.config_types import LambdaValidator
from pyconnect_api.errors import ConfigException

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.DOTALL)
_EXAMPLE = "http://localhost:8080,https://localhost:8443"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address to listen on: protocol ``http`` or ``https``; an empty host means all interfaces.

    Port 0 means any free port.
    """

    protocol: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listener:
        """Return the listener of ``protocol://host:port``; raises ConfigException."""
        found = _LISTENER.fullmatch(text)
        if not found:
            raise ConfigException(
                "Listener doesn't have the right format (protocol://hostname:port)."
            )
        protocol = found[1].lower()
        if protocol not in ("http", "https"):
            raise ConfigException('Listener protocol must be either "http" or "https".')
        return cls(protocol=protocol, host=found[2], port=int(found[3]))

    @property
    def netloc(self) -> str:
        """``host:port`` in the form that URLs have."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def valid_listeners(key: str, *, optional: bool = False) -> LambdaValidator:
    """Return the validator of a list of URLs; ``optional``: it may be unset or empty as well."""

    def check(_name: str, value: object) -> None:
        if optional and not value:
            return
        if not isinstance(value, Sequence) or not value:
            raise ConfigException(
                f"Invalid value for {key}, at least one URL is expected, ex: {_EXAMPLE}."
            )
        if any(not str(item).strip() for item in value):
            raise ConfigException(f"Empty URL found when parsing {key} list.")

    return LambdaValidator(check, f"List of comma-separated URLs, ex: {_EXAMPLE}.")


def advertised_url(
    listeners: Sequence[Listener],
    *,
    default_host: str,
    host_name: str | None = None,
    port: int | None = None,
    protocol: str | None = None,
) -> str:
    """Return the URL at which other workers reach this one, with a trailing slash.

    ``listeners``: the bound ones, with their real ports. ``host_name``, ``port`` and ``protocol``
    are the values of ``rest.advertised.host.name``, ``.port`` and ``.listener``; ``default_host``
    replaces the host of a listener on every interface.
    """
    if protocol:
        chosen = protocol.lower()
    else:
        chosen = "https" if {listener.protocol for listener in listeners} == {"https"} else "http"
    listener = next((item for item in listeners if item.protocol == chosen), None)
    if listener is None:
        raise ConfigException(
            f"No listener has the advertised protocol {chosen}: add one to listeners, "
            "or change rest.advertised.listener."
        )
    advertised = Listener(
        protocol=chosen,
        host=host_name or listener.host or default_host,
        port=listener.port if port is None else port,
    )
    return f"{chosen}://{advertised.netloc}/"


class HeaderAction(Enum):
    """The action of a rule: set or add a header, with a text or with a date relative to now."""

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
    """Return the rules of a comma-separated list of ``[action] [header name]:[header value]``.

    A rule that contains a comma is put into double quotes. Blank text has no rules. Raises
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
    digits = value.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit()
    if action in (HeaderAction.SET_DATE, HeaderAction.ADD_DATE) and not is_number:
        raise ConfigException(
            f"Invalid header value '{value}'. A date is given as milliseconds from now"
        )
    return HeaderRule(action=action, name=name, value=value)


VALID_HEADER_RULES = LambdaValidator(
    lambda _name, value: parse_header_rules(str(value or "")),
    "Comma-separated header rules, where each header rule is of the form "
    "'[action] [header name]:[header value]' and optionally surrounded by double quotes "
    "if any part of a header rule contains a comma",
)
