"""The stores of a source connector's offsets, as its processes use them (KIP-618).

Kafka: ConnectorOffsetBackingStore, `Worker.offsetStoreForRegularSourceTask` and its siblings. There
are two stores: the worker's own, through the worker; and an offsets topic of the connector's own,
whose values win over the worker's and are copied there. Offsets are written under the raw key that
is in use for their partition, whichever worker wrote it first; other keys of equal content get
tombstones.

The copy follows the commit, while Kafka makes it when the records are acknowledged: an aborted
transaction leaves none. Entries that come while the copying thread writes are written together: the
newest offset of each partition, in parts if there are very many.

The connector's consumer settings are used to read an own topic, its admin client settings to create
and to find it, its producer settings to write it (at-least-once): the task's own producer writes a
transaction's offsets.

The task's thread and its committer's use a store, one at a time each. Clients end with the process.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from itertools import islice
from typing import Protocol

from pyconnect_agent.core.clients.configs import (
    ClientConfig,
    connector_admin,
    connector_producer,
    producers_admin,
    shared_admin,
    source_offsets_consumer,
)
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import AgentError, RetriableKafkaError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.internal_topics.offsetlog import canonical
from pyconnect_agent.core.offsets.source import own_topic, parse_offset, partition_key
from pyconnect_agent.kafka.admin import Admin, CompactedTopic
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.log import BRIEF_FETCH, CompactedLog, Log, LogClients
from pyconnect_agent.kafka.offset_image import OffsetImage
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.worker_view import API_TIMEOUT_MS, built
from pyconnect_api import ConnectException, DataException, OffsetStorageReader

LOG = logging.getLogger(__name__)

COPIED_AT_ONCE = 10_000
"""The most entries in one write, which is one message to the worker."""


class WorkerCopies:
    """Copies of committed offsets to the worker's store.

    `write` waits for the acknowledgement and raises AgentError and OSError. Best effort: a copy
    that fails is logged, and the next copy of its partition replaces it.
    """

    def __init__(
        self, write: Callable[[dict[bytes, bytes | None], int], None], timeout_ms: int
    ) -> None:
        self._write = write
        self._timeout_ms = timeout_ms
        self._changed = threading.Condition()
        # Keys and values, under a form that is the same for keys of equal meaning.
        self._waiting: dict[bytes, tuple[bytes, bytes | None]] = {}
        self._copying = False
        # Held while writing, as an older copy must not be written after a tombstone.
        self._writing = threading.Lock()
        self._thread: long_lived.Thread | None = None

    def put(self, entries: Mapping[bytes, bytes | None]) -> None:
        """Have the thread copy the entries soon."""
        with self._changed:
            self._waiting.update((canonical(key), (key, entries[key])) for key in entries)
            if self._thread is None:
                self._thread = long_lived.Thread("offset-copies", self._run)
                self._thread.start()
            self._changed.notify_all()

    def bury(self, keys: Sequence[bytes], timeout_ms: int) -> None:
        """Write tombstones now, in place of waiting copies. Raises AgentError, OSError."""
        if not self._writing.acquire(timeout=timeout_ms / 1000):
            raise RetriableKafkaError("Timed out waiting for a copy of offsets to be written")
        try:
            with self._changed:
                for key in keys:
                    self._waiting.pop(canonical(key), None)
            self._write(dict.fromkeys(keys), timeout_ms)
        finally:
            self._writing.release()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything was copied or given up; return False when the time ends first."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._copying, timeout_s
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                self._copying = True
            with self._writing:
                with self._changed:
                    if len(self._waiting) <= COPIED_AT_ONCE:
                        taken, self._waiting = self._waiting, {}
                    else:
                        taken = dict(islice(self._waiting.items(), COPIED_AT_ONCE))
                        for meaning in taken:
                            del self._waiting[meaning]
                if entries := dict(taken.values()):
                    try:
                        self._write(entries, self._timeout_ms)
                    except (AgentError, OSError) as exc:
                        LOG.warning(
                            "offsets were committed, but not copied to the worker's offsets topic",
                            extra={"partitions": len(entries), "reason": str(exc)},
                        )
            with self._changed:
                self._copying = False
                self._changed.notify_all()


Entries = Mapping[bytes, bytes | None]

READ_AT_START_TIMEOUT_MS = 15 * 60_000
"""Kafka's constant for the first read of an offsets topic."""
READ_SLICE_MS = 60_000
FIND_KEYS_TIMEOUT_MS = 60_000
KNOWN_KEYS = 10_000
"""How many partitions are remembered with their raw keys."""


