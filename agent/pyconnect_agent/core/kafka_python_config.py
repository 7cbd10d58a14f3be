"""How to reach the brokers with kafka-python, which serves the group protocol.

Layer: core. Networking and security only; timeouts of the group come from the worker's typed
configuration. PEM texts and OAuth tokens need objects that only the adapter can make, so they are
handed over as values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.core.librdkafka_security import SECURITY_PREFIXES, translate_security
from pyconnect_api.configdef import ConfigType, parse_type

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
_FILES = {
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_LOGIN = {
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPythonConfig:
    """Keyword arguments for kafka-python's clients, and what has to be made into objects.

    ``pem_ca``, ``pem_certificate`` and ``pem_key`` are PEM texts for an SSL context, ``pkcs12``
    the path of a key store for it; ``oauth`` are the ``sasl.oauthbearer.*`` settings in
    librdkafka's words. All may hold secrets.
    """

    arguments: Mapping[str, object] = field(repr=False)
    pem_ca: str | None = field(repr=False, default=None)
    pem_certificate: str | None = field(repr=False, default=None)
    pem_key: str | None = field(repr=False, default=None)
    pkcs12: str | None = None
    oauth: Mapping[str, str] = field(repr=False, default_factory=dict)
    warnings: tuple[str, ...] = ()


def kafka_python_config(
    java_config: Mapping[str, str | None], *, client_id: str
) -> KafkaPythonConfig:
    """Translate a worker's unprefixed properties; raises ConfigException as for librdkafka."""
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
    security, warnings = translate_security(
        {name: value for name, value in config.items() if name.startswith(SECURITY_PREFIXES)}
    )
    arguments["security_protocol"] = security.get("security.protocol", "plaintext").upper()
    for names in (_FILES, _LOGIN):
        arguments |= {names[name]: security[name] for name in names if name in security}
    if security.get("ssl.endpoint.identification.algorithm") == "none":
        arguments["ssl_check_hostname"] = False
    return KafkaPythonConfig(
        arguments=arguments,
        pem_ca=security.get("ssl.ca.pem"),
        pem_certificate=security.get("ssl.certificate.pem"),
        pem_key=security.get("ssl.key.pem"),
        pkcs12=security.get("ssl.keystore.location"),
        oauth={
            name: value
            for name, value in security.items()
            if name.startswith(("sasl.oauthbearer.", "enable.sasl.oauthbearer."))
        },
        warnings=tuple(warnings),
    )
