"""How many connectors or tasks of a worker came up.

Layer: core. Kafka: WorkerMetricsGroup, which counts a start when it has succeeded or failed.
"""

from __future__ import annotations

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metrics.sampled import Outcomes, Sampling
from pyconnect_agent.core.metrics.values import MetricValue


class Startups:
    """`what` is `connector` or `task`."""

    def __init__(self, what: str, sampling: Sampling) -> None:
        self._what = what
        self._outcomes = Outcomes(sampling)
        self._succeeded = 0
        self._failed = 0

    def reported(self, state: State, now_ms: float) -> bool:
        """Take a state of an instance that is starting; True once its start is decided."""
        match state:
            case State.RUNNING:
                self._succeeded += 1
            case State.FAILED:
                self._failed += 1
            case _:
                return False
        self._outcomes.record(success=state is State.RUNNING, now_ms=now_ms)
        return True

    def values(self, now_ms: float) -> dict[str, MetricValue]:
        prefix = f"{self._what}-startup-"
        return {
            f"{prefix}attempts-total": self._succeeded + self._failed,
            f"{prefix}success-total": self._succeeded,
            f"{prefix}success-percentage": self._outcomes.success_share(now_ms),
            f"{prefix}failure-total": self._failed,
            f"{prefix}failure-percentage": self._outcomes.failure_share(now_ms),
        }
