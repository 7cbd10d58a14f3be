"""The reducer of the status topic, its record formats, and the rules of writing to it.

Kafka: KafkaStatusBackingStore with its CacheEntry, TopicStatus (KIP-558), plugin versions in
statuses (KIP-891).

`status-connector-<c>` and `status-task-<c>-<n>`:
`{"state":…,"trace":…,"worker_id":…,"generation":…,"version":…}`. `status-topic-<t>:connector-<c>`:
`{"topic":{"name":…,"connector":…,"task":…,"discoverTimestamp":…}}`.

A null value removes an entry. Sends are numbered per connector or task, so that a failed send is
repeated only while nothing newer was sent, and never over the status of a later owner. Kafka
repeats only within one generation, and compares only statuses sent with putSafe. A status of an
earlier generation may still arrive late, from the send buffer of a worker whose network was silent:
the owner then writes its own again. This module decides about sends, and the store performs them.

Threading: one owner; the store serialises its threads with a lock around every call.
"""

from dataclasses import dataclass

from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.internal_topics import LogRecord, Notice, NoticeLevel, json_type, key_text
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.reporting import Status
from pyconnect_clients.connect_names import STATUS_CONNECTOR, STATUS_TASK, STATUS_TOPIC

TOPIC_SEPARATOR = ":connector-"
TRACE_CHARACTERS = 200_000
"""Brokers refuse records above 1 MiB, and without this limit a FAILED task could seem to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """A topic that a connector has used; `discovered_ms` is epoch milliseconds."""

    topic: str
    connector: str
    task: int
    discovered_ms: int


class _Entry:
    """One connector or task: the last status read, this worker's last one, the number of sends."""

    __slots__ = ("deleted", "own", "sequence", "status")

    def __init__(self) -> None:
        self.status: Status | None = None
        self.own: Status | None = None
        self.sequence = 0
        self.deleted = False

    def can_write_safely(self, status: Status) -> bool:
        return (
            self.status is None
            or self.status.worker_id == status.worker_id
            or self.status.generation <= status.generation
        )


@dataclass(frozen=True, slots=True)
class StatusSend:
    """A send of `record` under way; the other fields decide whether it is repeated."""

    record: LogRecord
    entry: _Entry
    status: Status | None
    sequence: int


