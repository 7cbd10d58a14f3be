"""The herder's stages that several steps share, as reported to clients whose time is over."""

from __future__ import annotations

from datetime import UTC, datetime

from pyconnect_agent.core.reporting import Stage

INITIALIZING = "initializing and reading to the end of internal topics"
ENSURING_MEMBERSHIP = "ensuring membership in the cluster"
READING_CONFIG = "reading to the end of the config topic"
FLUSHING_STATUSES = "flushing updates to the status topic"
SHUTTING_DOWN = "shutting down"


def writing_task_configs(connector: str, count: int) -> str:
    return f"writing {count} task configs for connector {connector} to the config topic"


def fencing(connector: str) -> str:
    return f"performing a round of zombie fencing for connector {connector}"


STARTING_CONNECTOR = "starting the connector"


def stage_sentence(stage: Stage | None) -> str:
    """One sentence with its final dot; empty when no stage is known."""
    if stage is None:
        return ""
    began = _instant(stage.started_ms)
    if stage.completed_ms is None:
        return f"The worker is currently {stage.description}, which began at {began}."
    return (
        f"The last operation the worker completed was {stage.description}, which began at {began}"
        f" and completed at {_instant(stage.completed_ms)}."
    )


def timed_out_text(stage: Stage | None) -> str:
    sentence = stage_sentence(stage)
    return f"Request timed out. {sentence}" if sentence else "Request timed out"


def _instant(epoch_ms: int) -> str:
    """ISO-8601 in UTC as Java's Instant prints it: milliseconds only when there are any."""
    seconds, millis = divmod(epoch_ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{millis:03d}Z" if millis else f"{text}Z"
