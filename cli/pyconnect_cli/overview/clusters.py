"""One row for each cluster of several contexts: the clusters with faults first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyconnect_cli.overview.status import ClusterStatus, number_column, number_text, short_cause
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column

Row = TypeVar("Row")
SILENT = "unreachable"
LATE = "lag and transactions: "
"""Begin of the doubt about brokers that have not answered in time."""
UNKNOWN = "unknown"
SEVERITY = (SILENT, "FAILED", "unhealthy", "hanging", UNKNOWN, "healthy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """The cluster of a context at one moment; `status` None: `silence` says why it is not known."""

    name: str
    status: ClusterStatus | None = None
    silence: str = ""

    @property
    def health(self) -> str:
        """One of SEVERITY: the worst that is known about the cluster."""
        if self.status is None:
            return SILENT
        if self.status.failed:
            return "FAILED"
        if any(worker.broken for worker in self.status.workers):
            return "unhealthy"
        if self.status.look.hanging:
            return "hanging"
        return "healthy" if self.status.workers else UNKNOWN

    @property
    def broken(self) -> bool:
        return self.health != "healthy"

    @property
    def workers(self) -> str:
        """`2/3`: healthy workers of all that were asked."""
        workers = self.status.workers if self.status else ()
        healthy = sum(not worker.broken for worker in workers)
        return f"{healthy}/{len(workers)}" if workers else "-"

    @property
    def connectors(self) -> int | None:
        return len(self.status.connectors) if self.status else None

    @property
    def failed(self) -> int | None:
        """The number of connectors and tasks that are FAILED."""
        return len(self.status.failed) if self.status else None

    @property
    def lag(self) -> int | None:
        """The unread records of all sinks; None if that is not known."""
        lags = (
            [row.lag for row in self.status.connectors if row.lag is not None]
            if self.status
            else []
        )
        return sum(lags) if lags else None

    @property
    def hanging(self) -> int | None:
        found = self.status.look.hanging if self.status else None
        return None if found is None else len(found)

    @property
    def phases(self) -> tuple[str, ...]:
        """The agents' phases of exactly-once."""
        return _distinct(worker.phase for worker in self.status.workers) if self.status else ()

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the workers: an agent's own, a Java worker's of Kafka."""
        workers = self.status.workers if self.status else ()
        return _distinct(worker.agent_version or worker.version for worker in workers)

    @property
    def cause(self) -> str:
        """The root cause of the first failure, or the reason of another fault."""
        if self.status is None:
            return self.silence
        for failure in self.status.failed:
            return f"{failure.name}: {short_cause(failure.cause) or 'FAILED'}"
        for worker in self.status.workers:
            if worker.broken:
                return f"{worker.address}: {worker.message}"
        if not self.status.workers:
            return "its workers have not answered yet"
        return next((text for text in self.status.look.doubts if text.startswith(LATE)), "")

    def to_json(self) -> dict[str, object]:
        """The stable form for machines; a cluster that does not answer has null for numbers."""
        status = self.status
        return {
            "context": self.name,
            "health": self.health,
            "workers": len(status.workers) if status else None,
            "healthy_workers": (
                sum(not worker.broken for worker in status.workers) if status else None
            ),
            "connectors": self.connectors,
            "failed": [
                {"name": each.name, "cause": each.cause}
                for each in (status.failed if status else ())
            ],
            "lag": self.lag,
            "hanging_transactions": self.hanging,
            "exactly_once_phases": list(self.phases),
            "versions": list(self.versions),
            "cause": self.cause or None,
            "not_known": list(status.look.doubts) if status else [self.silence],
        }


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value}))


def failures_first(rows: Iterable[ClusterRow]) -> list[ClusterRow]:
    """Return clusters without an answer, then those with most failures, then the others by name."""
    return sorted(rows, key=lambda row: (SEVERITY.index(row.health), -(row.failed or 0), row.name))


def _health_style(text: str) -> str | None:
    return "bad" if text == "hanging" else state_style(text)


CLUSTER_COLUMNS: Sequence[Column[ClusterRow]] = (
    Column("CLUSTER", lambda row: row.name, whole=True, letter="N"),
    Column("HEALTH", lambda row: row.health, style=_health_style, letter="S"),
    Column("WORKERS", lambda row: row.workers, style=state_style, letter="W"),
    number_column("CONNECTORS", number_text, lambda row: row.connectors, spare=2),
    number_column("FAILED", number_text, lambda row: row.failed, spare=0, letter="T"),
    number_column("LAG", number_text, lambda row: row.lag, spare=1, letter="L"),
    number_column("HANGING", number_text, lambda row: row.hanging, spare=3),
    Column("PHASE", lambda row: ",".join(row.phases) or "-", spare=4),
    Column("VERSION", lambda row: ",".join(row.versions) or "-", spare=5),
    Column("CAUSE", lambda row: row.cause),
)


def columns_of(cluster: Callable[[Row], ClusterRow | None]) -> list[Column[Row]]:
    """Return the columns without the name, for rows that have a cluster; `-` if they have none."""

    def of_rows(column: Column[ClusterRow]) -> Column[Row]:
        def value(row: Row) -> str:
            found = cluster(row)
            return column.value(found) if found else "-"

        def number(row: Row) -> float | None:
            found = cluster(row)
            return column.order(found) if found and column.order else None

        return Column(
            column.title,
            value,
            right=column.right,
            style=column.style,
            order=number if column.order else None,
            letter=column.letter,
            spare=column.spare,
        )

    return [of_rows(column) for column in CLUSTER_COLUMNS[1:]]
