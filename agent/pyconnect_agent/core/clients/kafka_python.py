"""Settings of kafka-python, the client of the group protocol.

Layer: core. Networking only; timeouts of the group come from the worker's typed configuration.
Security is handed over as a value: TLS needs objects that only the adapter can make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.core.clients.librdkafka import client_security
from pyconnect_api.configdef import ConfigType, parse_type
from pyconnect_clients.security import Security

_NUMBERS = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
}
_DEFAULTS = {
    # kafka-python's is 30 s: after an outage a worker would be away for longer than its session,
    # and its work would wait for scheduled.rebalance.max.delay.ms.
    "reconnect.backoff.max.ms": "1000",
    "request.timeout.ms": "40000",
}
"""Connect's, where kafka-python has others."""
_BUFFERS = {
    "receive.buffer.bytes": "receive_buffer_bytes",
    "send.buffer.bytes": "send_buffer_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPythonConfig:
    """Keyword arguments for kafka-python's clients, and the security to be added to them."""

    arguments: Mapping[str, object]
    security: Security = field(default_factory=Security)
    warnings: tuple[str, ...] = ()


def kafka_python_config(
    java_config: Mapping[str, str | None], *, client_id: str
) -> KafkaPythonConfig:
    """Translate a client's properties; raises ConfigException for one that cannot be used."""
    config = {name: value.strip() for name, value in java_config.items() if value is not None}
    servers = parse_type(
        "bootstrap.servers", config.get("bootstrap.servers", "localhost:9092"), ConfigType.LIST
    )
    arguments: dict[str, object] = {"bootstrap_servers": servers, "client_id": client_id}
    for key, argument in _NUMBERS.items():
        text = config.get(key, _DEFAULTS.get(key))
        if text is not None:
            arguments[argument] = parse_type(key, text, ConfigType.LONG)
    for key, argument in _BUFFERS.items():
        size = parse_type(key, config.get(key), ConfigType.INT)
        if isinstance(size, int) and size >= 0:
            arguments[argument] = size
    security, warnings = client_security(config)
    return KafkaPythonConfig(arguments=arguments, security=security, warnings=tuple(warnings))
