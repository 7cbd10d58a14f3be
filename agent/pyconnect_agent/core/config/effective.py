"""The configuration in force, as an operator may see it: without secrets, with each value's source.

No Kafka counterpart; a Java worker prints its configuration to the log at its start.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote, unquote

from pyconnect_agent.core.config.variables import SHORTEST_SECRET, mask
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_api.configdef import ConfigType, convert_to_string
from pyconnect_clients.config_values import is_secret_key, mask_secrets, secrets_in

HIDDEN = "[hidden]"
"""The text that Kafka shows for a password."""

_SWITCHES = frozenset({"true", "false", "none", "null"})
_REFERENCE = re.compile(r"\$\{([^}:]+):[^}]*\}")
_VALUES = ("value", "default_value")
_ENVIRONMENT_PROVIDER = "EnvVarConfigProvider"


class ConfigSource(Enum):
    """The source of a value."""

    FILE = "file"
    ENVIRONMENT = "env"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveValue:
    """One key with its default, or its value as in the file: unresolved, with secrets hidden."""

    name: str
    value: str | None
    source: ConfigSource

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "source": self.source.value}


def effective_values(
    config: WorkerConfig, written: Mapping[str, str]
) -> tuple[EffectiveValue, ...]:
    """Return every key that is known or is in the file, sorted; `written` is the file's content."""
    known = config.definition().keys
    environment = {
        provider
        for provider in map(str.strip, written.get("config.providers", "").split(","))
        if written.get(f"config.providers.{provider}.class", "").endswith(_ENVIRONMENT_PROVIDER)
    }
    values = []
    for name in sorted({*known, *written}):
        key = known.get(name)
        password = key is not None and key.type is ConfigType.PASSWORD
        if name in written:
            text: str | None = written[name]
            providers = {found[1] for found in _REFERENCE.finditer(written[name])}
            source = ConfigSource.ENVIRONMENT if providers & environment else ConfigSource.FILE
        else:
            assert key is not None
            text = convert_to_string(key.default, key.type) if key.has_default else None
            source = ConfigSource.DEFAULT
        values.append(
            EffectiveValue(name=name, value=_shown(name, text, password=password), source=source)
        )
    return tuple(values)


def _shown(name: str, value: str | None, *, password: bool) -> str | None:
    """Return a value without secrets; a reference is shown, because it holds no secret itself."""
    if not value or _REFERENCE.fullmatch(value.strip()):
        return value
    if password or is_secret_key(name):
        return HIDDEN
    return mask_secrets(value, HIDDEN)


def literal_secrets(
    config: Mapping[str, str | None], passwords: Collection[str] = ()
) -> dict[str, str]:
    """Return the plain-text secrets of a config, each with its replacement text.

    `passwords`: keys that are secrets whatever their names are.
    """
    found = set()
    for name, value in config.items():
        if not value or value.lower() in _SWITCHES:
            continue
        if (name in passwords or is_secret_key(name)) and not _REFERENCE.search(value):
            found |= {value, value.strip()}
        found |= secrets_in(value)
    # Clients and representations write secrets in other forms.
    forms = {unquote(text) for text in found} | {quote(text, safe="") for text in found}
    escaped = {json.dumps(text, ensure_ascii=False)[1:-1] for text in found}
    return {secret: HIDDEN for secret in found | forms | escaped if len(secret) >= SHORTEST_SECRET}


def shown_config(
    config: Mapping[str, str | None], passwords: Collection[str]
) -> dict[str, str | None]:
    """Return a connector's config with the values of possible secrets hidden."""
    return {name: _shown(name, value, password=name in passwords) for name, value in config.items()}


def shown_document(document: object, secrets: Mapping[str, str]) -> object:
    """Return a JSON document in which every value that may be a secret, by its name, is hidden.

    `secrets`: the result of `literal_secrets`, hidden in all texts. In validation answers, name and
    value are separate members, and the definition's type marks a password.
    """
    match document:
        case str():
            return mask(document, secrets)
        case list():
            return [shown_document(item, secrets) for item in document]
        case {"definition": {"type": "PASSWORD"}, "value": {"value": str(text), **value}, **others}:
            hidden = {**secrets, **({text: HIDDEN} if len(text) >= SHORTEST_SECRET else {})}
            shown = {**value, "value": HIDDEN, "recommended_values": []}
            return shown_document({**others, "value": shown}, hidden)
        case dict():
            named = document.get("name")
            members: dict[object, object] = {}
            for name, member in document.items():
                if isinstance(member, str):
                    # A member `value` belongs to the key that the member `name` names.
                    key = named if name in _VALUES and isinstance(named, str) else name
                    members[name] = mask(_shown(key, member, password=False) or "", secrets)
                else:
                    members[name] = shown_document(member, secrets)
            return members
    return document
