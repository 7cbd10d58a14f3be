"""Construction of confluent-kafka's clients from librdkafka's configuration.

Java client properties were translated before (`core/clients/`). This module reads key stores, waits
for the first token of a login, and adds log and error callbacks. librdkafka's lines go to the
Python logger of the client's kind. Connection errors are warnings, since librdkafka reconnects by
itself, up to twenty times a second; a repeated error of a client is logged only at intervals. Both
callbacks run on the thread that polls the client.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pyconnect_agent.core.clients.configs import MAX_REQUEST_BYTES, KafkaPythonConfig
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_clients.brokers.failures import CLIENT_ERRORS, error_of
from pyconnect_clients.connections import secured_arguments, with_token_callback
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import refused_certificate, with_pem
from pyconnect_clients.security import (
    KEY_STORE,
    TRUST_STORE,
    PemCertificates,
    PemFile,
    PemIdentity,
    StoreFile,
    Tls,
    tls_settings,
)

ClientConfig = Mapping[str, Any]
"""librdkafka's property names and values."""

REPEAT_AFTER_S = 60.0


def create_producer(config: ClientConfig) -> Producer:
    """Return a producer; raise WorkerConfigError if librdkafka refuses the configuration."""
    settings = {"message.max.bytes": MAX_REQUEST_BYTES, **config}
    producer: Producer = _create(Producer, settings, "producer")
    return producer


def create_consumer(config: ClientConfig) -> Consumer:
    """Return a consumer; raise WorkerConfigError if librdkafka refuses the configuration."""
    consumer: Consumer = _create(Consumer, config, "consumer")
    return consumer


def create_admin(config: ClientConfig) -> AdminClient:
    """Return an admin client; raise WorkerConfigError if librdkafka refuses the configuration.

    librdkafka treats an admin client as a producer, whose requests make brokers create topics;
    Java's admin client does not, so the setting is switched off.
    """
    settings = {**config, "allow.auto.create.topics": False}
    admin: AdminClient = _create(AdminClient, settings, "admin client")
    return admin


def client_arguments(config: KafkaPythonConfig) -> dict[str, Any]:
    """Return the arguments of kafka-python's clients; WorkerConfigError for unusable settings."""
    servers = config.arguments.get("bootstrap_servers")
    bootstrap = ",".join(servers) if isinstance(servers, list) else ""
    try:
        return {**config.arguments, **secured_arguments(config.security, bootstrap)}
    except ClientPropertyError as exc:
        raise WorkerConfigError(f"Invalid client configuration: {exc}") from exc


def _create(client_class: Any, config: ClientConfig, kind: str) -> Any:
    client_id = str(config.get("client.id", ""))
    logger = logging.getLogger(f"{__name__}.{kind.replace(' ', '_')}")
    logger.addFilter(_is_not_told_otherwise)
    told_s: dict[str, float] = {}
    tls = _tls(config) if "ssl" in str(config.get("security.protocol", "")).lower() else None

    def log_error(error: Any) -> None:
        now_s = time.monotonic()
        if now_s - told_s.get(error.name(), -REPEAT_AFTER_S) < REPEAT_AFTER_S:
            return
        told_s[error.name()] = now_s
        reason = error.str()
        if tls is not None and ("SSL" in reason or "Disconnected" in reason):
            reason = f"{reason}; {refused_certificate(reason, tls)}"
        logger.warning(
            "Kafka client reported an error",
            extra={"client_id": client_id, "error": error.name(), "reason": reason},
        )

    try:
        settings = with_token_callback(with_key_stores(config))
        return client_class({**settings, "error_cb": log_error}, logger=logger)
    except (ValueError, TypeError, ClientPropertyError, *CLIENT_ERRORS) as exc:
        detail = error_of(exc)
        reason = exc if detail is None else detail.str()
        raise WorkerConfigError(
            f"Failed to construct Kafka {kind} '{client_id}': {reason}"
        ) from exc


def _is_not_told_otherwise(record: logging.LogRecord) -> bool:
    """Return False for librdkafka's own lines of errors that its error callback reports too."""
    return not record.getMessage().startswith("FAIL [")


_NAMES = ("location", "type", "password")


def with_key_stores(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties with PEM texts; raise ClientPropertyError if that fails."""
    trust, identity = _store(config, TRUST_STORE), _store(config, KEY_STORE)
    if trust is None and identity is None:
        return dict(config)
    read = {f"{store}.{name}" for store in (TRUST_STORE, KEY_STORE) for name in _NAMES}
    if identity is not None:
        read.add("ssl.key.password")
    others = {name: value for name, value in config.items() if name not in read}
    tls = Tls(trust=trust, identity=identity, key_password=config.get("ssl.key.password"))
    return {**tls_settings(with_pem(tls)), **others}


def _tls(config: Mapping[str, Any]) -> Tls:
    """Return a client's certificates, in any of the forms of `tls_settings`."""
    trust: PemFile | PemCertificates | StoreFile | None = _store(config, TRUST_STORE)
    if location := config.get("ssl.ca.location"):
        trust = PemFile(location=location)
    elif text := config.get("ssl.ca.pem"):
        trust = PemCertificates(text=text)
    identity: PemFile | PemIdentity | StoreFile | None = _store(config, KEY_STORE)
    if location := config.get("ssl.certificate.location"):
        identity = PemFile(location=location)
    elif chain := config.get("ssl.certificate.pem"):
        identity = PemIdentity(key="", chain=chain)
    return Tls(trust=trust, identity=identity, key_password=config.get("ssl.key.password"))


def _store(config: Mapping[str, Any], store: str) -> StoreFile | None:
    location = config.get(f"{store}.location")
    if location is None:
        return None
    return StoreFile(
        store=store,
        location=location,
        type=config.get(f"{store}.type"),
        password=config.get(f"{store}.password"),
    )
