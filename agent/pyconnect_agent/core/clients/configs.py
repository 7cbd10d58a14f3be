"""The configuration of every Kafka client the worker makes, in the keys of Java's clients.

Corresponds to ``Worker.baseProducerConfigs``, ``baseConsumerConfigs``, ``adminConfigs``,
``exactlyOnceSourceTaskProducerConfigs`` and to the client settings of the three backing stores of
Kafka Connect (KIP-458, KIP-618). `librdkafka_config` translates the result; `build` does both.

Of the worker's unprefixed settings, connector clients take only ``bootstrap.servers``; connectors'
admin clients take all of them. The worker's own clients take all but ``transactional.id``, which
would break those that are not transactional.

kafka-python, the client of the group protocol, gets only the network settings; timeouts of the
group come from the worker's typed configuration. Security is passed as a value: TLS needs objects
that only the adapter can make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig, client_security, translate
from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS, ClientKind
from pyconnect_agent.core.config.client_overrides import (
    OverridePolicy,
    check_overrides,
    overrides_of,
)
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_api.configdef import ConfigType, parse_type
from pyconnect_clients.connect_names import SINK_GROUP_PREFIX
from pyconnect_clients.security import Security

_FOR_LEADER = (
    "for the worker's config topic producer when exactly-once source support is enabled or in "
    "preparation to be enabled"
)
_FOR_TASKS = "for connectors when exactly-once source support is enabled"
_FOR_OFFSETS_CONSUMER = (
    "for source connectors' offset consumers when exactly-once source support is enabled"
)
_FOR_WORKER_OFFSETS = (
    "for the worker offsets topic consumer when exactly-once source support is enabled"
)
_FOR_CONFIGS = "for the worker's config topic consumer when exactly-once source support is enabled"
_CLIENT_PREFIXES = ("admin.", "producer.", "consumer.")
_READ_COMMITTED = "read_committed"
MAX_REQUEST_BYTES = 1_048_576
"""Java's default of `max.request.size`, so that workers of both kinds write the same records."""
_PLAIN_PRODUCER = {
    "acks": "all",
    "max.in.flight.requests.per.connection": "1",
    "enable.idempotence": "false",
    "delivery.timeout.ms": str(2**31 - 1),
}


_STATUS_DELIVERY_MS = 10_000
"""After this time a send fails, and the store checks whether the status is still up to date."""


class InternalTopic(Enum):
    """The topics of a distributed worker; the value is the suffix of their clients' ids."""

    CONFIGS = "configs"
    OFFSETS = "offsets"
    STATUSES = "statuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """A complete Java client configuration; ``warnings`` name user settings that were replaced."""

    kind: ClientKind
    java_config: Mapping[str, str | None] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def forced(self, key: str, value: str, why: str, *, exact: bool = False) -> ClientConfig:
        """Return the configuration with ``key`` set, and a warning if a user's value is lost."""
        given = self.java_config.get(key)
        same = given is None or (given == value if exact else given.lower() == value.lower())
        warning = (
            f"The value '{given}' for the '{key}' property will be ignored as it cannot be "
            f"overridden {why}. The value '{value}' will be used instead."
        )
        return replace(
            self,
            java_config={**self.java_config, key: value},
            warnings=self.warnings if same else (*self.warnings, warning),
        )

    def build(self, passthrough: Mapping[str, str] | None = None) -> LibrdkafkaConfig:
        """Return the settings of the librdkafka client, with the warnings of both steps."""
        built = translate(self.java_config, self.kind, passthrough=passthrough)
        return replace(built, warnings=(*self.warnings, *built.warnings))


def internal_producer(worker: DistributedConfig, topic: InternalTopic) -> ClientConfig:
    """Return the plain, non-transactional producer for one of the worker's topics.

    The status producer does not retry: the status store decides about each retry itself.
    """
    forced = dict(_PLAIN_PRODUCER)
    if topic is InternalTopic.STATUSES:
        forced["delivery.timeout.ms"] = str(_STATUS_DELIVERY_MS)
        forced["retries"] = "0"
    return _internal(worker, ClientKind.PRODUCER, topic.value, forced)


def config_record_limit(worker: WorkerConfig) -> int:
    """Return the largest size of a record of the config topic, in bytes of key and value."""
    return int(worker.originals.get("max.request.size") or MAX_REQUEST_BYTES)


