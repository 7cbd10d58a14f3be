"""The reducer of the config topic: records in, state and changes out.

Kafka: the consume callback of KafkaConfigBackingStore. It deviates from Apache only for records
that no worker writes. A record that makes Apache throw out of its callback (a task count that is
not an integer, a key that is not base64) is a notice here; a negative count and an unknown logger
level are refused; a property that is neither string nor null becomes its JSON text. Not done here:
expiry of session keys, writing, and whether changes are reported during the first read (the store
decides).

Threading: one owner applies records and takes snapshots. A snapshot shares nothing mutable.

The maps of the state are copied only after changes: a snapshot of a state with a hundred thousand
tasks costs only the maps that changed since the one before. Any thread may read a copy; none may
change it.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import ClassVar, Generic, TypeGuard, TypeVar

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import Notice, NoticeLevel, json_type, key_text
from pyconnect_agent.core.internal_topics.config_snapshot import (
    ConfigSnapshot,
    ConnectorConfig,
    SessionKey,
)
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.log_lines import known_level
from pyconnect_clients import connect_names

K = TypeVar("K")
V = TypeVar("V")


class CopyOnChangeTable(Generic[K, V]):
    """A dict that is copied for a snapshot only when it changed since the last one."""

    __slots__ = ("_copy", "live")

    def __init__(self) -> None:
        self.live: dict[K, V] = {}
        self._copy: dict[K, V] | None = {}

    def put(self, key: K, value: V) -> None:
        self.live[key] = value
        self._copy = None

    def remove(self, key: K) -> None:
        if self.live.pop(key, None) is not None:
            self._copy = None

    def frozen(self) -> Mapping[K, V]:
        if self._copy is None:
            self._copy = self.live.copy()
        return self._copy


class NameSet:
    """A set of connector names, copied like a `CopyOnChangeTable`."""

    __slots__ = ("_copy", "_live")

    def __init__(self) -> None:
        self._live: set[str] = set()
        self._copy: frozenset[str] | None = frozenset()

    def add(self, name: str) -> None:
        if name not in self._live:
            self._live.add(name)
            self._copy = None

    def remove(self, name: str) -> None:
        if name in self._live:
            self._live.remove(name)
            self._copy = None

    def frozen(self) -> frozenset[str]:
        if self._copy is None:
            self._copy = frozenset(self._live)
        return self._copy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorConfigUpdated:
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorConfigRemoved:
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigsUpdated:
    """A commit record was read."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStateChanged:
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeyUpdated:
    session_key: SessionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequested:
    connector: str
    only_failed: bool
    include_tasks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevelUpdated:
    namespace: str
    level: str


ConfigChange = (
    ConnectorConfigUpdated
    | ConnectorConfigRemoved
    | TaskConfigsUpdated
    | TargetStateChanged
    | SessionKeyUpdated
    | RestartRequested
    | LoggerLevelUpdated
)
"""One record's change, for the herder."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The effect of one record: `changes` for the herder, `notices` for the worker's log."""

    changes: tuple[ConfigChange, ...] = ()
    notices: tuple[Notice, ...] = ()


_NOTHING = Applied()
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """The place that a notice names."""

    offset: int
    key: str

    def error(self, event: str, detail: str = "") -> Applied:
        return Applied(notices=(self.notice(NoticeLevel.ERROR, event, detail),))

    def notice(self, severity: NoticeLevel, event: str, detail: str) -> Notice:
        return Notice(
            severity=severity, event=event, key=self.key, detail=detail, offset=self.offset
        )


