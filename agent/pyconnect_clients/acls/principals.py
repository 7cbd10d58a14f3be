"""The keys that determine a client's cluster and principal, from a worker and a connector. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_clients.acls.model import Role

Config = Mapping[str, str | None]

SECURITY_KEYS = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
_KEYS = ("bootstrap.servers", *SECURITY_KEYS, "group.id")


def client_layers(
    role: Role, worker: Config, connector: Config
) -> dict[str, tuple[str, str | None]]:
    """Return the worker's keys for one kind of connectors' clients, and the connector's overrides.

    By the client's own key: the key as it is written, and its value.
    """
    return {
        key.removeprefix(prefix): (key, value)
        for config, prefix in ((worker, f"{role.value}."), (connector, f"{role.value}.override."))
        for key, value in config.items()
        if key.startswith(prefix)
    }


def client_config(role: Role, worker: Config, connector: Config) -> dict[str, str | None]:
    """Return the keys that determine cluster and principal of a connector's client; no others.

    Producers and consumers take only `producer.*` or `consumer.*` and the addresses from the
    worker; admin clients also take all keys without a prefix.
    """
    unprefixed = _KEYS[:-1] if role is Role.ADMIN else _KEYS[:1]
    config = {key: worker[key] for key in unprefixed if key in worker}
    layers = client_layers(role, worker, connector)
    return config | {key: layers[key][1] for key in _KEYS if key in layers}


def worker_client_config(worker: Config) -> dict[str, str | None]:
    """Return the same for the worker's own clients."""
    keys = ("bootstrap.servers", *SECURITY_KEYS)
    return {key: worker[key] for key in keys if key in worker}


def overrides_security(role: Role, connector: Config) -> bool:
    """Return whether a connector overrides the credentials of one kind of client."""
    return any(f"{role.value}.override.{key}" in connector for key in SECURITY_KEYS)


def server_set(servers: str | None) -> frozenset[str]:
    """Return addresses as a set: their order does not matter."""
    return frozenset(part.strip() for part in (servers or "").split(",") if part.strip())
