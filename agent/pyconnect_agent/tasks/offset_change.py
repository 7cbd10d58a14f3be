"""Change the offsets of a stopped connector, in a process of its own (KIP-875).

Kafka: `Worker.modifyConnectorOffsets`. The connector's own `alter_offsets` runs here, on an
instance that was never started. Nothing is written before the worker has confirmed that the
connector is still stopped. The worker process kills this process when its time is over.

Sink connectors: the offsets are those of the consumer group. A reset deletes the whole group; an
alter commits positions and deletes those that the request sets to null. Both fail while tasks that
have not ended yet are members of the group.

Source connectors: a reset writes a tombstone to every raw key of the connector, as it is on the
topic. With exactly-once support one transaction of `<group>-<connector>`, the id of the accepted
proposal, has all writes; Apache's leaders use the id of task 0, which is fenced too. Finally all
offsets are read back.

Offsets are read in such a process too: the connector's overrides may hold secrets, which no worker
process sees.
"""

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import cast

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import (
    ConsumerOffsets,
    OffsetChangeReached,
    OffsetsChanged,
    OwnOffsets,
)
from pyconnect_agent.channel.requests import ChangeOffsetsJob, ReadOffsetsJob
from pyconnect_agent.core.clients.configs import connector_admin, exactly_once_producer
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import (
    AgentError,
    AlreadyExistsError,
    AuthorizationError,
    InternalError,
    NotFoundError,
    RequestError,
    WorkerConfigError,
)
from pyconnect_agent.core.internal_topics.offsetlog import content_of, parse_key
from pyconnect_agent.core.offsets.connector_offsets import (
    ChangeStage,
    StoredPairs,
    failed_text,
    forgotten_pairs,
    read_pairs,
    sink_offsets_asked,
    source_entries_asked,
    source_offsets,
    unsupported_text,
    zombie_text,
)
from pyconnect_agent.core.offsets.source import parse_offset
from pyconnect_agent.core.plugin_catalog import PluginKind
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import fence
from pyconnect_agent.kafka.group_offsets import GroupInUseError, GroupOffsets, deletion_arguments
from pyconnect_agent.kafka.offset_image import OffsetImage
from pyconnect_agent.kafka.task_producer import TransactionalProducer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.connector import java_connector
from pyconnect_agent.tasks.in_java.process import java_class_of
from pyconnect_agent.tasks.questions import answer
from pyconnect_agent.tasks.source.offsets import OffsetUse, offset_stores, own_offset_log
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import (
    AlreadyExistsException,
    ConnectException,
    NotFoundException,
    SinkConnector,
    SourceConnector,
    TopicPartition,
)
from pyconnect_clients.connect_names import (
    alter_transactional_id,
    sink_group_id,
    task_transactional_id,
)

ENTRIES_AT_ONCE = 10_000
"""The most entries in one write to a store, so that no producer has to queue more."""