class ConfigLog:
    """State of the config topic, advanced one record at a time.

    Invariants: `offset` is that of the last decoded record + 1, for any key; every connector with a
    config has a target state; after a reduction of tasks the surplus configs stay until the
    connector is removed, and `task_counts` says which tasks exist; removing a connector keeps its
    target state, inconsistency, task count record, pending fencing and generation.
    """

    def __init__(self) -> None:
        self._offset = -1
        self._session_key: SessionKey | None = None
        self._connector_configs = CopyOnChangeTable[str, ConnectorConfig]()
        self._target_states = CopyOnChangeTable[str, TargetState]()
        self._task_counts = CopyOnChangeTable[str, int]()
        self._task_configs = CopyOnChangeTable[ConnectorTaskId, ConnectorConfig]()
        self._task_count_records = CopyOnChangeTable[str, int]()
        self._generations = CopyOnChangeTable[str, int]()
        self._applied_configs = CopyOnChangeTable[str, ConnectorConfig]()
        self._inconsistent = NameSet()
        self._pending_fencing = NameSet()
        # Task configs read but not committed. After a commit the empty inner dict stays, because it
        # makes an empty commit a new generation.
        self._deferred: dict[str, dict[int, ConnectorConfig]] = {}
        # The task numbers that `_task_configs` has of a connector: a removal need not search all
        # tasks.
        self._task_numbers: dict[str, set[int]] = {}
        self._snapshot: ConfigSnapshot | None = None

    @property
    def offset(self) -> int:
        """Offset of the last decoded record + 1; -1 before any."""
        return self._offset

    def snapshot(self) -> ConfigSnapshot:
        """Return the state now; the same object while nothing is applied.

        Costs a shallow copy of each map that changed since the previous snapshot.
        """
        if self._snapshot is None:
            self._snapshot = ConfigSnapshot(
                offset=self._offset,
                session_key=self._session_key,
                connector_configs=self._connector_configs.frozen(),
                target_states=self._target_states.frozen(),
                task_counts=self._task_counts.frozen(),
                task_configs=self._task_configs.frozen(),
                inconsistent=self._inconsistent.frozen(),
                task_count_records=self._task_count_records.frozen(),
                pending_fencing=self._pending_fencing.frozen(),
                task_config_generations=self._generations.frozen(),
                applied_connector_configs=self._applied_configs.frozen(),
            )
        return self._snapshot

    def apply(self, offset: int, key: bytes | None, value: bytes | None) -> Applied:
        """Advance by one record of the topic; never raises for its content."""
        place = _Place(offset, "null" if key is None else key_text(key))
        try:
            decoded = None if value is None else json_text.loads(value)
        except ValueError:
            return place.error("Failed to convert config data to Kafka Connect format")
        self._offset = offset + 1
        self._snapshot = None
        if key is not None:
            for prefix, reduce in self._reducers:
                if place.key.startswith(prefix):
                    return reduce(self, place, place.key[len(prefix) :], decoded)
            if place.key == connect_names.SESSION_KEY:
                return self._apply_session_key(place, decoded)
        return place.error("Discarding config update record with invalid key")

    def _apply_target_state(self, place: _Place, connector: str, value: object) -> Applied:
        if value is None:
            self._target_states.remove(connector)
            if connector in self._connector_configs.live:
                self._target_states.put(connector, TargetState.STARTED)
            return _NOTHING
        if not isinstance(value, dict):
            return _wrong_format(place, "target state", value)
        notices: tuple[Notice, ...] = ()
        name = value.get("state.v2")
        if name is not None and not isinstance(name, str):
            notices = _wrong_member(place, "target state", "state.v2", "string", name).notices
            name = None
        if name is None:
            name = value.get("state")
        if not isinstance(name, str):
            problem = _wrong_member(place, "target state", "state", "string", name)
            return Applied(notices=notices + problem.notices)
        if name not in TargetState.__members__:
            problem = place.error("Invalid target state", "not the name of a target state")
            return Applied(notices=notices + problem.notices)
        state = TargetState[name]
        changed = self._target_states.live.get(connector) is not state
        self._target_states.put(connector, state)
        # A state before its connector's config is part of a creation, which is reported itself.
        if changed and connector in self._connector_configs.live:
            return Applied((TargetStateChanged(connector=connector),), notices)
        return Applied(notices=notices) if notices else _NOTHING

    def _apply_connector_config(self, place: _Place, connector: str, value: object) -> Applied:
        if value is None:
            self._remove_connector(connector)
            return Applied((ConnectorConfigRemoved(connector=connector),))
        properties = _properties(place, "configuration for connector", value)
        if isinstance(properties, Applied):
            return properties
        self._connector_configs.put(connector, properties)
        if connector not in self._target_states.live:
            self._target_states.put(connector, TargetState.STARTED)
        return Applied((ConnectorConfigUpdated(connector=connector),))

    def _apply_task_config(self, place: _Place, rest: str, value: object) -> Applied:
        try:
            task_id = ConnectorTaskId.parse(rest)
        except ValueError:
            return place.error("Ignoring task configuration: key cannot be parsed as a task's")
        properties = _properties(place, "task configuration", value)
        if isinstance(properties, Applied):
            return properties
        self._deferred.setdefault(task_id.connector, {})[task_id.task] = properties
        return _NOTHING

    def _apply_commit(self, place: _Place, connector: str, value: object) -> Applied:
        config = self._connector_configs.live.get(connector)
        if config is None:
            # The connector was deleted, and compaction has removed both its config and its
            # tombstone.
            self._remove_connector(connector)
            return _NOTHING
        if not isinstance(value, dict):
            return _wrong_format(place, "connector tasks configuration commit", value)
        count = value.get("tasks")
        if not _is_count(count):
            return _wrong_member(place, "tasks commit", "tasks", "integer", count)
        deferred = self._deferred.get(connector)
        numbers = frozenset(deferred or ())
        if all(number in numbers for number in range(count)):
            if deferred is not None:
                known = self._task_numbers.setdefault(connector, set())
                for number in sorted(deferred):
                    self._task_configs.put(ConnectorTaskId(connector, number), deferred[number])
                    known.add(number)
                generation = self._generations.live.get(connector, -1) + 1
                self._generations.put(connector, generation)
            self._inconsistent.remove(connector)
            self._applied_configs.put(connector, config)
        else:
            self._inconsistent.add(connector)
        if deferred is not None:
            deferred.clear()
        self._task_counts.put(connector, count)
        self._pending_fencing.add(connector)
        return Applied((TaskConfigsUpdated(connector=connector),))

    def _apply_task_count_record(self, place: _Place, connector: str, value: object) -> Applied:
        if not isinstance(value, dict):
            return _wrong_format(place, "task count record", value)
        count = value.get("task-count")
        if not _is_count(count):
            return _wrong_member(place, "task count record", "task-count", "integer", count)
        self._task_count_records.put(connector, count)
        self._pending_fencing.remove(connector)
        return _NOTHING

    def _apply_session_key(self, place: _Place, value: object) -> Applied:
        if not isinstance(value, dict):
            return _wrong_format(place, "session key", value)
        text, algorithm = value.get("key"), value.get("algorithm")
        if not isinstance(text, str):
            return _wrong_member(place, "session key", "key", "string", text)
        if not isinstance(algorithm, str):
            return _wrong_member(place, "session key", "algorithm", "string", algorithm)
        created_ms = value.get("creation-timestamp")
        if type(created_ms) is not int:
            return _wrong_member(place, "session key", "creation-timestamp", "long", created_ms)
        try:
            # Java's decoder accepts keys without padding too.
            key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            return place.error("Invalid data for session key", "'key' field is not base64")
        self._session_key = SessionKey(key=key, algorithm=algorithm, created_ms=created_ms)
        return Applied((SessionKeyUpdated(session_key=self._session_key),))

    def _apply_restart_request(self, place: _Place, connector: str, value: object) -> Applied:
        if not isinstance(value, dict):
            return _wrong_format(place, "restart request", value)
        only_failed, include_tasks = value.get("only-failed"), value.get("include-tasks")
        notices = tuple(
            place.notice(
                NoticeLevel.WARNING,
                "Invalid data for restart request, defaulting to false",
                f"'{member}' field should be a boolean but is {json_type(found)}",
            )
            for member, found in (("only-failed", only_failed), ("include-tasks", include_tasks))
            if not isinstance(found, bool)
        )
        change = RestartRequested(
            connector=connector,
            only_failed=only_failed is True,
            include_tasks=include_tasks is True,
        )
        return Applied((change,), notices)

    def _apply_logger_level(self, place: _Place, namespace: str, value: object) -> Applied:
        if not isinstance(value, dict):
            return _wrong_format(place, "logging level", value)
        level = value.get("level")
        if not isinstance(level, str):
            return _wrong_member(place, "logging level", "level", "string", level)
        # A Java worker writes the client's text unchanged, "debug" for instance.
        known = known_level(level)
        if known is None:
            return place.error("Invalid logging level", "not the name of a level")
        return Applied((LoggerLevelUpdated(namespace=namespace, level=known),))

    def _remove_connector(self, connector: str) -> None:
        self._connector_configs.remove(connector)
        self._task_counts.remove(connector)
        self._applied_configs.remove(connector)
        self._deferred.pop(connector, None)
        for number in self._task_numbers.pop(connector, ()):
            self._task_configs.remove(ConnectorTaskId(connector, number))

    # No prefix is a prefix of another; the order makes frequent kinds quick to find.
    _reducers: ClassVar[tuple[tuple[str, Callable[..., Applied]], ...]] = (
        (connect_names.TASK, _apply_task_config),
        (connect_names.COMMIT, _apply_commit),
        (connect_names.CONNECTOR, _apply_connector_config),
        (connect_names.TARGET_STATE, _apply_target_state),
        (connect_names.TASK_COUNT, _apply_task_count_record),
        (connect_names.RESTART, _apply_restart_request),
        (connect_names.LOGGER, _apply_logger_level),
    )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _INT32_MAX


def _properties(place: _Place, what: str, value: object) -> ConnectorConfig | Applied:
    """Return the config of a connector or task record, or the fault in it."""
    if not isinstance(value, dict):
        return _wrong_format(place, what, value)
    properties = value.get("properties")
    if not isinstance(properties, dict):
        return _wrong_member(place, what, "properties", "map", properties)
    # Interned because tens of thousands of tasks have the same few property names.
    return {
        intern(name): found
        if found is None or isinstance(found, str)
        else json_text.dumps(found).decode()
        for name, found in properties.items()
    }


def _wrong_format(place: _Place, what: str, value: object) -> Applied:
    return place.error(
        f"Ignoring {what} because it is in the wrong format",
        f"the value should be a map but is {json_type(value)}",
    )


def _wrong_member(place: _Place, what: str, member: str, wanted: str, value: object) -> Applied:
    return place.error(
        f"Invalid data for {what}",
        f"'{member}' field should be a {wanted} but is {json_type(value)}",
    )
