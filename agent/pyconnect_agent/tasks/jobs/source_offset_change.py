"""Change a source connector's offsets where they are stored (KIP-875).

Layer: tasks. Kafka: `Worker.modifySourceConnectorOffsets`. A reset
writes a tombstone to every raw key of the connector, as it is on the topic. With exactly-once
support all goes in one transaction of `<group>-<connector>`, the id of the accepted proposal;
Apache's leaders use the id of task 0, which is fenced too. In the end all is read back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from pyconnect_agent.channel import ChangeOffsetsJob
from pyconnect_agent.core.clients.configs import exactly_once_producer
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import AgentError, AuthorizationError, InternalError
from pyconnect_agent.core.internal_topics.offsetlog import content_of, parse_key
from pyconnect_agent.core.offsets.changes import failed_text, read_pairs, source_entries_asked
from pyconnect_agent.core.offsets.connector_offsets import source_offsets
from pyconnect_agent.core.offsets.documents import StoredPairs, forgotten_pairs
from pyconnect_agent.core.offsets.source import parse_offset
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.fencing import fence
from pyconnect_agent.kafka.transactional_producer import TransactionalProducer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.source.offsets.own_topic import OffsetUse, offset_stores
from pyconnect_api import SourceConnector
from pyconnect_clients.connect_names import alter_transactional_id, task_transactional_id

LOG = logging.getLogger(__name__)

ENTRIES_AT_ONCE = 10_000
"""So many are given to a store in one write: no producer has to queue more."""


class SourceOffsetChange:
    """Implements `offset_change.OffsetChangeSteps`; `config` is resolved."""

    def __init__(
        self,
        job: ChangeOffsetsJob,
        connector: SourceConnector,
        worker: WorkerConfig,
        config: Mapping[str, str],
        *,
        deadline: Deadline,
        control: Control,
    ) -> None:
        self._job = job
        self._connector = connector
        self._worker = worker
        self._config = config
        self._deadline = deadline
        self._transactional = worker.exactly_once_source_enabled
        self._stores = offset_stores(
            worker,
            job.connector,
            config,
            control,
            client=job.connector,
            use=OffsetUse.EXACTLY_ONCE if self._transactional else OffsetUse.AT_LEAST_ONCE,
            is_brief=True,
        )
        self._asked = StoredPairs(())
        self._entries: dict[bytes, bytes | None] = {}
        self._producer: Future[TransactionalProducer] | None = None

    def collect(self) -> None:
        if isinstance(self._worker, DistributedConfig) and self._transactional:
            self._producer = self._initialise(self._worker)
        self._stores.start(self._deadline.expired)
        if self._job.offsets is None:
            found = self._stores.connector_entries(
                self._job.connector, self._deadline.remaining_ms()
            )
            self._entries = dict.fromkeys(found)
            self._asked = forgotten_pairs(found)
            return
        self._entries = source_entries_asked(self._job.connector, read_pairs(self._job.offsets))
        self._asked = StoredPairs(self._entries.items())

    def ask_connector(self) -> bool:
        return self._connector.alter_offsets(dict(self._config), self._asked)

    def write(self) -> None:
        if not self._entries:
            return
        if self._producer is not None:
            self._write_in_transaction(self._producer)
        else:
            for some in self._parts():
                self._stores.write(some, self._deadline.remaining_ms())
        self._stores.close()
        entries = self._stores.connector_entries(self._job.connector, self._deadline.remaining_ms())
        if not entries and not any(self._entries.values()):
            return
        # Most are found as they were written; the others may be there under another raw key.
        doubtful = {
            key: value
            for key, value in self._entries.items()
            if value is None or entries.get(key) != value
        }
        stored, _ = source_offsets(entries if doubtful else {})
        actual = {content_of(found.partition): found.offset for found in stored}
        wrong = sum(not _holds(actual, key, value) for key, value in doubtful.items())
        if wrong:
            LOG.error("offsets read back differ from those written", extra={"count": wrong})
            raise InternalError(failed_text(self._job.connector, "source"))

    def _initialise(self, worker: DistributedConfig) -> Future[TransactionalProducer]:
        """Begin to fence earlier changes, beside reading.

        A leader that died in one has left its transaction open: readers would wait for it until
        it times out, this change's own reading among them.
        """
        own_id = alter_transactional_id(worker.group_id, self._job.connector)
        settings = self._producer_config(worker, own_id)
        producer = TransactionalProducer(settings.properties, settings.max_block_ms)

        def initialised() -> TransactionalProducer:
            if not producer.init(self._deadline.expired):
                raise AgentError("The time was over before the producer was initialized")
            return producer

        return ThreadPoolExecutor(1).submit(initialised)

    def _write_in_transaction(self, initialised: Future[TransactionalProducer]) -> None:
        # A Java leader may have begun such a change, with the id of task 0, and hang in it.
        worker = self._worker
        assert isinstance(worker, DistributedConfig)
        transactional_id = task_transactional_id(worker.group_id, self._job.connector, 0)
        config = self._producer_config(worker, transactional_id)
        try:
            fence({transactional_id: config.properties}, self._deadline.remaining_ms())
        except AuthorizationError as exc:
            # A worker without rights to the id has no change under way with it.
            LOG.warning("id of task 0 not fenced", extra={"reason": exc.message})
        producer = initialised.result()
        try:
            producer.begin()
            for some in self._parts():
                for record in self._stores.prepare(some):
                    self._produce(producer, record.key, record.value)
            producer.commit()
        finally:
            producer.close(0.0)
        for some in self._parts():
            self._stores.committed(some)

    def _parts(self) -> Iterator[dict[bytes, bytes | None]]:
        """Yield the entries, some at once."""
        entries = iter(self._entries.items())
        while some := dict(islice(entries, ENTRIES_AT_ONCE)):
            yield some

    def _produce(
        self, producer: TransactionalProducer, key: bytes | None, value: bytes | None
    ) -> None:
        while True:
            try:
                producer.produce(self._stores.topic, value, key)
            except BufferError:
                producer.serve(0.1)
            else:
                return

    def _producer_config(
        self, worker: DistributedConfig, transactional_id: str
    ) -> LibrdkafkaConfig:
        client_id = f"connector-offset-producer-{self._job.connector}"
        return exactly_once_producer(worker, self._config, client_id, transactional_id).build()


def _holds(actual: Mapping[str, Any], key: bytes, value: bytes | None) -> bool:
    """Whether the partition of a key has the offset of these bytes."""
    parsed = parse_key(key)
    assert not isinstance(parsed, str), "written by this connector's own name"
    return content_of(actual.get(parsed.content)) == content_of(parse_offset(value))
