"""From the keys of Kafka's Java clients to those of librdkafka.

A setting that librdkafka lacks becomes a warning, or an error where it would be wrong to go on.
Values are texts on both sides. `pyconnect_clients` translates the settings of security; key stores
are read where clients are made (`kafka/clients.py`).

Some settings are added because librdkafka's defaults do not suit (reasons in
docs/explanation/design/clients.md). Producers choose partitions as Java does
(`partitioner=murmur2_random`). Consumers ask for more data 10 ms after their queue was full instead
of 1 s, and read uncommitted records by default, as Java's do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS, ClientKind, is_default
from pyconnect_api.configdef import ConfigType, parse_type
from pyconnect_api.errors import ConfigException
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import (
    SECURITY_PREFIXES,
    Security,
    librdkafka_settings,
    parse_security,
)

BY_DURATION = "by_duration:"
"""The prefix of a reset strategy with a duration; in librdkafka's properties, in milliseconds."""
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?"
    r"(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
INFINITE_MS = 2**31 - 1
_INFINITE_LONG_MS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrdkafkaConfig:
    """The settings of a client; ``properties`` may hold secrets.

    The caller has to apply the Java settings ``max_poll_records``, ``max_block_ms`` and
    ``default_api_timeout_ms`` (of admin and consumer calls) itself; None when unset.
    """

    properties: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    max_poll_records: int | None = None
    max_block_ms: int | None = None
    default_api_timeout_ms: int | None = None


_SAME = frozenset([
    "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "batch.size",
    "bootstrap.servers", "check.crcs", "client.dns.lookup", "client.id", "client.rack",
    "compression.type", "connections.max.idle.ms", "delivery.timeout.ms", "enable.auto.commit",
    "enable.idempotence", "enable.metrics.push", "fetch.max.bytes", "fetch.min.bytes",
    "group.id", "group.instance.id", "group.protocol", "group.remote.assignor",
    "heartbeat.interval.ms", "isolation.level", "linger.ms",
    "max.in.flight.requests.per.connection", "max.partition.fetch.bytes",
    "max.poll.interval.ms", "metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries",
    "retry.backoff.max.ms", "retry.backoff.ms", "session.timeout.ms",
    "socket.connection.setup.timeout.ms", "transaction.timeout.ms", "transactional.id",
])  # fmt: skip

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}

_HONOURED_ELSEWHERE = frozenset([
    "config.providers", "default.api.timeout.ms", "key.deserializer", "key.serializer",
    "max.block.ms", "max.poll.records", "metric.reporters", "metrics.num.samples",
    "metrics.recording.level", "metrics.sample.window.ms", "value.deserializer",
    "value.serializer",
])  # fmt: skip
"""Dropped without a warning: here records are bytes, metrics the worker's, limits the caller's."""

