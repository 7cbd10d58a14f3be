"""The selection of a restart request (KIP-745; Kafka: RestartPlan, RestartRequest).

Every worker builds the plan from its own view of the statuses and then restricts it to the work
that it owns; the plan itself has no owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.configlog import RestartRequested
from pyconnect_agent.core.reporting import ConnectorStateInfo, Status


def impact(request: RestartRequested) -> int:
    """Rank among requests for one connector: failed connector only 0 … everything 3."""
    return (0 if request.only_failed else 2) + (1 if request.include_tasks else 0)


def stronger(pending: RestartRequested | None, request: RestartRequested) -> RestartRequested:
    """The request to keep: only a higher impact replaces a pending one."""
    if pending is None or impact(request) > impact(pending):
        return request
    return pending


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """`state_info` shows selected instances as RESTARTING and the rest unchanged."""

    request: RestartRequested
    state_info: ConnectorStateInfo
    restart_connector: bool
    restart_tasks: frozenset[ConnectorTaskId]


def restart_plan(request: RestartRequested, current: ConnectorStateInfo) -> RestartPlan:
    """Mark the selected instances; worker ids, traces and versions are kept."""
    restart_connector = _selected(request, current.connector)
    selected = frozenset(
        n for n, status in current.tasks if request.include_tasks and _selected(request, status)
    )
    return RestartPlan(
        request=request,
        state_info=ConnectorStateInfo(
            name=current.name,
            connector=_restarting(current.connector) if restart_connector else current.connector,
            tasks=tuple(
                (n, _restarting(status) if n in selected else status) for n, status in current.tasks
            ),
            type=current.type,
        ),
        restart_connector=restart_connector,
        restart_tasks=frozenset(ConnectorTaskId(request.connector, n) for n in selected),
    )


def statuses_to_delete(
    *,
    connectors: frozenset[str],
    tasks: Mapping[str, frozenset[int]],
    configured: Mapping[str, int],
) -> tuple[tuple[str, ...], tuple[ConnectorTaskId, ...]]:
    """Return work that is not configured any more, whose statuses a leader tombstones.

    `connectors` and `tasks` are those of the status topic, `configured` the usable task count of
    every configured connector. Returns connectors, and tasks sorted; the tasks of a vanished
    connector are listed too and must be deleted first.
    """
    gone_connectors = tuple(sorted(connectors - configured.keys()))
    gone_tasks = tuple(
        ConnectorTaskId(connector, number)
        for connector in sorted(tasks)
        for number in sorted(tasks[connector])
        if number >= configured.get(connector, 0)
    )
    return gone_connectors, gone_tasks


def _selected(request: RestartRequested, status: Status) -> bool:
    return not request.only_failed or status.state is State.FAILED


def _restarting(status: Status) -> Status:
    return replace(status, state=State.RESTARTING)
