"""All metrics of this worker: those of its children and of its membership.

Layer: herder. Kafka: ConnectMetrics with the groups of Worker and DistributedHerder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyconnect_agent.core.herder.state import HerderState
from pyconnect_agent.core.herder.work.failures import policy_of
from pyconnect_agent.core.metrics.catalog import REBALANCE, RESTARTS
from pyconnect_agent.core.metrics.rebalances import Rebalances
from pyconnect_agent.core.metrics.values import Metric, MetricValue, tagged
from pyconnect_agent.core.protocol.messages import ProtocolVersion
from pyconnect_agent.core.restart_policy import NoRestart, settled


class ChildMetrics(Protocol):
    """The part of the children that metrics need."""

    async def metrics(self) -> tuple[Metric, ...]: ...


async def worker_metrics(
    children: ChildMetrics, state: HerderState, rebalances: Rebalances, now_ms: int
) -> tuple[Metric, ...]:
    """Return all metrics; a standalone worker has none of rebalances."""
    found = (*await children.metrics(), *_restarts(state, now_ms))
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


def _restarts(state: HerderState, now_ms: int) -> Iterator[Metric]:
    """Return restart metrics of connectors and tasks that have failed on this worker."""
    for connector, share in sorted(state.work.items()):
        policy = policy_of(state, connector) if share.restarts else None
        for task, history in share.restarts.items():
            assert policy is not None
            shown = settled(history, policy, now_ms)
            values: dict[str, MetricValue] = {
                "restart-attempts": len(shown.attempts),
                "restart-attempts-total": shown.total,
                "next-restart-timestamp": shown.next_ms or 0,
                "given-up": int(shown.ended is NoRestart.LIMIT),
            }
            tags = {"connector": connector}
            if task is not None:
                tags["task"] = str(task)
            yield from tagged({RESTARTS: values}, tags)