class OffsetStores(Protocol):
    """The offsets of a connector or task; keys and values are the topic's bytes.

    `topic` is where a transaction writes offsets.
    """

    topic: str

    def start(self, give_up: Callable[[], bool]) -> bool:
        """Read to the end; return False when given up before. Raises ConnectException."""
        ...

    def read(self, keys: tuple[bytes, ...], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        """Return the values of the keys after reading to the end. Raises AgentError."""
        ...

    def connector_entries(self, connector: str, timeout_ms: int) -> dict[bytes, bytes]:
        """Return every live raw entry after reading to the end. Raises AgentError.

        Of entries of equal content the last counts.
        """
        ...

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        """Write and wait for acknowledgement; None is a tombstone. Raises AgentError."""
        ...

    def prepare(self, entries: Entries) -> Sequence[LogRecord]:
        """Return the records that a transaction is to write to `topic`. Raises AgentError."""
        ...

    def committed(self, entries: Entries) -> None:
        """Note that the offsets of `prepare` are committed."""
        ...

    def close(self) -> None:
        """End writing; wait a short time for copies."""
        ...


class OwnCommits:
    """Offsets of a connector's only task, committed exactly-once; no other process writes them.

    Kept, as a read of the store looks up the topic's end, which moves with each transaction, and a
    task may read after each (Debezium's). `active` is False when the task is not the only one: it
    reads the store.
    """

    def __init__(self, *, active: bool = False) -> None:
        self._active = active
        self._values: dict[bytes, bytes | None] = {}

    def add(self, entries: Entries) -> None:
        if self._active:
            values = self._values if len(self._values) < KNOWN_KEYS else {}
            self._values = {**values, **{canonical(key): entries[key] for key in entries}}

    def lookup(self, keys: Sequence[bytes]) -> Entries | None:
        """Return the values of the keys; None unless all are known."""
        values = self._values
        meanings = {key: canonical(key) for key in keys}
        if not keys or any(meaning not in values for meaning in meanings.values()):
            return None
        return {key: values[meaning] for key, meaning in meanings.items()}


class WorkerOffsets:
    """Only the worker's store: it reads the topic for all its children.

    `reads_first`: for exactly-once, the commits of older tasks have to be read first.
    """

    def __init__(
        self, topic: str, store: Control, own_commits: OwnCommits, *, reads_first: bool
    ) -> None:
        self.topic = topic
        self._store = store
        self._own_commits = own_commits
        self._reads_first = reads_first
        self._known: dict[bytes, bytes] = {}

    def start(self, give_up: Callable[[], bool]) -> bool:
        deadline = Deadline(READ_AT_START_TIMEOUT_MS)
        while self._reads_first and not give_up():
            try:
                self._store.read_offsets((), min(READ_SLICE_MS, deadline.remaining_ms()))
            except RetriableKafkaError as exc:
                if deadline.expired():
                    raise ConnectException("Failed to read to the end of offsets") from exc
                LOG.warning("offsets topic not read to its end yet", extra={"reason": str(exc)})
            except AgentError as exc:
                raise ConnectException("Failed to read to the end of offsets") from exc
            else:
                break
        return not give_up()

    def read(self, keys: tuple[bytes, ...], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        found = self._own_commits.lookup(keys)
        return self._store.read_offsets(keys, timeout_ms) if found is None else found

    def connector_entries(self, connector: str, timeout_ms: int) -> dict[bytes, bytes]:
        return dict(self._store.connector_offsets(connector, timeout_ms))

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        self._store.write_offsets(entries, timeout_ms)

    def prepare(self, entries: Entries) -> Sequence[LogRecord]:
        """Return the records of a transaction, with tombstones for a partition's other keys.

        After a partition's first write only one of its keys is left, which is remembered.
        """
        records: dict[bytes, bytes | None] = {}
        meanings = {key: canonical(key) for key in entries}
        unknown = tuple(key for key, meaning in meanings.items() if meaning not in self._known)
        if unknown:
            if len(self._known) >= KNOWN_KEYS:
                self._known.clear()
                unknown = tuple(entries)
            found = self._store.offset_keys_in_use(unknown, FIND_KEYS_TIMEOUT_MS)
            for key in unknown:
                self._known[meanings[key]], *others = found.get(key) or (key,)
                records.update(dict.fromkeys(others))
        records.update((self._known[meanings[key]], value) for key, value in entries.items())
        return [LogRecord(key, value) for key, value in records.items()]

    def committed(self, entries: Entries) -> None:
        # The worker's store reads the offsets from the topic.
        self._own_commits.add(entries)

    def close(self) -> None:
        """Do nothing: a store without copies has nothing to wait for."""


class OwnOffsetsStore:
    """An offsets topic of the connector's own first, the worker's store second.

    `log` is writable for at-least-once, else read only. The worker's store gets every tombstone
    before the own topic is written: reads would find a value left in the worker's store.
    """

    def __init__(
        self, topic: str, log: Log, worker: Control, own_commits: OwnCommits, flush_timeout_ms: int
    ) -> None:
        self.topic = topic
        self._log = log
        self._own_commits = own_commits
        self._image = OffsetImage()
        self._worker = worker
        self._flush_timeout_ms = flush_timeout_ms
        self._copies = WorkerCopies(worker.write_offsets, flush_timeout_ms)

    def start(self, give_up: Callable[[], bool]) -> bool:
        try:
            self._log.start(self._image)
        except AgentError as exc:
            raise ConnectException(
                f"Failed to start reading the connector's offsets topic '{self.topic}'"
            ) from exc
        return not give_up()

    def read(self, keys: tuple[bytes, ...], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        committed = self._own_commits.lookup(keys)
        if committed is not None:
            return committed
        deadline = Deadline(timeout_ms)
        found = dict(self._worker.read_offsets(keys, timeout_ms))
        self._log.read_to_end(deadline.remaining_ms())
        own = self._image.lookup(keys)
        return {**found, **{key: value for key, value in own.items() if value is not None}}

    def connector_entries(self, connector: str, timeout_ms: int) -> dict[bytes, bytes]:
        deadline = Deadline(timeout_ms)
        found = dict(self._worker.connector_offsets(connector, timeout_ms))
        self._log.read_to_end(deadline.remaining_ms())
        own = self._image.connector_entries(connector)
        for key in own:
            found.pop(key, None)
        found.update(own)
        return found

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        deadline = Deadline(timeout_ms)
        self._bury(entries, timeout_ms)
        self._log.write(self._image.plan_write(entries), deadline.remaining_ms())
        self.committed(entries)

    def prepare(self, entries: Entries) -> Sequence[LogRecord]:
        self._bury(entries, self._flush_timeout_ms)
        return self._image.plan_write(entries)

    def committed(self, entries: Entries) -> None:
        self._own_commits.add(entries)
        self._copies.put({key: value for key, value in entries.items() if value is not None})

    def close(self) -> None:
        if not self._copies.flush(self._flush_timeout_ms / 1000):
            LOG.warning("the last offsets were not copied to the worker's offsets topic in time")

    def _bury(self, entries: Entries, timeout_ms: int) -> None:
        buried = [key for key, value in entries.items() if value is None]
        if buried:
            self._copies.bury(buried, timeout_ms)


ReadOffsets = Callable[[tuple[bytes, ...], int], Mapping[bytes, bytes | None]]
"""Looks up raw keys within a time in ms, after reading to the end. Raises AgentError."""

TIMEOUT_MS = 60_000


class WorkerOffsetReader(OffsetStorageReader):
    """Any thread may read; `close` makes further reads fail."""

    def __init__(self, connector: str, read: ReadOffsets) -> None:
        self._connector = connector
        self._read = read
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def offset(self, partition: Mapping[str, object]) -> Mapping[str, object] | None:
        found = self.offsets([partition])
        return found[0][1] if found else None

    def offsets(
        self, partitions: Sequence[Mapping[str, object]]
    ) -> Sequence[tuple[Mapping[str, object], Mapping[str, object] | None]]:
        if self._closed:
            raise ConnectException(
                "Offset reader closed while attempting to read offsets. "
                "The task or connector was stopped."
            )
        keys = [partition_key(self._connector, partition) for partition in partitions]
        try:
            values = self._read(tuple(dict.fromkeys(keys)), TIMEOUT_MS)
        except (AgentError, OSError) as exc:
            raise ConnectException("Failed to fetch offsets.") from exc
        result: list[tuple[Mapping[str, object], Mapping[str, object] | None]] = []
        for partition, key in zip(partitions, keys, strict=True):
            try:
                result.append((partition, parse_offset(values.get(key))))
            except DataException:
                LOG.exception("stored offset cannot be decoded", extra={"partition": partition})
        return result


CLUSTER_ID_TIMEOUT_MS = 60_000


class OffsetUse(Enum):
    """The use of the topic: a connector only reads; an exactly-once task's own producer writes."""

    CONNECTOR = auto()
    AT_LEAST_ONCE = auto()
    EXACTLY_ONCE = auto()


def offset_stores(
    worker: WorkerConfig,
    connector: str,
    connector_config: Mapping[str, str],
    store: Control,
    *,
    client: str,
    use: OffsetUse,
    is_only_task: bool = False,
    is_brief: bool = False,
) -> OffsetStores:
    """Return the stores of the offsets of a resolved `connector_config`; nothing is read yet.

    `is_only_task`: of its connector. `client`: the end of client ids, the task's id or the
    connector's name. `is_brief`: the process ends soon, so it need not spare the brokers.

    Raises ConfigException for a forbidden override, ConnectException when a cluster cannot be
    distinguished from the worker's.
    """
    writes = use is OffsetUse.AT_LEAST_ONCE
    found = own_offset_log(
        worker, connector, connector_config, client=client, writes=writes, is_brief=is_brief
    )
    own_commits = OwnCommits(active=is_only_task and use is OffsetUse.EXACTLY_ONCE)
    if found is None:
        topic = worker.offset_storage_topic if isinstance(worker, DistributedConfig) else ""
        return WorkerOffsets(topic, store, own_commits, reads_first=use is OffsetUse.EXACTLY_ONCE)
    topic, log = found
    return OwnOffsetsStore(topic, log, store, own_commits, worker.offset_flush_timeout_ms)


def own_offset_log(
    worker: WorkerConfig,
    connector: str,
    connector_config: Mapping[str, str],
    *,
    client: str,
    writes: bool = False,
    is_brief: bool = False,
) -> tuple[str, CompactedLog] | None:
    """Return name and log of the connector's own topic, None without one; see `offset_stores`."""
    placed = own_topic(worker, connector_config)
    if placed is None:
        return None
    assert isinstance(worker, DistributedConfig)
    admin_id = f"connector-adminclient-{client}"
    if placed.is_workers_name:
        try:
            written = _cluster_id(producers_admin(worker, connector_config, admin_id))
            if written is not None and written == _cluster_id(shared_admin(worker)):
                return None
        except AgentError as exc:
            raise ConnectException(
                "Failed to find out whether the connector's producer and the worker use one Kafka"
                " cluster, which decides where offsets are"
            ) from exc
    admin = built(connector_admin(worker, connector_config, admin_id))
    consumer_id = f"connector-consumer-{client}"
    consumer = built(source_offsets_consumer(worker, connector, connector_config, consumer_id))
    producer = None
    if writes:
        producer_id = f"connector-offsets-producer-{client}"
        producer = built(connector_producer(worker, connector_config, producer_id)).properties
    topic = CompactedTopic(
        name=placed.name,
        worker_key="offsets.storage.topic",
        purpose="source connector offsets",
        partitions=worker.offset_storage_partitions,
        replication_factor=worker.offset_storage_replication_factor,
        settings=worker.storage_topic_settings("offset"),
        create=worker.internal_topics_automatic_creation_enable,
        create_timeout_ms=admin.default_api_timeout_ms or API_TIMEOUT_MS,
        retry_backoff_ms=worker.retry_backoff_ms,
    )
    clients = LogClients(
        producer=producer,
        consumer={**consumer.properties, **(BRIEF_FETCH if is_brief else {})},
        admin=admin.properties,
    )
    return placed.name, CompactedLog(topic, clients, "own-offset-log")


def _cluster_id(config: ClientConfig) -> str | None:
    return Admin(config.build().properties).cluster_id(CLUSTER_ID_TIMEOUT_MS)
