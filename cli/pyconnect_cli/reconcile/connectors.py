"""The topics of a connector, from its configuration: names, converters, bounds. Pure.

Members of a spec (docs/reference/reconciliation.md) are made from it; flags and spec files
replace them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyconnect_cli.kafka.model import kafka_offset, topic_partition
from pyconnect_cli.reconcile.audited import Config, Document
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC


def simple_class(config: Config) -> str:
    """Return the last part of the connector's class."""
    return (config.get("connector.class") or "").rpartition(".")[2]


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


def value_registry(config: Config) -> Document | None:
    """Return the schema registry of the connector's value converter, None when it is not known.

    Credentials of the registry stay in the connector: the user gives them in a file.
    """
    url = config.get("value.converter.schema.registry.url")
    return {"main": {"url": url}} if url and "${" not in url else None


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