class SourceOffsetChange:
    """The steps of a change: `collect`, `ask_connector` and `write`; `config` is resolved.

    Each may raise RequestError, ConnectException or AgentError.
    """

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
        """Read the present offsets, or check the requested ones."""
        if isinstance(self._worker, DistributedConfig) and self._transactional:
            # The producer fences earlier changes while offsets are read. A leader that died in a
            # change has left its transaction open: readers, such as those below, wait for it until
            # it times out.
            own_id = alter_transactional_id(self._worker.group_id, self._job.connector)
            settings = self._producer_config(self._worker, own_id)
            producer = TransactionalProducer(settings.properties, settings.max_block_ms)

            def initialised() -> TransactionalProducer:
                if not producer.init(self._deadline.expired):
                    raise AgentError("The time was over before the producer was initialized")
                return producer

            self._producer = ThreadPoolExecutor(1).submit(initialised)
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
        """Call `alter_offsets`; return True when nothing outside of Kafka Connect is left to do."""
        return self._connector.alter_offsets(dict(self._config), self._asked)

    def write(self) -> None:
        """Write the offsets, and read them back."""
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
        # Most entries are read back unchanged; the others may be there under another raw key.
        doubtful = {
            key: value
            for key, value in self._entries.items()
            if value is None or entries.get(key) != value
        }
        stored, _ = source_offsets(entries if doubtful else {})
        actual = {content_of(found.partition): found.offset for found in stored}
        wrong = 0
        for key, value in doubtful.items():
            parsed = parse_key(key)
            assert not isinstance(parsed, str), "written by this connector's own name"
            wrong += content_of(actual.get(parsed.content)) != content_of(parse_offset(value))
        if wrong:
            LOG.error("offsets read back differ from those written", extra={"count": wrong})
            raise InternalError(failed_text(self._job.connector, "source"))

    def _write_in_transaction(self, initialised: Future[TransactionalProducer]) -> None:
        # A Java leader may have started such a change, with the id of task 0, and hang in it.
        worker = self._worker
        assert isinstance(worker, DistributedConfig)
        transactional_id = task_transactional_id(worker.group_id, self._job.connector, 0)
        config = self._producer_config(worker, transactional_id)
        try:
            fence({transactional_id: config.properties}, self._deadline.remaining_ms())
        except AuthorizationError as exc:
            # A worker without rights to the id has not started a change with it.
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
        """Yield the entries in parts of at most ENTRIES_AT_ONCE."""
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


class SinkOffsetChange:
    """The same steps as those of `SourceOffsetChange`, for a group; `config` is resolved."""

    def __init__(
        self,
        job: ChangeOffsetsJob,
        connector: SinkConnector,
        worker: WorkerConfig,
        config: Mapping[str, str],
        *,
        deadline: Deadline,
    ) -> None:
        self._job = job
        self._connector = connector
        self._config = config
        self._deadline = deadline
        self._group = sink_group_id(job.connector, config, worker.originals)
        client_id = f"connector-worker-adminclient-{job.connector}"
        self._admin = connector_admin(worker, config, client_id)
        self._asked: dict[TopicPartition, int | None] = {}

    def collect(self) -> None:
        if self._job.offsets is not None:
            self._asked = sink_offsets_asked(read_pairs(self._job.offsets))
            if None in self._asked.values():
                try:
                    deletion_arguments(self._admin)
                except WorkerConfigError as exc:
                    raise InternalError(
                        "Failed to alter consumer group offsets for connector"
                        f" {self._job.connector}: single offsets cannot be deleted as its admin"
                        f" client connects, {exc}. Nothing was changed; all can be reset, and each"
                        " can be set to a position"
                    ) from exc
            return
        try:
            committed = self._offsets().committed()
        except AgentError as exc:
            self._log(exc)
            raise InternalError(
                "Failed to list offsets prior to resetting offsets for sink connector"
                f" {self._job.connector}"
            ) from exc
        self._asked = {TopicPartition(found.topic, found.partition): None for found in committed}

    def ask_connector(self) -> bool:
        return self._connector.alter_offsets(dict(self._config), dict(self._asked))

    def write(self) -> None:
        if any(offset is not None and offset < 0 for offset in self._asked.values()):
            raise InternalError(failed_text(self._job.connector, "sink"))
        verb, what = ("reset", " sink") if self._job.offsets is None else ("alter", "")
        try:
            self._write()
        except GroupInUseError as exc:
            self._log(exc)
            members = f" Members of group {self._group}: {exc.members}." if exc.members else ""
            raise InternalError(zombie_text(self._job.connector, verb) + members) from exc
        except AgentError as exc:
            self._log(exc)
            raise InternalError(
                f"Failed to {verb} consumer group offsets for{what} connector {self._job.connector}"
            ) from exc

    def _write(self) -> None:
        changes = self._offsets()
        if self._job.offsets is None:
            changes.delete_group()
            return
        positions = {found: offset for found, offset in self._asked.items() if offset is not None}
        # Both calls are tried, as in Kafka Connect; a request that failed in part can be repeated.
        failure: AgentError | None = None
        try:
            changes.commit(positions)
        except AgentError as exc:
            failure = exc
        changes.delete([found for found, offset in self._asked.items() if offset is None])
        if failure is not None:
            raise failure

    def _offsets(self) -> GroupOffsets:
        return GroupOffsets(self._admin, self._group, self._deadline)

    def _log(self, exc: AgentError) -> None:
        LOG.error("group offsets could not be changed", extra={"reason": exc.message})


