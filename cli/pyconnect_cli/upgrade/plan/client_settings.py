"""Client settings that exactly-once ignores or that break it. Pure.

Layers: a connector's producer and consumer have the worker's `producer.*` and `consumer.*`, then
the connector's overrides; the leader's producer has the worker's keys without a prefix. Without the
file of a Java worker only the connector's own layer is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyconnect_clients.acls.facts import Config, client_config, client_layers, server_set
from pyconnect_clients.acls.model import Role

MOST_IN_FLIGHT = 5
_FLUSH_INTERVAL_MS = "60000"
_ALL = frozenset({"all", "-1"})
_CLIENTS = (Role.PRODUCER, Role.CONSUMER, Role.ADMIN)


def replaced(worker: Config, connector: Config) -> tuple[str, ...]:
    """Return a source connector's settings that are ignored once it is exactly-once."""
    return (
        *_idempotence(client_layers(Role.PRODUCER, worker, connector)),
        *_isolation(client_layers(Role.CONSUMER, worker, connector)),
    )


def breaking(worker: Config, connector: Config) -> tuple[str, ...]:
    """Return settings that its transactional producer refuses, so that its tasks would fail."""
    return tuple(_breaking(client_layers(Role.PRODUCER, worker, connector)))


def replaced_of_leader(worker: Config, *, enabled: bool) -> tuple[str, ...]:
    """Return a worker's own settings that are ignored; reading changes only at `enabled`."""
    keys = {key: (key, value) for key, value in worker.items()}
    return (*_idempotence(keys), *(_isolation(keys) if enabled else ()))


def breaking_of_leader(worker: Config) -> tuple[str, ...]:
    """Return settings with which a leader could not write; acks and in-flight ones are fixed."""
    return tuple(_retries({key: (key, value) for key, value in worker.items()}))


def clusters(worker: Config, connector: Config) -> frozenset[frozenset[str]]:
    """Return the sets of addresses that a connector's clients have, as far as they are known."""
    found = (client_config(role, worker, connector).get("bootstrap.servers") for role in _CLIENTS)
    return frozenset(server_set(servers) for servers in found if servers)


def transaction_timeout_ms(worker: Config, connector: Config) -> int | None:
    """Return the configured timeout of a task's transactions; None: the client's default."""
    found = client_layers(Role.PRODUCER, worker, connector).get("transaction.timeout.ms")
    return _number(found[1]) if found else None


def boundary_interval_ms(worker: Config, connector: Config) -> int | None:
    """Return the duration of transactions at `transaction.boundary=interval`; None: not known.

    Without a value of the connector the worker's flush interval counts.
    """
    own = connector.get("transaction.boundary.interval.ms")
    return _number(own or worker.get("offset.flush.interval.ms") or _FLUSH_INTERVAL_MS)


Layers = Mapping[str, tuple[str, str | None]]
"""By the client's own key: the key as it is written, and its value."""


def _idempotence(layers: Layers) -> Iterator[str]:
    key, value = layers.get("enable.idempotence", ("", "true"))
    if _text(value) != "true":
        yield f"{key}={value}"
    if "transactional.id" in layers:
        key, value = layers["transactional.id"]
        yield f"{key}={value}"


def _isolation(layers: Layers) -> Iterator[str]:
    key, value = layers.get("isolation.level", ("", "read_committed"))
    if _text(value) != "read_committed":
        yield f"{key}={value}"


def _breaking(layers: Layers) -> Iterator[str]:
    key, value = layers.get("acks", ("", "all"))
    if _text(value) not in _ALL:
        yield f"{key}={value}"
    yield from _retries(layers)
    key, value = layers.get("max.in.flight.requests.per.connection", ("", None))
    if (_number(value) or 0) > MOST_IN_FLIGHT:
        yield f"{key}={value}"


def _retries(layers: Layers) -> Iterator[str]:
    key, value = layers.get("retries", ("", None))
    if _number(value) == 0:
        yield f"{key}={value}"


def _text(value: str | None) -> str:
    return (value or "").strip().lower()


def _number(value: str | None) -> int | None:
    text = _text(value)
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None
