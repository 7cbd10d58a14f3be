"""The configuration of a worker as typed, immutable values.

Corresponds to ``WorkerConfig``, ``DistributedConfig`` and ``StandaloneConfig`` of Kafka Connect. An
attribute is named like its key, with underscores for dots. `pyconnect_agent.process.config_file`
reads the file; variables must be resolved before parsing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, Self

from pyconnect_agent.core.assign import LeaderIds
from pyconnect_agent.core.config import below
from pyconnect_agent.core.config.agent_keys import AgentKeys
from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS
from pyconnect_agent.core.config.listeners import HeaderRule, Listener, parse_header_rules
from pyconnect_agent.core.config.worker_keys import (
    SSL_CONFIG_DEF,
    distributed_config_def,
    worker_config_def,
)
from pyconnect_agent.core.metric_values import Sampling
from pyconnect_api.configdef import (
    ClassResolver,
    ConfigDef,
    ConfigType,
    Importance,
    invalid_value,
    parse_type,
)
from pyconnect_api.errors import ConfigException
from pyconnect_clients.connect_names import Phase, leader_transactional_id

SHORTEST_KEY_BITS = 40
"""The minimum of Java's key generators."""

HIGHEST_PORT = 65_535
_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?[0-9a-zA-Z\-%._:]*\]?:([0-9]+)")


