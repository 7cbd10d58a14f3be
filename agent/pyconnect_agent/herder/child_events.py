"""Reports of the children, posted to the herder; topics they use go to the status store.

Layer: herder. Called on the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.reporting import STACKS_FOLLOW, Reported
from pyconnect_agent.herder.clock import WorkerClock
from pyconnect_agent.stores.status import StatusStore

LOG = logging.getLogger(__name__)


class ChildEvents:
    """Implements `children.ports.ChildListener`. `track_topics`: `topic.tracking.enable`."""

    def __init__(
        self,
        post: Callable[[on.Event], None],
        statuses: StatusStore,
        clock: WorkerClock,
        *,
        track_topics: bool,
    ) -> None:
        self._post = post
        self._statuses = statuses
        self._clock = clock
        self._track_topics = track_topics

    def reported(self, item: Instance, report: Reported) -> None:
        if isinstance(item, ConnectorTaskId):
            kind, failed, changed = "task", "task has failed", "task changed state"
        else:
            kind, failed, changed = "connector", "connector has failed", "connector changed state"
        fields = {kind: str(item), "state": report.state.value}
        if report.state is State.FAILED:
            LOG.error(failed, extra={**fields, "reason": _innermost(report.trace)})
        else:
            LOG.info(changed, extra=fields)
        self._post(on.InstanceReported(item=item, report=report))

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None:
        self._post(on.TaskStartAsked(task_id=task_id, request_id=request_id))

    def task_reconfiguration_requested(self, connector: str) -> None:
        self._post(on.ReconfigurationRequested(connector=connector))

    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None:
        if self._track_topics and not self._statuses.has_topic(task_id.connector, topic):
            now_ms = self._clock.now_ms()
            self._statuses.put_topic(task_id.connector, task_id.task, topic, now_ms)

    def config_ttl_expired(self, connector: str) -> None:
        LOG.info("a config provider's values expire", extra={"connector": connector})
        self._post(on.ConfigExpired(connector=connector))

    def lease_expired(self) -> None:
        # The group has removed this worker, or will do so: in both cases it joins again.
        LOG.warning("this worker was frozen or without its group for too long; it joins again")
        self._post(on.MembershipLost())


def _innermost(trace: str | None) -> str:
    """Return the line of the last cause; lines of stacks begin with blanks or tabs.

    After a kill the stacks are no cause.
    """
    causes = (trace or "").partition(f"\n{STACKS_FOLLOW}")[0]
    errors = [line for line in causes.splitlines() if line and not line[0].isspace()]
    return errors[-1] if errors else ""
