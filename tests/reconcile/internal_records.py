"""Records of the status and config topics, of connector c."""

import json
from collections.abc import Mapping

from pyconnect_reconcile.findings import Place
from pyconnect_reconcile.task_records import StatusReport, read_status


def status(
    key: str, state: str | None, time_ms: int, worker: str, generation: int, offset: int
) -> StatusReport:
    place = Place(topic="status", partition=0, offset=offset, timestamp_ms=time_ms, key=key)
    fields = {"state": state, "worker_id": worker, "generation": generation}
    read = read_status(place, None if state is None else fields)
    assert read is not None
    return read


def task(
    number: int,
    state: str | None,
    time_ms: int,
    *,
    worker: str = "a:1",
    generation: int = 1,
    offset: int | None = None,
) -> StatusReport:
    at = time_ms if offset is None else offset
    return status(f"status-task-c-{number}", state, time_ms, worker, generation, at)


def stopped(time_ms: int, *, state: str = "STOPPED") -> StatusReport:
    return status("status-connector-c", state, time_ms, "a:1", 1, time_ms)


def config_records(
    *tasks: Mapping[str, str], first: int = 0, connector: str = "c"
) -> list[tuple[Place, bytes | None]]:
    """Return the records of a connector, its tasks and their commit, all at 0 ms."""
    contents: list[tuple[str, object]] = [
        (f"connector-{connector}", {"properties": {}}),
        *(
            (f"task-{connector}-{number}", {"properties": dict(properties)})
            for number, properties in enumerate(tasks)
        ),
        (f"commit-{connector}", {"tasks": len(tasks)}),
    ]
    return [
        (
            Place(topic="config", partition=0, offset=first + index, timestamp_ms=0, key=key),
            json.dumps(content).encode(),
        )
        for index, (key, content) in enumerate(contents)
    ]