def leader_producer(worker: DistributedConfig) -> ClientConfig:
    """Return the transactional producer through which the leader writes to the config topic."""
    config = _internal(
        worker,
        ClientKind.PRODUCER,
        f"{InternalTopic.CONFIGS.value}-leader",
        {"acks": "all", "max.in.flight.requests.per.connection": "5"},
        transactional_id=worker.originals.get("transactional.id"),
    )
    return config.forced("enable.idempotence", "true", _FOR_LEADER).forced(
        "transactional.id", worker.leader_transactional_id, _FOR_LEADER, exact=True
    )


def internal_consumer(worker: DistributedConfig, topic: InternalTopic) -> ClientConfig:
    """Return the consumer that tails one of the worker's topics; it never commits.

    The config and offsets topics are read committed only when exactly-once support is enabled, not
    while it is prepared: workers of one group compare the offsets they have read up to, and an
    aborted record counts for workers that read uncommitted.
    """
    config = _internal(
        worker,
        ClientKind.CONSUMER,
        topic.value,
        {"auto.offset.reset": "earliest", "enable.auto.commit": "false"},
    )
    if topic is InternalTopic.STATUSES or not worker.exactly_once_source_enabled:
        return config
    why = _FOR_CONFIGS if topic is InternalTopic.CONFIGS else _FOR_WORKER_OFFSETS
    return config.forced("isolation.level", _READ_COMMITTED, why)


def shared_admin(worker: DistributedConfig) -> ClientConfig:
    """Return the admin client for the worker's own topics."""
    return _internal(worker, ClientKind.ADMIN, "shared-admin", {})


def worker_admin(worker: WorkerConfig, client_id: str) -> ClientConfig:
    """Return an admin client that asks about the cluster itself, in any mode."""
    return ClientConfig(
        kind=ClientKind.ADMIN,
        java_config=_unprefixed(worker, ClientKind.ADMIN) | {"client.id": client_id},
    )


def connector_producer(
    worker: WorkerConfig, connector_config: Mapping[str, str | None], client_id: str
) -> ClientConfig:
    """Return the producer of an at-least-once source task or of a dead letter queue.

    Raises ConfigException when the worker's policy forbids one of the connector's overrides.
    """
    return _layered(
        worker, connector_config, ClientKind.PRODUCER, _producer_base(worker, client_id)
    )


def exactly_once_producer(
    worker: WorkerConfig,
    connector_config: Mapping[str, str | None],
    client_id: str,
    transactional_id: str,
) -> ClientConfig:
    """Return the transactional producer of an exactly-once source task; errors as above."""
    base = _producer_base(worker, client_id)
    del base["enable.idempotence"]
    config = _layered(worker, connector_config, ClientKind.PRODUCER, base)
    return config.forced("enable.idempotence", "true", _FOR_TASKS).forced(
        "transactional.id", transactional_id, _FOR_TASKS, exact=True
    )


def sink_consumer(
    worker: WorkerConfig, connector: str, connector_config: Mapping[str, str | None], client_id: str
) -> ClientConfig:
    """Return the consumer of a sink task; its group is ``connect-<connector>`` unless overridden.

    Raises ConfigException when the worker's policy forbids one of the connector's overrides.
    """
    base = _consumer_base(worker, connector, client_id)
    return _layered(worker, connector_config, ClientKind.CONSUMER, base)


def source_offsets_consumer(
    worker: WorkerConfig, connector: str, connector_config: Mapping[str, str | None], client_id: str
) -> ClientConfig:
    """Return the consumer with which a source connector or task reads its own offsets topic.

    It always reads committed with exactly-once support. Without, a user may override the setting.
    """
    base = _consumer_base(worker, connector, client_id) | {"isolation.level": _READ_COMMITTED}
    config = _layered(worker, connector_config, ClientKind.CONSUMER, base)
    if worker.exactly_once_source_enabled:
        return config.forced("isolation.level", _READ_COMMITTED, _FOR_OFFSETS_CONSUMER)
    return config


def connector_admin(
    worker: WorkerConfig, connector_config: Mapping[str, str | None], client_id: str
) -> ClientConfig:
    """Return the admin client of a connector: topic creation, offsets, dead letter queue.

    Raises ConfigException when the worker's policy forbids one of the connector's overrides.
    """
    base = _unprefixed(worker, ClientKind.ADMIN) | _base(worker, client_id)
    return _layered(worker, connector_config, ClientKind.ADMIN, base)


def producers_admin(
    worker: WorkerConfig, connector_config: Mapping[str, str | None], client_id: str
) -> ClientConfig:
    """Return an admin client that connects as the connector's producer does; errors as above."""
    producer = connector_producer(worker, connector_config, client_id)
    return ClientConfig(kind=ClientKind.ADMIN, java_config=_known(producer, ClientKind.ADMIN))


