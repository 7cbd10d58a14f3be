"""All metrics of this worker: those of its children and of its membership.

Layer: herder. Kafka: ConnectMetrics with the groups of Worker and DistributedHerder.
"""

from __future__ import annotations

from typing import Protocol

from pyconnect_agent.core.herder.state import HerderState
from pyconnect_agent.core.metrics.catalog import REBALANCE
from pyconnect_agent.core.metrics.rebalances import Rebalances
from pyconnect_agent.core.metrics.values import Metric, MetricValue, tagged
from pyconnect_agent.core.protocol.messages import ProtocolVersion


class ChildMetrics(Protocol):
    """The part of the children that is used here."""

    async def metrics(self) -> tuple[Metric, ...]: ...


async def worker_metrics(
    children: ChildMetrics, state: HerderState, rebalances: Rebalances, now_ms: int
) -> tuple[Metric, ...]:
    """A standalone worker has no metrics of rebalances."""
    found = await children.metrics()
    if state.settings.standalone:
        return found
    membership = state.membership
    values: dict[str, MetricValue] = {
        "connect-protocol": (
            ""
            if membership is None
            else ProtocolVersion(membership.assignment.version).name.upper()
        ),
        "leader-name": state.leader_url or "",
        "epoch": -1 if membership is None else membership.generation,
        **rebalances.values(now_ms),
    }
    return (*found, *tagged({REBALANCE: values}, {}))
