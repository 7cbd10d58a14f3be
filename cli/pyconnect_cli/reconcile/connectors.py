"""The topics of a connector, from its configuration: names, converters, bounds. Pure.

Members of a spec (docs/reference/reconciliation.md) are made from it; flags and spec files
replace them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyconnect_cli.kafka.model import kafka_offset, topic_partition
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

SINK, TOPICS, SOURCE = "topic-sink", "topic-topic", "source-topic"
"""Jobs that compare rows."""
Config: TypeAlias = Mapping[str, str | None]
Document: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A connector as its worker reports it; `topics` are those that are compared."""

    name: str
    config: Config
    topics: Sequence[str]
    offsets: Sequence[OffsetEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The connector's side of a compare, as members of a spec.

    `side` is the member `left` of a source and `right` of a sink. `topic` has other members of
    the topic's side, `members` other ones of the spec; options of the command line replace both.
    `secrets` are properties of the side, such as a password. They go to a file that only its owner
    may read, which the side names as `properties`. They are never in `side`, `topic` or `members`.
    """

    side: Document
    topic: Document = field(default_factory=dict)
    members: Document = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


def simple_class(config: Config) -> str:
    """Return the last part of the connector's class, `SqlSink` of `….SqlSinkConnector`."""
    return (config.get("connector.class") or "").rpartition(".")[2].removesuffix("Connector")


def value_form(config: Config) -> str | None:
    """Return the format in which the value converter writes values of the topic.

    None: the converter is not known, or it is the worker's, which REST does not report.
    """
    converter = config.get("value.converter") or ""
    match converter.rpartition(".")[2]:
        case "StringConverter" | "ByteArrayConverter":
            return "bytes"
        case "JsonConverter":
            enabled = config.get("value.converter.schemas.enable") or "true"
            return "connect-json" if enabled.strip().lower() == "true" else "json"
        case "AvroConverter":
            return "avro"
        case "JsonSchemaConverter":
            return "json-schema"
        case "ProtobufConverter":
            return "protobuf"
        case _:
            return None


def value_registry(config: Config) -> Document:
    """Return the member with the registry of the connector's value converter, if it is known.

    Credentials of the registry stay in the connector: the user gives them in a file.
    """
    url = config.get("value.converter.schema.registry.url")
    return {"registries": {"main": {"url": url}}} if url and "${" not in url else {}


def sink_bounds(entries: Sequence[OffsetEntry]) -> dict[str, dict[int, int]]:
    """Return the sink group's committed offsets by topic and partition."""
    bounds: dict[str, dict[int, int]] = {}
    for entry in entries:
        offset = kafka_offset(entry)
        if offset is not None:
            at = topic_partition(entry.partition)
            bounds.setdefault(at.topic, {})[at.partition] = offset
    return bounds


def sink_topics(
    config: Config, committed: Mapping[str, object], existing: Callable[[], Iterable[str]] = tuple
) -> list[str]:
    """Return the topics a sink reads: the ones it lists, or those of its pattern that exist."""
    if listed := config.get("topics"):
        return [name.strip() for name in listed.split(",") if name.strip()]
    pattern = config.get("topics.regex")
    if not pattern:
        return sorted(committed)
    try:
        found = {*committed, *existing()}
        return sorted(topic for topic in found if re.fullmatch(pattern, topic))
    except re.error:
        # Python may not understand a Java expression; the group's offsets name the topics too.
        return sorted(committed)


def dead_letters(config: Config) -> list[str]:
    """Return the connector's dead letter queue, if it has one."""
    name = config.get(DEAD_LETTER_TOPIC)
    return [name] if name else []


def source_topics(config: Config, used: Sequence[str]) -> list[str]:
    """Return the topics that a source writes: those the worker saw, else the configured one."""
    if used:
        return list(used)
    topic = config.get("topic")
    return [topic] if topic else []


PROVIDERS = {
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "directory": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
"""The usual names of providers; their definitions are in workers' files."""
_REFERENCE = re.compile(r"\$\{([^:}]+):")


def with_providers(secrets: Mapping[str, str | None]) -> Mapping[str, str]:
    """Return the secrets that are set, with definitions of the config providers they refer to.

    Providers have their usual names, because only workers know the definitions.
    """
    found = {name: value for name, value in secrets.items() if value}
    used = {name for value in found.values() for name in _REFERENCE.findall(value)}
    named = sorted(used & PROVIDERS.keys())
    if named:
        found["config.providers"] = ",".join(named)
        found |= {f"config.providers.{name}.class": PROVIDERS[name] for name in named}
    return found