_RANGES = {
    "connections.max.idle.ms": (0, 2**31 - 1),
    "linger.ms": (0, 900_000),
    "message.max.bytes": (1_000, 1_000_000_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "socket.connection.setup.timeout.ms": (1_000, 2**31 - 1),
    "socket.receive.buffer.bytes": (0, 100_000_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
    "socket.timeout.ms": (10, 300_000),
    "fetch.max.bytes": (1_000, 2**31 - 513),
    "fetch.wait.max.ms": (0, 300_000),
    "batch.size": (1, 2**31 - 1),
}
"""Ranges of librdkafka 2.16 (CONFIGURATION.md); the nearest limit replaces a value outside."""

_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "range",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_PARTITIONERS = {
    "DefaultPartitioner": "murmur2_random",
    "UniformStickyPartitioner": "random",
    "RoundRobinPartitioner": "random",
}


def translate(
    java_config: Mapping[str, str | None],
    kind: ClientKind,
    *,
    passthrough: Mapping[str, str] | None = None,
) -> LibrdkafkaConfig:
    """Return the librdkafka form of a complete Java client configuration.

    ``passthrough``: librdkafka properties, which override translated ones. Null values count as
    unset. Raises ConfigException for values that cannot be parsed or expressed.
    """
    config = {name: value.strip() for name, value in java_config.items() if value is not None}
    translation = _Translation(kind)
    for name, value in config.items():
        translation.take(name, value)
    security, warnings = client_security(config)
    translation.properties.update(librdkafka_settings(security))
    translation.warnings.extend(warnings)
    translation.complete(config)
    translation.properties.update(passthrough or {})
    return LibrdkafkaConfig(
        properties=translation.properties,
        warnings=tuple(translation.warnings),
        max_poll_records=_integer(config, "max.poll.records"),
        max_block_ms=_integer(config, "max.block.ms"),
        default_api_timeout_ms=_integer(config, "default.api.timeout.ms"),
    )


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


def _duration_ms(strategy: str) -> int:
    """Return the milliseconds of `by_duration:<ISO 8601 duration>`, `java.time.Duration`'s syntax.

    Raises ConfigException for another text, and for a duration that is negative (KIP-1106).
    """
    text = strategy.partition(":")[2]
    matched = _DURATION.fullmatch(text)
    if matched is None or text[-1:] in "pPtT":
        raise ConfigException(
            f"Invalid value {strategy} for configuration auto.offset.reset: Unable to parse "
            "duration string in by_duration offset reset strategy."
        )
    sign, days, hours, minutes, seconds, fraction = matched.groups()
    whole = (int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)
    part = int((fraction or "").ljust(9, "0")) // 1_000_000
    second_sign = -1 if (seconds or "").startswith("-") else 1
    total = (whole * 60 + int(seconds or 0)) * 1000 + second_sign * part
    total = -total if sign == "-" else total
    if total < 0:
        raise ConfigException(
            f"Invalid value {strategy} for configuration auto.offset.reset: Negative duration is "
            "not supported in by_duration offset reset strategy."
        )
    return total


class _Translation:
    """Collector of the properties and warnings of one client."""

    def __init__(self, kind: ClientKind) -> None:
        self._kind = kind
        self._known = CLIENT_CONFIG_DEFS[kind].keys
        self.properties: dict[str, str] = {}
        self.warnings: list[str] = []

    def take(self, name: str, value: str) -> None:
        """Translate one setting, unless it is about security."""
        if name.startswith(SECURITY_PREFIXES):
            return
        key = self._known.get(name)
        if key is None:
            if not any(name in other.keys for other in CLIENT_CONFIG_DEFS.values()):
                self.warnings.append(f"The client setting '{name}' is unknown and has no effect")
            return
        if name in _HONOURED_ELSEWHERE:
            return
        if key.type in (ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.BOOLEAN):
            parse_type(name, value, key.type)
        if name in _SAME:
            self._put(name, value)
        elif name in _RENAMED:
            self._put(_RENAMED[name], value)
        elif not self._special(name, value) and not is_default(name, value):
            self.warnings.append(f"The client setting '{name}' has no effect in this worker")

    def _put(self, name: str, value: str) -> None:
        limits = _RANGES.get(name)
        if limits is not None:
            number = int(value)
            accepted = min(max(number, limits[0]), limits[1])
            # -1 means the system's default buffer size, for which librdkafka has 0.
            if number not in (accepted, -1):
                self.warnings.append(
                    f"The value {number} of '{name}' is out of range; {accepted} is used"
                )
            value = str(accepted)
        if value != "":
            self.properties[name] = value

    def _special(self, name: str, value: str) -> bool:
        """Translate a setting whose values differ in librdkafka; False if that is impossible."""
        match name:
            case "auto.offset.reset" if value.lower().startswith(BY_DURATION):
                # librdkafka lacks this strategy: `kafka/task_consumer.py` looks up the positions.
                self.properties[name] = f"{BY_DURATION}{_duration_ms(value)}"
            case "auto.offset.reset":
                self.properties[name] = {"none": "error"}.get(value.lower(), value.lower())
            case "buffer.memory":
                self.properties["queue.buffering.max.kbytes"] = str(max(int(value) // 1024, 1))
            case "compression.gzip.level" | "compression.lz4.level" | "compression.zstd.level":
                self.properties.setdefault(name, value)
            case "partition.assignment.strategy":
                self._assignors(value)
            case "partitioner.class":
                simple = value.rpartition(".")[2]
                if simple and simple not in _PARTITIONERS:
                    self.warnings.append(
                        f"The partitioner {value} is not available; keys are placed as Java's"
                        " default does"
                    )
                self.properties["partitioner"] = _PARTITIONERS.get(simple, "murmur2_random")
            case "partitioner.ignore.keys":
                if value.lower() == "true":
                    self.properties["partitioner"] = "random"
            case _:
                return False
        return True

    def _assignors(self, value: str) -> None:
        names = [item.strip().rpartition(".")[2] for item in value.split(",") if item.strip()]
        chosen = [_ASSIGNORS[name] for name in names if name in _ASSIGNORS]
        unknown = [name for name in names if name not in _ASSIGNORS or name == "StickyAssignor"]
        if unknown:
            self.warnings.append(
                f"The assignors {', '.join(unknown)} are not available; "
                f"{', '.join(dict.fromkeys(chosen)) or 'range'} is used"
            )
        # librdkafka cannot mix eager and cooperative assignors in one list.
        eager = [name for name in chosen if name != "cooperative-sticky"]
        self.properties["partition.assignment.strategy"] = ",".join(
            dict.fromkeys(eager or chosen or ["range"])
        )

    def complete(self, config: Mapping[str, str]) -> None:
        """Add the settings of this kind of client, and those that depend on several settings."""
        chosen = self.properties.get("compression.type", "none").lower()
        for codec in ("gzip", "lz4", "zstd"):
            level = self.properties.pop(f"compression.{codec}.level", None)
            if level is not None and codec == chosen:
                self.properties["compression.level"] = level
        match self._kind:
            case ClientKind.PRODUCER:
                self._complete_producer(config)
            case ClientKind.CONSUMER:
                self._complete_consumer()
            case ClientKind.ADMIN:
                # librdkafka's admin client is a producer, but it sends no records that it could
                # retry.
                self.properties.pop("retries", None)

    def _complete_producer(self, config: Mapping[str, str]) -> None:
        properties = self.properties
        properties.setdefault("partitioner", "murmur2_random")
        properties.setdefault("queue.buffering.max.messages", "1000000")
        if "request.timeout.ms" in config:
            properties["request.timeout.ms"] = str(min(int(config["request.timeout.ms"]), 900_000))
        delivery = int(properties.pop("delivery.timeout.ms", "120000"))
        if "transactional.id" not in properties:
            # In librdkafka 0 means without limit.
            properties["delivery.timeout.ms"] = "0" if delivery >= INFINITE_MS else str(delivery)
            return
        limit = int(properties.setdefault("transaction.timeout.ms", "60000"))
        if delivery < limit:
            properties["delivery.timeout.ms"] = str(delivery)
        # Unset, the timeout follows transaction.timeout.ms; librdkafka refuses a longer one.
        timeout = properties.get("socket.timeout.ms")
        if timeout is not None and int(timeout) > limit:
            properties["socket.timeout.ms"] = str(limit)

    def _complete_consumer(self) -> None:
        properties = self.properties
        properties.setdefault("isolation.level", "read_uncommitted")
        properties.setdefault("fetch.queue.backoff.ms", "10")
        properties.setdefault("enable.auto.offset.store", "false")
        properties.setdefault("enable.partition.eof", "false")
        fetch_max = properties.get("fetch.max.bytes")
        if fetch_max is not None and int(fetch_max) < 1_000_000:
            properties["message.max.bytes"] = fetch_max
        wait = int(properties.get("fetch.wait.max.ms", "500"))
        timeout = properties.get("socket.timeout.ms")
        if timeout is not None and int(timeout) < wait + 1_000:
            properties["socket.timeout.ms"] = str(wait + 1_000)


def _integer(config: Mapping[str, str], name: str) -> int | None:
    """Return a number of the configuration; None when unset or Java's largest (without limit)."""
    if name not in config:
        return None
    value = parse_type(name, config[name], ConfigType.LONG)
    return value if isinstance(value, int) and value != _INFINITE_LONG_MS else None