def fencing_producer(
    worker: WorkerConfig,
    connector_config: Mapping[str, str | None],
    client_id: str,
    transactional_id: str,
) -> ClientConfig:
    """Return a producer whose only purpose is to initialise, and so fence, a transactional id.

    It connects as the connector's admin client does, as Java's fencing call would.
    """
    admin = connector_admin(worker, connector_config, client_id)
    config = _known(admin, ClientKind.PRODUCER)
    config.pop("retries", None)
    return ClientConfig(
        kind=ClientKind.PRODUCER,
        java_config=config
        | {"transactional.id": transactional_id, "enable.idempotence": "true", "acks": "all"},
    )


def _base(worker: WorkerConfig, client_id: str) -> dict[str, str]:
    return {"bootstrap.servers": ",".join(worker.bootstrap_servers), "client.id": client_id}


def _producer_base(worker: WorkerConfig, client_id: str) -> dict[str, str]:
    return _PLAIN_PRODUCER | _base(worker, client_id) | {"max.block.ms": str(2**63 - 1)}


def _consumer_base(worker: WorkerConfig, connector: str, client_id: str) -> dict[str, str]:
    return _base(worker, client_id) | {
        "group.id": f"{SINK_GROUP_PREFIX}{connector}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
    }


def _known(config: ClientConfig, kind: ClientKind) -> dict[str, str | None]:
    known = CLIENT_CONFIG_DEFS[kind].keys
    return {name: value for name, value in config.java_config.items() if name in known}


def _layered(
    worker: WorkerConfig,
    connector_config: Mapping[str, str | None],
    kind: ClientKind,
    base: Mapping[str, str],
) -> ClientConfig:
    check_overrides(connector_config, kind, OverridePolicy.of_worker(worker))
    return ClientConfig(
        kind=kind,
        java_config={
            **base,
            **worker.with_prefix(f"{kind.name.lower()}."),
            **overrides_of(connector_config, kind),
        },
    )


def _internal(
    worker: DistributedConfig,
    kind: ClientKind,
    id_suffix: str,
    fixed: Mapping[str, str],
    *,
    transactional_id: str | None = None,
) -> ClientConfig:
    config = _unprefixed(worker, kind)
    config.pop("transactional.id", None)
    if transactional_id is not None:
        config["transactional.id"] = transactional_id
    client_id = worker.client_id_base + id_suffix
    return ClientConfig(kind=kind, java_config=config | dict(fixed) | {"client.id": client_id})


def _unprefixed(worker: WorkerConfig, kind: ClientKind) -> dict[str, str]:
    """Return the worker's unprefixed properties that a client of this kind knows."""
    known = CLIENT_CONFIG_DEFS[kind].keys
    config = {
        name: value
        for name, value in worker.originals.items()
        if name in known and not name.startswith(_CLIENT_PREFIXES)
    }
    return config | {"bootstrap.servers": ",".join(worker.bootstrap_servers)}


_NUMBERS = (
    "connections.max.idle.ms", "metadata.max.age.ms", "reconnect.backoff.max.ms",
    "reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.ms",
)  # fmt: skip
_DEFAULTS = {
    # kafka-python's default is 30 s: after an outage a worker would be away for longer than its
    # session, and its work would wait for scheduled.rebalance.max.delay.ms.
    "reconnect.backoff.max.ms": "1000",
    "request.timeout.ms": "40000",
}
"""Kafka Connect's defaults where kafka-python's differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPythonConfig:
    """Keyword arguments for kafka-python's clients, and the security to add to them."""

    arguments: Mapping[str, object]
    security: Security = field(default_factory=Security)
    warnings: tuple[str, ...] = ()


def kafka_python_config(
    java_config: Mapping[str, str | None], *, client_id: str
) -> KafkaPythonConfig:
    """Translate a client's properties. Raises ConfigException for one that cannot be used."""
    config = {name: value.strip() for name, value in java_config.items() if value is not None}
    servers = parse_type(
        "bootstrap.servers", config.get("bootstrap.servers", "localhost:9092"), ConfigType.LIST
    )
    arguments: dict[str, object] = {"bootstrap_servers": servers, "client_id": client_id}
    for key in _NUMBERS:
        text = config.get(key, _DEFAULTS.get(key))
        if text is not None:
            arguments[key.replace(".", "_")] = parse_type(key, text, ConfigType.LONG)
    for key in ("receive.buffer.bytes", "send.buffer.bytes"):
        size = parse_type(key, config.get(key), ConfigType.INT)
        if isinstance(size, int) and size >= 0:
            arguments[key.replace(".", "_")] = size
    security, warnings = client_security(config)
    return KafkaPythonConfig(arguments=arguments, security=security, warnings=tuple(warnings))