LOG = logging.getLogger(__name__)


def change_offsets(job: ChangeOffsetsJob, control: Control) -> Message:
    """Return the answer to a change of offsets, which may be a failure; never raises."""
    return answer(job.worker, lambda worker: _changed(job, control, worker))


def _changed(job: ChangeOffsetsJob, control: Control, worker: WorkerView) -> Message:
    resolved = worker.resolve(job.config)
    java = java_class_of(worker, resolved.values)
    connector = (
        worker.connector(resolved.values)
        if java is None
        else java_connector(java, worker, control, resolved.values)
    )
    deadline = Deadline(job.timeout_ms)
    change: SourceOffsetChange | SinkOffsetChange
    if isinstance(connector, SinkConnector):
        kind = "sink"
        change = SinkOffsetChange(job, connector, worker.config, resolved.values, deadline=deadline)
    else:
        kind = "source"
        source = cast("SourceConnector", connector)
        change = SourceOffsetChange(
            job, source, worker.config, resolved.values, deadline=deadline, control=control
        )
    try:
        control.send(OffsetChangeReached(kind=kind, stage=ChangeStage.READING))
        change.collect()
        control.send(OffsetChangeReached(kind=kind, stage=ChangeStage.CALLING))
        try:
            # A method without a return statement does not claim to have checked the offsets.
            complete = bool(change.ask_connector())
        except NotImplementedError as exc:
            raise InternalError(unsupported_text(job.connector)) from exc
        control.send(OffsetChangeReached(kind=kind, stage=ChangeStage.WRITING))
        control.confirm_offset_change(deadline.remaining_ms(), complete=complete)
        change.write()
    except RequestError:
        raise
    # Kafka Connect has a text for any exception, SystemExit of a plugin included.
    except BaseException as exc:
        LOG.error("offsets could not be modified", exc_info=exc)
        text = worker.mask(str(exc))
        match exc:
            case NotFoundException():
                raise NotFoundError(text) from exc
            case AlreadyExistsException():
                raise AlreadyExistsError(text) from exc
            case ConnectException():
                raise InternalError(text) from exc
            case _:
                raise InternalError(failed_text(job.connector, kind)) from exc
    return OffsetsChanged()


def read_offsets(job: ReadOffsetsJob) -> Message:
    """Return the stored offsets or a failure as the answer; never raises."""
    read = _read_own if job.own else _read_committed
    return answer(job.worker, lambda worker: read(job, worker))


def _read_committed(job: ReadOffsetsJob, worker: WorkerView) -> Message:
    config = worker.resolve(job.config).values
    java = java_class_of(worker, config)
    if java is None:
        is_sink = isinstance(worker.connector(config), SinkConnector)
    else:  # the catalog answers: no Java process starts
        found = worker.catalog.java.find(java.name)
        is_sink = any(plugin.kind is PluginKind.SINK for plugin in found)
    if not is_sink:
        return ConsumerOffsets(committed=None)
    admin = connector_admin(worker.config, config, f"connector-worker-adminclient-{job.connector}")
    group = sink_group_id(job.connector, config, worker.config.originals)
    committed = GroupOffsets(admin, group, Deadline(job.timeout_ms)).committed()
    return ConsumerOffsets(committed=committed)


def _read_own(job: ReadOffsetsJob, worker: WorkerView) -> Message:
    config = worker.resolve(job.config).values
    found = own_offset_log(
        worker.config, job.connector, config, client=job.connector, is_brief=True
    )
    if found is None:
        return OwnOffsets(entries={})
    _, log = found
    image = OffsetImage()
    log.start(image)
    return OwnOffsets(entries=image.connector_entries(job.connector))
