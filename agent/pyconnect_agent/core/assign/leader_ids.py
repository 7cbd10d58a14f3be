"""Whether the members of a group would all lead under the same transactional id.

Layer: core. Project decision: `agent.leader.transactional.id` replaces
`connect-cluster-<group>`. A leader fences its predecessors by initialising their id, so two ids
cannot fence each other: while members differ, the leader does not write. A member that says nothing
counts as one with Kafka's id, which a Java worker is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.protocol.messages import Subscription

KEY = "agent.leader.transactional.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIds:
    """`own`: under which this worker leads; `apaches`: under which any other worker would.

    `fencing`: this worker, as leader, writes in transactions (`preparing` or `enabled`). Without
    them no id fences anybody, and none can be wrong.
    """

    own: str
    apaches: str
    fencing: bool

    @property
    def told(self) -> str | None:
        """The id in the subscription; None keeps the bytes of an Apache worker."""
        return None if self.own == self.apaches else self.own

    def others(self, members: Mapping[str, Subscription]) -> Mapping[str, str]:
        """Return the ids that differ from `own` by their worker's URL, in the URLs' order.

        A member whose subscription could not be read is named by its member id.
        """
        if not self.fencing:
            return {}
        told = {
            subscription.url or member: subscription.leader_transactional_id or self.apaches
            for member, subscription in members.items()
        }
        return {url: told[url] for url in sorted(told) if told[url] != self.own}