class ConnectProtocol(Enum):
    """The group's way of assigning work: versions 0, 1 and 2 of Connect's group protocol."""

    EAGER = "eager"
    COMPATIBLE = "compatible"
    SESSIONED = "sessioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """The configuration that every worker has; durations in milliseconds.

    ``originals`` are the given properties with resolved variables; they may hold secrets and are
    therefore not part of the text form. The converter attributes hold class names.
    """

    originals: Mapping[str, str] = field(repr=False)
    bootstrap_servers: tuple[str, ...]
    key_converter: str
    value_converter: str
    header_converter: str
    task_shutdown_graceful_timeout_ms: int
    offset_flush_interval_ms: int
    offset_flush_timeout_ms: int
    plugin_path: tuple[str, ...] | None
    metrics_sample_window_ms: int
    metrics_num_samples: int
    config_providers: tuple[str, ...]
    connector_client_config_override_policy: str
    connector_client_config_override_allowlist: tuple[str, ...]
    topic_creation_enable: bool
    topic_tracking_enable: bool
    topic_tracking_allow_reset: bool
    listeners: tuple[Listener, ...]
    rest_advertised_host_name: str | None
    rest_advertised_port: int | None
    rest_advertised_listener: str | None
    access_control_allow_origin: str
    access_control_allow_methods: str
    response_http_headers_config: tuple[HeaderRule, ...]
    rest_extension_classes: tuple[str, ...]
    java_security_auth_login_config: str | None
    agent_rest_users: str | None = field(repr=False)
    agent_journal_file: str | None
    agent_journal_file_bytes: int
    admin_listeners: tuple[Listener, ...] | None
    """None: the admin endpoints are served on `listeners`; empty: they are not served."""
    agent_metrics_listeners: tuple[Listener, ...]
    agent_admin_basic_auth_file: str | None
    agent_admin_bearer_token_file: str | None
    agent_connect_release: str
    agent_tracing_otlp_endpoint: str | None
    agent_tracing_sample_every: int
    agent_log_kept_bytes: int
    agent_log_dir: str | None
    agent_log_file_bytes: int
    agent_log_file_count: int
    agent_keys: AgentKeys
    """`agent.restart.*` and `agent.limit.*`, which connectors may override."""

    @classmethod
    @cache
    def definition(cls) -> ConfigDef:
        """Return the definition of the keys: one shared object, which must not be changed."""
        return worker_config_def()

    @classmethod
    def parse(cls, props: Mapping[str, str], resolve_class: ClassResolver | None = None) -> Self:
        """Return the typed form of properties; ``resolve_class`` checks that converters exist.

        Raises ConfigException with Kafka's text for the first value that is wrong or missing.
        """
        values = cls.definition().parse(props)
        # Only these keys: other keys of type CLASS name Java classes of the clients.
        if resolve_class is not None:
            for key in ("key.converter", "value.converter", "header.converter"):
                parse_type(key, values[key], ConfigType.CLASS, resolve_class)
        typed: dict[str, Any] = {"originals": dict(props)}
        typed["agent_keys"] = AgentKeys().overridden(values)
        for item in fields(cls):
            if item.name not in typed:
                key = item.name.replace("_", ".")
                value = values[key]
                if key in _CONVERSIONS:
                    value = _CONVERSIONS[key](value)
                elif isinstance(value, list):
                    value = tuple(value)
                typed[item.name] = value
        config = cls(**typed)
        # Kafka: ClientUtils.parseAndValidateAddresses, but without resolving host names.
        for address in config.bootstrap_servers:
            found = _ADDRESS.fullmatch(address)
            if found is None:
                raise ConfigException(f"Invalid url in bootstrap.servers: {address}")
            if int(found[1]) > HIGHEST_PORT:
                raise ConfigException(f"Invalid port in bootstrap.servers: {address}")
        config._check()
        return config

    def _check(self) -> None:
        """Check rules that concern several keys; raises ConfigException."""

    @property
    def exactly_once_source_enabled(self) -> bool:
        """Whether source tasks may run exactly-once; only distributed workers can."""
        return False

    @property
    def converters(self) -> Mapping[str, str]:
        """The classes of the default converters by key."""
        kinds = ("key", "value", "header")
        return {f"{kind}.converter": getattr(self, f"{kind}_converter") for kind in kinds}

    @property
    def sampling(self) -> Sampling:
        """The windows over which the worker's metrics are averaged."""
        return Sampling(count=self.metrics_num_samples, window_ms=self.metrics_sample_window_ms)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the properties that start with ``prefix``, with the prefix removed."""
        return below(self.originals, prefix)

    def rest_ssl(self, prefix: str = "listeners.https.") -> dict[str, object]:
        """Return parsed ``ssl.*`` settings of the REST server, keys as in Kafka.

        If any key starts with ``prefix``, unprefixed keys are ignored.
        """
        definition = ConfigDef(SSL_CONFIG_DEF)
        definition.define_key(worker_config_def().keys["ssl.client.auth"])
        return definition.parse(self.with_prefix(prefix) or self.originals)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedConfig(WorkerConfig):
    """The configuration of a distributed worker; networking keys stay in ``originals``."""

    group_id: str
    client_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    connections_max_idle_ms: int
    exactly_once_source_support: Phase
    agent_allow_phase_change: bool
    agent_restart_command: str | None
    agent_leader_transactional_id: str | None
    agent_journal_topic: str | None
    agent_journal_retention_ms: int
    connect_protocol: ConnectProtocol
    scheduled_rebalance_max_delay_ms: int
    worker_sync_timeout_ms: int
    worker_unsync_backoff_ms: int
    config_storage_topic: str
    config_storage_replication_factor: int
    offset_storage_topic: str
    offset_storage_partitions: int
    offset_storage_replication_factor: int
    status_storage_topic: str
    status_storage_partitions: int
    status_storage_replication_factor: int
    internal_topics_automatic_creation_enable: bool
    inter_worker_key_generation_algorithm: str
    inter_worker_key_size: int | None
    inter_worker_key_ttl_ms: int
    inter_worker_signature_algorithm: str
    inter_worker_verification_algorithms: tuple[str, ...]
    retry_backoff_ms: int
    request_timeout_ms: int

    @classmethod
    @cache
    def definition(cls) -> ConfigDef:
        """Return the definition of the keys: one shared object, which must not be changed."""
        return distributed_config_def()

    def _check(self) -> None:
        key_size = self.inter_worker_key_size
        if key_size is not None and key_size < SHORTEST_KEY_BITS:
            raise ConfigException(
                "Unable to create key generator with algorithm "
                f"{self.inter_worker_key_generation_algorithm} and key size {key_size}: "
                f"Key length must be at least {SHORTEST_KEY_BITS} bits"
            )
        algorithm = self.inter_worker_signature_algorithm
        if algorithm not in self.inter_worker_verification_algorithms:
            raise invalid_value(
                "inter.worker.signature.algorithm",
                algorithm,
                "Signature algorithm must be present in inter.worker.verification.algorithms list",
            )
        for name in ("config", "offset", "status"):
            if not getattr(self, f"{name}_storage_topic"):
                raise invalid_value(f"{name}.storage.topic", "", "Must be specified")
        if self.agent_journal_topic and self.agent_journal_file:
            raise ConfigException(
                "agent.journal.topic and agent.journal.file exclude each other: remove one."
            )
        if self.agent_rest_users and self.connect_protocol is not ConnectProtocol.SESSIONED:
            raise invalid_value(
                "connect.protocol",
                self.connect_protocol.value,
                "Must be sessioned with agent.rest.users: workers that do not sign their requests"
                " would leave POST /connectors/C/tasks open to every client",
            )
        # Without this check, the group's client or the broker would refuse these after the start.
        if not self.group_id:
            raise invalid_value("group.id", "", "Must be specified")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise invalid_value(
                "heartbeat.interval.ms",
                self.heartbeat_interval_ms,
                "Heartbeat must be set lower than the session timeout"
                f" (session.timeout.ms {self.session_timeout_ms})",
            )

    @property
    def exactly_once_source_enabled(self) -> bool:
        """Whether source tasks run exactly-once."""
        return self.exactly_once_source_support is Phase.ENABLED

    @property
    def client_id_base(self) -> str:
        """The prefix of the ids of this worker's own clients."""
        return f"{self.group_id}-{self.client_id}-" if self.client_id else f"{self.group_id}-"

    @property
    def leader_transactional_id(self) -> str:
        """Transactional id under which the leader writes to the config topic."""
        return self.agent_leader_transactional_id or leader_transactional_id(self.group_id)

    @property
    def leader_ids(self) -> LeaderIds:
        """The ids that the leader compares with those of its members."""
        return LeaderIds(
            own=self.leader_transactional_id,
            apaches=leader_transactional_id(self.group_id),
            fencing=self.exactly_once_source_support.uses_transactional_leader,
        )

    def storage_topic_settings(self, kind: str) -> dict[str, str]:
        """Return the topic settings of the ``config``, ``offset`` or ``status`` topic.

        These are the keys under ``<kind>.storage.`` except for the worker's own; the clean-up
        policy is left out because it is always ``compact``.
        """
        own = ("topic", "partitions", "replication.factor", "cleanup.policy")
        settings = self.with_prefix(f"{kind}.storage.")
        return {name: value for name, value in settings.items() if name not in own}


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneConfig(WorkerConfig):
    offset_storage_file_filename: str

    @classmethod
    @cache
    def definition(cls) -> ConfigDef:
        """Return the definition of the keys: one shared object, which must not be changed."""
        return worker_config_def().define(
            "offset.storage.file.filename",
            ConfigType.STRING,
            importance=Importance.HIGH,
            documentation="File that holds the offsets of source connectors.",
        )


