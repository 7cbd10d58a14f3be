"""The beginnings of the keys in Connect's config and status topics. Pure."""

from __future__ import annotations

CONNECTOR = "connector-"
TARGET_STATE = "target-state-"
TASK = "task-"
COMMIT = "commit-"
TASK_COUNT = "tasks-fencing-"
SESSION_KEY = "session-key"
RESTART = "restart-connector-"
LOGGER = "logger-cluster-"

STATUS_CONNECTOR = "status-connector-"
STATUS_TASK = "status-task-"
STATUS_TOPIC = "status-topic-"


def split_task(text: str) -> tuple[str, int] | None:
    """Split `<connector>-<task>` at the last `-`, since connectors' names may contain it.

    None when there is no name or no number.
    """
    connector, _, number = text.rpartition("-")
    return (connector, int(number)) if connector and number.isascii() and number.isdigit() else None
