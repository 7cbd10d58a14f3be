"""References to config providers in configuration values: ``${provider:[path:]key}``.

Corresponds to ``ConfigTransformer`` (KIP-297) and to ``ConfigReverseTransformer`` of Kafka Connect.
Providers do IO, so this module calls a look-up function instead.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyconnect_api.config_provider import ConfigData
from pyconnect_clients.config_values import (
    Variable,
    find_references,
    find_variables,
    replace_variables,
)

SHORTEST_SECRET = 4

Lookup: TypeAlias = Callable[[str, str, frozenset[str]], ConfigData | None]
"""``(provider, path, keys)`` -> the values of the provider; None without such a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """A configuration with its references replaced.

    ``values`` may hold secrets and is not part of the text form. ``secret_keys``: the keys in
    whose values a reference was replaced. ``ttls_ms`` maps a provider's path to the time
    after which its values should be read again. ``secrets`` maps secret texts to their replacements
    (`mask`).
    """

    values: dict[str, str | None] = field(repr=False)
    secret_keys: frozenset[str]
    ttls_ms: Mapping[str, int]
    secrets: Mapping[str, str] = field(repr=False)


def has_variables(text: str | None) -> bool:
    """Return whether a value has a part that looks like a reference."""
    return text is not None and bool(find_variables(text))


def resolve(config: Mapping[str, str | None], lookup: Lookup) -> ResolvedConfig:
    """Replace references in one pass; each path of each provider is looked up once.

    A reference stays as it is when the provider is unknown or does not have the key. Exceptions of
    ``lookup`` are raised.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    for text in config.values():
        for variable in find_variables(text or ""):
            wanted.setdefault((variable.provider, variable.path), set()).add(variable.key)
    found: dict[Variable, str] = {}
    ttls: dict[str, int] = {}
    for (provider, path), keys in sorted(wanted.items()):
        data = lookup(provider, path, frozenset(keys))
        if data is None:
            continue
        found |= {Variable(provider, path, key): text for key, text in data.data.items()}
        if data.ttl_ms is not None and data.ttl_ms >= 0:
            ttls[path] = data.ttl_ms
    values = {
        name: None if text is None else replace_variables(text, found)
        for name, text in config.items()
    }
    return ResolvedConfig(
        values=values,
        secret_keys=frozenset(name for name, text in config.items() if values[name] != text),
        ttls_ms=ttls,
        secrets=_secrets(config, values, found),
    )


def restore_references(
    raw_connector_config: Mapping[str, str | None], task_config: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return a task configuration with the connector's references in place of their values.

    A key whose raw value in the connector's configuration holds a reference gets that raw value,
    so no secret is ever stored.
    """
    restored = dict(task_config)
    for name, raw in raw_connector_config.items():
        if raw is not None and name in restored and has_variables(raw):
            restored[name] = raw
    return restored


def mask(text: str, secrets: Mapping[str, str]) -> str:
    """Return ``text`` with the texts of providers replaced by their references.

    For messages and tracebacks that may quote values; ``secrets`` is that of a `ResolvedConfig`.
    """
    found = [re.escape(each) for each in sorted(secrets, key=len, reverse=True) if each in text]
    # In one pass: a short secret may be part of a reference that was inserted.
    return re.sub("|".join(found), lambda match: secrets[match[0]], text) if found else text


def _secrets(
    config: Mapping[str, str | None],
    values: Mapping[str, str | None],
    found: Mapping[Variable, str],
) -> dict[str, str]:
    """Return the resolved values and the providers' texts in them, also trimmed and escaped.

    Parsing trims, and representations and JSON escape. Texts shorter than four characters are left
    out: to replace them would garble a message and hide nothing.
    """
    shown: dict[str, str] = {}
    for name, raw in config.items():
        value = values[name]
        if raw is None or value is None or value == raw:
            continue
        shown[value] = raw
        for reference, variable in find_references(raw):
            if variable in found:
                shown[found[variable]] = reference
    shown |= {text.strip(): reference for text, reference in shown.items()}
    shown |= {_escaped(text): _escaped(reference) for text, reference in shown.items()}
    return {text: reference for text, reference in shown.items() if len(text) >= SHORTEST_SECRET}


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