class StatusLog:
    """State of the status topic and of this worker's sends to it."""

    def __init__(self) -> None:
        self._connectors: dict[str, _Entry] = {}
        self._tasks: dict[str, dict[int, _Entry]] = {}
        self._topics: dict[str, dict[str, TopicStatus]] = {}
        self._corrections: list[StatusSend] = []

    def connector(self, connector: str) -> Status | None:
        entry = self._connectors.get(connector)
        return None if entry is None else entry.status

    def task(self, task_id: ConnectorTaskId) -> Status | None:
        entry = self._tasks.get(task_id.connector, {}).get(task_id.task)
        return None if entry is None else entry.status

    def tasks(self, connector: str) -> dict[int, Status]:
        """Return the statuses that were read, in order of task number."""
        entries = self._tasks.get(connector, {})
        return {
            number: status
            for number in sorted(entries)
            if (status := entries[number].status) is not None
        }

    def connectors(self) -> frozenset[str]:
        """Return the connectors with a status that was read or sent."""
        return frozenset(self._connectors)

    def topics(self, connector: str) -> tuple[str, ...]:
        """Return the active topics, sorted."""
        return tuple(sorted(self._topics.get(connector, ())))

    def topic(self, connector: str, topic: str) -> TopicStatus | None:
        return self._topics.get(connector, {}).get(topic)

    def apply(self, key: bytes | None, value: bytes | None) -> tuple[Notice, ...]:
        """Advance by one record of the topic; never raises for its content."""
        text = "null" if key is None else key_text(key)
        if key is not None and text.startswith(STATUS_CONNECTOR):
            connector = text[len(STATUS_CONNECTOR) :]
            if connector:
                return self._apply_status(text, connector, value)
            return _discard(text, "Discarding record with invalid connector status key")
        if key is not None and text.startswith(STATUS_TASK):
            try:
                task_id = ConnectorTaskId.parse(text[len(STATUS_TASK) :])
            except ValueError:
                return _discard(text, "Discarding record with invalid task status key")
            return self._apply_status(text, task_id, value)
        if key is not None and text.startswith(STATUS_TOPIC):
            return self._apply_topic(text, text[len(STATUS_TOPIC) :], value)
        return _discard(text, "Discarding record with invalid key")

    def _apply_status(self, key: str, item: Instance, value: bytes | None) -> tuple[Notice, ...]:
        is_task = isinstance(item, ConnectorTaskId)
        if value is None:
            self._remove(item)
            return ()
        status = _decode_status(value)
        if isinstance(status, str):
            kind = "task" if is_task else "connector"
            return _undecodable(key, f"Failed to deserialize {kind} status", status)
        entry = self._entry(item)
        known, own = entry.status, entry.own
        if not _is_late(status, known, is_task=is_task):
            entry.status = status
        if (
            own is not None
            and own.state is not State.UNASSIGNED
            and own.worker_id != status.worker_id
            and own.generation > status.generation
        ):
            entry.sequence += 1
            self._corrections.append(_status_send(key, entry, own))
        return ()

    def _remove(self, item: Instance) -> None:
        """Remove a connector with its tasks, or one task."""
        if isinstance(item, ConnectorTaskId):
            tasks = self._tasks.get(item.connector, {})
            gone = [tasks.pop(item.task, None)]
            if not tasks:
                self._tasks.pop(item.connector, None)
        else:
            gone = [self._connectors.pop(item, None), *self._tasks.pop(item, {}).values()]
        for entry in filter(None, gone):
            entry.deleted = True

    def corrections(self) -> tuple[StatusSend, ...]:
        """Return the sends that follow from the records read since the last call, each once."""
        taken, self._corrections = tuple(self._corrections), []
        return taken

    def _apply_topic(self, key: str, rest: str, value: bytes | None) -> tuple[Notice, ...]:
        topic, _, tail = rest.partition(":")
        connector = tail.removeprefix(TOPIC_SEPARATOR[1:])
        if not topic or not connector or connector == tail:
            return _discard(key, "Discarding record with invalid topic status key")
        if value is None:
            active = self._topics.get(connector, {})
            active.pop(topic, None)
            if not active:
                self._topics.pop(connector, None)
            return ()
        status = _decode_topic(value)
        if isinstance(status, str):
            return _undecodable(key, "Failed to deserialize topic status", status)
        self._topics.setdefault(connector, {})[topic] = status
        return ()

    def send(self, item: Instance, status: Status, *, safe: bool) -> StatusSend | None:
        """Return a numbered send; None if `safe` and it would overwrite a newer worker's status."""
        if status.state is State.DESTROYED:
            return self.send_removal(item)
        entry = self._entry(item)
        entry.own = status
        if safe and not entry.can_write_safely(status):
            return None
        entry.sequence += 1
        return _status_send(_status_key(item), entry, status)

    def send_removal(self, item: Instance) -> StatusSend:
        entry = self._entry(item)
        entry.own = None
        entry.sequence += 1
        return StatusSend(LogRecord(_key(_status_key(item)), None), entry, None, entry.sequence)

    def should_repeat(self, send: StatusSend) -> bool:
        """Return whether to repeat a failed send; the topic was read to its end after that."""
        entry = send.entry
        if entry.deleted or entry.sequence != send.sequence:
            return False
        return send.status is None or entry.can_write_safely(send.status)

    def _entry(self, item: Instance) -> _Entry:
        if isinstance(item, ConnectorTaskId):
            return self._tasks.setdefault(item.connector, {}).setdefault(item.task, _Entry())
        return self._connectors.setdefault(item, _Entry())


def _status_key(item: Instance) -> str:
    return f"{STATUS_TASK if isinstance(item, ConnectorTaskId) else STATUS_CONNECTOR}{item}"


def _status_send(key: str, entry: _Entry, status: Status) -> StatusSend:
    record = LogRecord(_key(key), encode_status(status))
    return StatusSend(record, entry, status, entry.sequence)


