"""Keys and values of the config topic, byte for byte as Apache workers write them.

Kafka: the schemas and key functions of KafkaConfigBackingStore (KIP-52, KIP-507, KIP-618, KIP-745,
KIP-875, KIP-976). Values are UTF-8 JSON of JsonConverter without schemas, members in the order of
the table:

| key | value |
|---|---|
| `connector-<c>` | `{"properties":{…}}`, null when removed |
| `target-state-<c>` | `{"state":…,"state.v2":…}`, null when removed |
| `task-<c>-<n>` | `{"properties":{…}}` |
| `commit-<c>` | `{"tasks":<count>}` |
| `tasks-fencing-<c>` | `{"task-count":<count>}` |
| `session-key` | `{"key":<base64>,"algorithm":…,"creation-timestamp":<ms>}` |
| `restart-connector-<c>` | `{"include-tasks":<bool>,"only-failed":<bool>}` |
| `logger-cluster-<namespace>` | `{"level":…}` |
"""

import base64

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig, SessionKey
from pyconnect_agent.core.java_text import json_text
from pyconnect_clients.connect_names import (
    COMMIT,
    CONNECTOR,
    LOGGER,
    RESTART,
    SESSION_KEY,
    TARGET_STATE,
    TASK,
    TASK_COUNT,
)


def connector_config(connector: str, config: ConnectorConfig) -> LogRecord:
    return _record(CONNECTOR + connector, {"properties": dict(config)})


def connector_removal(connector: str) -> tuple[LogRecord, LogRecord]:
    """Return the tombstones of a deletion in Apache's order: config, then target state."""
    return (
        LogRecord(_key(CONNECTOR + connector), None),
        LogRecord(_key(TARGET_STATE + connector), None),
    )


def target_state(connector: str, state: TargetState) -> LogRecord:
    """Return a target state's record; for old workers its member `state` has PAUSED for STOPPED."""
    legacy = TargetState.PAUSED if state is TargetState.STOPPED else state
    return _record(TARGET_STATE + connector, {"state": legacy.value, "state.v2": state.value})


def task_config(task_id: ConnectorTaskId, config: ConnectorConfig) -> LogRecord:
    return _record(f"{TASK}{task_id.connector}-{task_id.task}", {"properties": dict(config)})


def tasks_commit(connector: str, task_count: int) -> LogRecord:
    return _record(COMMIT + connector, {"tasks": task_count})


def task_count_record(connector: str, task_count: int) -> LogRecord:
    return _record(TASK_COUNT + connector, {"task-count": task_count})


def session_key(key: SessionKey) -> LogRecord:
    return _record(
        SESSION_KEY,
        {
            "key": base64.b64encode(key.key).decode("ascii"),
            "algorithm": key.algorithm,
            "creation-timestamp": key.created_ms,
        },
    )


def restart_request(connector: str, *, only_failed: bool, include_tasks: bool) -> LogRecord:
    return _record(
        RESTART + connector, {"include-tasks": include_tasks, "only-failed": only_failed}
    )


def logger_level(namespace: str, level: str) -> LogRecord:
    return _record(LOGGER + namespace, {"level": level})


def _key(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _record(key: str, value: object) -> LogRecord:
    return LogRecord(_key(key), json_text.dumps(value))
