"""The details of each child process that the admin interface shows.

Layer: children.
"""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.channel import StatsReported
from pyconnect_agent.children.connectors import ConnectorChild
from pyconnect_agent.children.ports import ChildDetails
from pyconnect_agent.children.tasks import TaskChild
from pyconnect_agent.children.use import resident_memory
from pyconnect_agent.core.ids import ConnectorTaskId


def task_details(
    task_id: ConnectorTaskId, task: TaskChild, figures: StatsReported | None
) -> ChildDetails:
    """`figures` None: the child did not answer in time."""
    pid = task.child.pid
    common = ChildDetails(
        connector=task_id.connector,
        task=task_id.task,
        pid=pid,
        state=task.state if task.state_reported else None,
        since_ms=task.since_ms,
        rss_bytes=resident_memory(pid),
        cpu_percent=task.use.cpu_percent,
        limits=task.limits,
        responsive=figures is not None,
    )
    if figures is None:
        return common
    return replace(
        common,
        last_activity_ms=figures.last_activity_ms,
        last_commit_ms=figures.last_commit_ms,
        transaction_began_ms=figures.transaction_began_ms,
        queue_size=figures.queue_size,
    )


def connector_details(name: str, entry: ConnectorChild) -> ChildDetails:
    """A connector has no figures; without a process it has no pid either."""
    pid = None if entry.child is None else entry.child.pid
    return ChildDetails(
        connector=name,
        task=None,
        pid=pid,
        state=entry.state,
        since_ms=entry.since_ms,
        rss_bytes=resident_memory(pid),
    )