def encode_status(status: Status) -> bytes:
    """Return a status record's value: missing `trace` and `version` are null, long traces cut."""
    trace = status.trace
    left_out = len(trace or "") - TRACE_CHARACTERS
    if trace is not None and left_out > 0:
        # The ends of a trace name the first and the last causes.
        half = TRACE_CHARACTERS // 2
        trace = f"{trace[:half]}\n[... {left_out} characters are left out ...]\n{trace[-half:]}"
    return json_text.dumps(
        {
            "state": status.state.value,
            "trace": trace,
            "worker_id": status.worker_id,
            "generation": status.generation,
            "version": status.version,
        }
    )


def topic_record(status: TopicStatus) -> LogRecord:
    value = {
        "topic": {
            "name": status.topic,
            "connector": status.connector,
            "task": status.task,
            "discoverTimestamp": status.discovered_ms,
        }
    }
    return LogRecord(_topic_key(status.connector, status.topic), json_text.dumps(value))


def topic_removal(connector: str, topic: str) -> LogRecord:
    return LogRecord(_topic_key(connector, topic), None)


def _topic_key(connector: str, topic: str) -> bytes:
    return _key(f"{STATUS_TOPIC}{topic}{TOPIC_SEPARATOR}{connector}")


def _key(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _is_late(status: Status, known: Status | None, *, is_task: bool) -> bool:
    """Return whether a late UNASSIGNED would hide a RUNNING (KAFKA-12525).

    For tasks also within one generation, unless the worker of the RUNNING itself wrote it. In Kafka
    that one is late too: a worker that has lost its group, without a successor, would seem to run
    its tasks.

    Kafka does not protect connectors. Here a connector's status of a later generation and another
    worker is protected: a worker that was frozen past its session writes UNASSIGNED before it has
    read that another one runs the connector, and nothing would correct that. A report of the owner
    itself always counts.
    """
    if status.state is not State.UNASSIGNED or known is None or known.state is not State.RUNNING:
        return False
    if known.generation > status.generation:
        return is_task or known.worker_id != status.worker_id
    same = known.generation == status.generation
    return same and is_task and known.worker_id != status.worker_id


def _decode_status(value: bytes) -> Status | str:
    """Return the status, or the fault in it."""
    body = _decode_object(value)
    if isinstance(body, str):
        return body
    state, trace, version = body.get("state"), body.get("trace"), body.get("version")
    worker_id, generation = body.get("worker_id"), body.get("generation")
    if not isinstance(state, str) or state not in State.__members__:
        return "'state' is not the name of a state"
    if trace is not None and not isinstance(trace, str):
        return f"'trace' should be a string but is {json_type(trace)}"
    if not isinstance(worker_id, str):
        return f"'worker_id' should be a string but is {json_type(worker_id)}"
    if type(generation) is not int:
        return f"'generation' should be an integer but is {json_type(generation)}"
    return Status(
        state=State[state],
        worker_id=worker_id,
        generation=generation,
        trace=trace,
        version=version if isinstance(version, str) else None,
    )


def _decode_topic(value: bytes) -> TopicStatus | str:
    """Return the topic status, or the fault in it."""
    body = _decode_object(value)
    if isinstance(body, str):
        return body
    inner = body.get("topic")
    if not isinstance(inner, dict):
        return f"'topic' should be an object but is {json_type(inner)}"
    name, connector = inner.get("name"), inner.get("connector")
    task, discovered_ms = inner.get("task"), inner.get("discoverTimestamp")
    if not isinstance(name, str) or not isinstance(connector, str):
        return "'name' and 'connector' should be strings"
    if type(task) is not int or type(discovered_ms) is not int:
        return "'task' and 'discoverTimestamp' should be integers"
    return TopicStatus(topic=name, connector=connector, task=task, discovered_ms=discovered_ms)


def _decode_object(value: bytes) -> dict[str, object] | str:
    try:
        body = json_text.loads(value)
    except ValueError:
        return "the value is not JSON"
    return body if isinstance(body, dict) else f"the value is {json_type(body)}, not an object"


def _discard(key: str, event: str) -> tuple[Notice, ...]:
    return (Notice(severity=NoticeLevel.WARNING, event=event, key=key),)


def _undecodable(key: str, event: str, detail: str) -> tuple[Notice, ...]:
    return (Notice(severity=NoticeLevel.ERROR, event=event, key=key, detail=detail),)
