"""The result of one look at a cluster. Values only.

A part that could not be read is missing, and `doubts` gives the reason: a look never fails as a
whole once one worker has answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_cli.acting.workers import WorkerHealth
from pyconnect_cli.kafka.model import OpenProducer, SinkPosition, TopicPartition
from pyconnect_cli.rest.agent_client import AgentChild, AgentInfo
from pyconnect_cli.rest.model import ConnectorView


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Positions of sinks at `time_s` (of a monotonic clock), by connector and partition."""

    time_s: float
    places: Mapping[str, Mapping[TopicPartition, SinkPosition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLook:
    """One worker; `info`, `children` and `rates` are an agent's.

    `rates`: records a second by the name of a task (`orders/0`). `silence`: why an answer has no
    `info`.
    """

    health: WorkerHealth
    info: AgentInfo | None = None
    children: tuple[AgentChild, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    silence: str = ""

    @property
    def url(self) -> str:
        """The address that was asked."""
        return self.health.url


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLook:
    """A cluster. `positions` None: not known; `hanging` None: not looked for, or not known."""

    time_s: float
    kafka_cluster_id: str = ""
    workers: tuple[WorkerLook, ...] = ()
    views: Mapping[str, ConnectorView] = field(default_factory=dict)
    positions: Positions | None = None
    hanging: tuple[OpenProducer, ...] | None = None
    doubts: tuple[str, ...] = ()

    @property
    def children(self) -> dict[str, AgentChild]:
        """Child processes of all agents, by the name of their connector or task."""
        return {child.name: child for worker in self.workers for child in worker.children}

    @property
    def rates(self) -> dict[str, float]:
        """Records a second of all agents' tasks, by their names."""
        return {name: rate for worker in self.workers for name, rate in worker.rates.items()}
