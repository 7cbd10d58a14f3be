"""Source offsets: between flushes, as bytes, and the topic they are in.

Kafka: OffsetStorageWriter, OffsetUtils.

The bytes are those of Kafka Connect: key `["<connector>",{partition}]`, value `{offset}` or null,
JSON without blanks. Partition members keep the order of the plugin's map: a Java worker looks for
exactly these bytes. Here partitions are equal with members in any order, and the stores write under
the key that is in use (`internal_topics/offsetlog.py`).

Threads: none of its own; the owner locks.

The topic (KIP-618): Kafka's `Worker.offsetStoreFor…` and `sameOffsetTopicAsWorker`. In contrast to
them, one topic name on two spellings of the same brokers is one topic. Kafka Connect takes it for
two topics and copies offsets into the topic outside the transaction, where they outlive an aborted
one. Only the ids of both clusters show that the clusters are one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.core.config.client_overrides import client_servers
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.java_text import json_text
from pyconnect_api import DataException

PartitionOffset = tuple[Mapping[str, object] | None, Mapping[str, object] | None]
SourceEntries = dict[bytes, bytes | None]


class OffsetWriter:
    """The holder of offsets until a flush of them has succeeded.

    Offsets of a failed flush are written again, unless newer ones have come meanwhile.
    """

    def __init__(self, connector: str) -> None:
        self._connector = connector
        # Key and offset by the sorted key, which is the same for equal partitions.
        self._waiting: dict[bytes, tuple[bytes, Mapping[str, object] | None]] = {}
        self._flushing: dict[bytes, tuple[bytes, Mapping[str, object] | None]] | None = None

    def put(self, offsets: Iterable[PartitionOffset]) -> None:
        """Remember newer offsets. Raises DataException for a partition that is not serializable."""
        for partition, offset in offsets:
            key = partition_key(self._connector, partition)
            self._waiting[sorted_key(self._connector, partition)] = (key, offset)

    def begin_flush(self) -> SourceEntries:
        """Begin a flush and return its entries; without entries no flush begins.

        Raises DataException, and begins no flush, for an offset that cannot be serialized.
        """
        entries = {key: offset_value(offset) for key, offset in self._waiting.values()}
        if entries:
            self._flushing, self._waiting = self._waiting, {}
        return entries

    def end_flush(self) -> None:
        """End the flush: its entries are durable."""
        self._flushing = None

    def cancel_flush(self) -> None:
        """Take back the entries, which may not be durable; newer offsets of a partition win."""
        if self._flushing is not None:
            self._waiting = {**self._flushing, **self._waiting}
            self._flushing = None


def partition_key(connector: str, partition: Mapping[str, object] | None) -> bytes:
    """Return the key's bytes, with members in the order of `partition`. Raises DataException."""
    if partition is None:
        return json_text.dumps([connector, None])
    check_offset_map(partition)
    return json_text.dumps([connector, dict(partition)])


def sorted_key(connector: str, partition: Mapping[str, object] | None) -> bytes:
    """Return bytes that are equal for equal partitions. Raises DataException."""
    if partition is not None and len(partition) > 1:
        check_offset_map(partition)
        partition = {name: partition[name] for name in sorted(partition)}
    return partition_key(connector, partition)


def offset_value(offset: Mapping[str, object] | None) -> bytes | None:
    """Return the bytes of an offset, None (a tombstone) for None. Raises DataException."""
    if offset is None:
        return None
    check_offset_map(offset)
    return json_text.dumps(dict(offset))


def parse_offset(value: bytes | None) -> Mapping[str, object] | None:
    """Read an offset's bytes. Raises DataException if they are not a JSON object."""
    if value is None:
        return None
    try:
        offset = json_text.loads(value)
    except ValueError as exc:
        raise DataException(f"Offset is not JSON: {exc}") from exc
    if offset is not None and not isinstance(offset, dict):
        raise DataException("Offset is not a JSON object")
    return offset


def check_offset_map(offset: object) -> None:
    """Raise DataException unless `offset` has string keys and primitive values."""
    if not isinstance(offset, Mapping):
        raise DataException("Offsets must be specified as a Map")
    for name, value in offset.items():
        if not isinstance(name, str):
            raise DataException("Offsets may only use String keys")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise DataException(
                "Offsets may only contain primitive types as values, but field "
                f"{name} contains {type(value).__name__}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTopic:
    """A connector's own offsets topic.

    `is_workers_name`: the topic has the name of the worker's; it is another one only if the
    connector's producer reaches another cluster.
    """

    name: str
    is_workers_name: bool


def own_topic(worker: WorkerConfig, connector_config: Mapping[str, str | None]) -> OwnTopic | None:
    """Return the topic for a connector's offsets, None for the worker's own store.

    If values of `connector_config` are unresolved, the result may be a topic instead of None.
    """
    if not isinstance(worker, DistributedConfig):
        return None
    given = connector_config.get("offsets.storage.topic")
    if given is None and not worker.exactly_once_source_enabled:
        return None
    name = given or worker.offset_storage_topic
    is_workers_name = name == worker.offset_storage_topic
    servers = client_servers(connector_config, worker, ClientKind.PRODUCER)
    if is_workers_name and servers == frozenset(worker.bootstrap_servers):
        return None
    return OwnTopic(name=name, is_workers_name=is_workers_name)