_PASSED_ON_PREFIXES = (
    "producer.",
    "consumer.",
    "admin.",
    "metrics.context.",
    "config.providers.",
    "listeners.https.",
    "admin.listeners.https.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
)
_PLAIN = "PLAINTEXT"
_DISTRIBUTED_PREFIXES = ("config.storage.", "offset.storage.", "status.storage.")


def worker_config_warnings(config: WorkerConfig) -> tuple[str, ...]:
    """Return a warning for each property that has no effect, and for clients without security.

    Values are not shown, except those of topic settings and of security.protocol.
    """
    known = config.definition().keys
    distributed = isinstance(config, DistributedConfig)
    prefixes = _PASSED_ON_PREFIXES + (_DISTRIBUTED_PREFIXES if distributed else ())
    warnings = []
    for name, value in sorted(config.originals.items()):
        if name.startswith(("internal.key.converter", "internal.value.converter")):
            warnings.append(
                f"The property '{name}' has no effect since Connect 3.0: internal data is always "
                "JSON without schemas"
            )
        elif distributed and name == "config.storage.partitions":
            warnings.append(
                f"Ignoring '{name}={value}' setting, since config topic partitions is always 1"
            )
        elif distributed and name.endswith(".storage.cleanup.policy"):
            warnings.append(f"Ignoring '{name}={value}' setting, since compaction is always used")
        elif (
            name not in known
            and not name.startswith(prefixes)
            and not any(name in definition.keys for definition in CLIENT_CONFIG_DEFS.values())
        ):
            warnings.append(
                f"The property '{name}' was supplied but is not a known worker property"
            )
    if (
        isinstance(config, DistributedConfig)
        and 0 <= config.connections_max_idle_ms < config.rebalance_timeout_ms
    ):
        warnings.append(
            f"connections.max.idle.ms ({config.connections_max_idle_ms}) is lower than "
            f"rebalance.timeout.ms ({config.rebalance_timeout_ms}): the connection to the group "
            "coordinator may be closed during a rebalance, which prolongs it"
        )
    protocol = config.originals.get("security.protocol", _PLAIN)
    unsecured = [
        prefix
        for prefix in ("producer.", "consumer.")
        if f"{prefix}security.protocol" not in config.originals
    ]
    if protocol.upper() != _PLAIN and unsecured:
        warnings.append(
            f"security.protocol={protocol} is not inherited by connectors' clients, which connect"
            f" in the clear: repeat the security settings with the prefix {' and '.join(unsecured)}"
        )
    return tuple(warnings)


def _listeners(value: object) -> tuple[Listener, ...] | None:
    if value is None:
        return None
    assert isinstance(value, list)
    return tuple(Listener.parse(item) for item in value)


_CONVERSIONS: Mapping[str, Callable[[Any], object]] = {
    "key.converter": str,
    "value.converter": str,
    "header.converter": str,
    "listeners": _listeners,
    "admin.listeners": _listeners,
    "agent.metrics.listeners": _listeners,
    "response.http.headers.config": parse_header_rules,
    "agent.rest.users": lambda value: None if value is None else value.value,
    "exactly.once.source.support": lambda value: Phase(value.lower()),
    "connect.protocol": ConnectProtocol,
}
