"""How often a worker rebalances, and how long that takes.

Layer: core. Kafka: DistributedHerder.HerderMetrics.
"""

from __future__ import annotations

import math

from pyconnect_agent.core.metrics.sampled import Sampled, Sampling
from pyconnect_agent.core.metrics.values import MetricValue


class Rebalances:
    """Told whether one is under way whenever that may have changed; `now_ms` of one clock."""

    def __init__(self, sampling: Sampling) -> None:
        self._times_ms = Sampled(sampling)
        self._completed = 0
        self._began_ms: float | None = None
        self._ended_ms: float | None = None

    def under_way(self, now_ms: float) -> None:
        if self._began_ms is None:
            self._began_ms = now_ms

    def over(self, now_ms: float) -> None:
        if self._began_ms is not None:
            self._times_ms.record(now_ms - self._began_ms, now_ms)
            self._completed += 1
            self._began_ms, self._ended_ms = None, now_ms

    def values(self, now_ms: float) -> dict[str, MetricValue]:
        """All of the group but protocol, leader and epoch."""
        ended_ms = self._ended_ms
        return {
            "completed-rebalances-total": self._completed,
            "rebalancing": float(self._began_ms is not None),
            "rebalance-max-time-ms": self._times_ms.maximum(now_ms),
            "rebalance-avg-time-ms": self._times_ms.average(now_ms),
            "time-since-last-rebalance-ms": math.inf if ended_ms is None else now_ms - ended_ms,
        }
