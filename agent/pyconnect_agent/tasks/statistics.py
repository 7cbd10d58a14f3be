"""The statistics of a task, reported when the worker process asks.

Layer: tasks. Written by the task's threads, read by others at any time: single values, so that no
lock is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyconnect_agent.core.metrics.values import GroupValues, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Times are epoch milliseconds, None before the first; see `channel.StatsReported`."""

    last_activity_ms: int | None = None
    last_commit_ms: int | None = None
    transaction_began_ms: int | None = None
    queue_size: int = 0
    metrics: GroupValues = field(default_factory=dict)
    plugins: tuple[Metric, ...] = ()


ReadStatistics = Callable[[], Statistics]
