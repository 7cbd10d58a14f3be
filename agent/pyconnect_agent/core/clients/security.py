"""Security of a Kafka client, from Java's properties, with the agent's errors and warnings.

Layer: core. `pyconnect_clients` reads the properties, for the other packages too.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.core.config.client_keys import is_default
from pyconnect_api.errors import ConfigException
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import JaasEntry
from pyconnect_clients.jaas import parse_jaas as read_jaas
from pyconnect_clients.security import Security, parse_security


def client_security(config: Mapping[str, str | None]) -> tuple[Security, list[str]]:
    """Return the security of a client, and warnings of properties that have no effect.

    Raises ConfigException for a property that cannot be used.
    """
    try:
        security = parse_security(config)
    except ClientPropertyError as exc:
        raise ConfigException(f"Invalid client configuration: {exc}") from exc
    return security, [
        f"The client setting '{name}' has no effect in this worker"
        for name in security.without_effect
        if not is_default(name, (config[name] or "").strip())
    ]


def parse_jaas(text: str) -> JaasEntry:
    """Return the entry of ``sasl.jaas.config``; raises ConfigException."""
    try:
        return read_jaas(text)
    except ClientPropertyError as exc:
        raise ConfigException(f"Invalid client configuration: {exc}") from exc
