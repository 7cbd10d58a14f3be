"""A connector's circumstances at the time of a commit: its workers and its tasks. Pure.

Commits of offsets do not name their writer. Statuses and task configurations narrow it down; the
texts say what they say, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyconnect_reconcile.findings import Place
from pyconnect_reconcile.internal_topics.task_configs import TaskConfigSet, sharing
from pyconnect_reconcile.internal_topics.task_statuses import Statuses


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The evidence of the status and config topics; empty where they were not read."""

    statuses: Statuses = field(default_factory=Statuses)
    configs: TaskConfigSet = field(default_factory=TaskConfigSet)

    def stopped_at(self, connector: str, time_ms: int) -> bool | None:
        """Return whether the connector was stopped; None when it is not known."""
        return self.statuses.stopped_at(connector, time_ms)

    def of_writers(self, connector: str, source: str, time_ms: int) -> str:
        """Return the possible writers of an offset, as sentences."""
        texts = self._texts(connector, source, time_ms)
        return "".join(f". {text[:1].upper()}{text[1:]}" for text in texts)

    def _texts(self, connector: str, source: str, time_ms: int) -> Iterator[str]:
        tasks = self.configs.in_force(connector, time_ms) or self.configs.in_force(connector)
        if tasks is not None and (shared := sharing(tasks, source)) is not None:
            yield f"{shared}: give it to one of them"
        takeovers = self.statuses.takeovers(connector)
        before = [each for each in takeovers if each.after.time_ms <= time_ms]
        if before:
            lost, holder = before[-1]
            yield (
                f"task {holder.task} was taken over by {holder.worker} at"
                f" {time_text(holder.place)}, and {lost.worker} had not reported its end:"
                f" check whether {lost.worker} still runs it"
            )
        holders = self.statuses.holders_at(connector, time_ms)
        if holders:
            told = ", ".join(f"task {each.task} by {each.worker}" for each in holders[:8])
            more = f" and {len(holders) - 8} more" if len(holders) > 8 else ""
            yield f"Tasks held at that time, as reported: {told}{more}"


def time_text(place: Place) -> str:
    """Return a record's time for people, in UTC."""
    moment = datetime.fromtimestamp((place.timestamp_ms or 0) / 1000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")
