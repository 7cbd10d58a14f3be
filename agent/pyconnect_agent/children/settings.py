"""The settings that every child gets from the worker, and the start of children.

Layer: children. Values only, so that the modules beside it do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyconnect_agent.channel import Job, Message, WorkerSettings
from pyconnect_agent.children.child import Child
from pyconnect_agent.children.child_end import ChildEnd
from pyconnect_agent.children.logs import LogSettings
from pyconnect_agent.core.config.agent_keys import NO_AGENT_KEYS, AgentKeys
from pyconnect_agent.core.metrics.values import DEFAULT_SAMPLING, Sampling

CONNECTOR_GRACEFUL_MS = 5_000
"""Kafka's constant: all connectors being stopped share it."""

REQUEST_TIMEOUT_MS = 90_000
"""The longest wait for a plugin's answer: Connect's limit of a REST request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """`worker`: given to every child.

    `task_shutdown_graceful_timeout_ms`: for all tasks being stopped together, 0 or more.
    `lease_ms`: time without a lease after which a child ends itself; None switches leases off.
    `sampling`: of the worker's metrics. `logs`: of the children's log lines.
    `agent_keys`: of the worker, which connectors override.
    """

    worker: WorkerSettings
    task_shutdown_graceful_timeout_ms: int = 5_000
    lease_ms: int | None = None
    sampling: Sampling = DEFAULT_SAMPLING
    logs: LogSettings = LogSettings()  # noqa: RUF009  a value
    agent_keys: AgentKeys = NO_AGENT_KEYS


ChildFactory = Callable[[str, Job, Callable[[Message], None], Callable[[ChildEnd], None]], Child]
"""Makes a child of name and job, with its `on_message` and `on_exit`."""
