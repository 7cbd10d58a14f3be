"""The output of `pyconnect status` for one look, and the row of each cluster of `fleet`. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyconnect_cli.overview.rows import (
    ClusterLook,
    ConnectorRow,
    TaskRow,
    WorkerRow,
    connector_rows,
    failures,
    phase_of,
    state_text,
    worker_rows,
)
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import counted, paint, printable, state_style
from pyconnect_cli.render.tables import Column, table_lines

Row = TypeVar("Row")
Number = TypeVar("Number", bound=float | None)
MOST_FAILURES = 12
MOST_LAGGING = 5
LAG_DOUBT = "lag"
HANGING_DOUBT = "hanging transactions"
NEEDS_BROKERS = "not known: give --kafka-bootstrap"
EXCEPTION_PACKAGE = re.compile(r"^(?:[a-z_][\w$]*\.)+(?=[A-Z])")


def number_text(number: float | None) -> str:
    """Return a count with groups of digits, `-` for none."""
    return "-" if number is None else f"{number:,.0f}"


def memory_text(size: int | None) -> str:
    """Return mebibytes."""
    return "-" if size is None else f"{size / 2**20:,.0f}M"


def short_cause(cause: str) -> str:
    """Return an exception's line without the package of its class, which fills the column."""
    return EXCEPTION_PACKAGE.sub("", cause)


def number_column(
    title: str,
    text: Callable[[Number], str],
    number: Callable[[Row], Number],
    *,
    spare: int | None = None,
    letter: str = "",
) -> Column[Row]:
    """Return a column of numbers, which sorts by number."""
    return Column(
        title, lambda row: text(number(row)), order=number, right=True, spare=spare, letter=letter
    )


WORKER_COLUMNS: Sequence[Column[WorkerRow]] = (
    Column("WORKER", lambda row: row.address, whole=True, letter="N"),
    Column("HEALTH", lambda row: row.status, style=state_style, letter="S"),
    Column("KIND", lambda row: row.kind, spare=4),
    Column("VERSION", lambda row: row.agent_version or row.version or "-", spare=5),
    Column("STATE", lambda row: f"{row.state or '-'}{', leader' * row.leader}"),
    Column("PHASE", lambda row: row.phase or "-", spare=0),
    number_column("CONNECTORS", str, lambda row: row.connectors, spare=3),
    number_column("TASKS", str, lambda row: row.tasks, spare=1, letter="T"),
    number_column("MEMORY", memory_text, lambda row: row.memory, spare=2, letter="M"),
    Column("MESSAGE", lambda row: row.message, prose=True),
)
FAILURE_COLUMNS: Sequence[Column[TaskRow]] = (
    Column("FAILED", lambda row: row.name, whole=True, style=lambda _: "bad"),
    Column("WORKER", lambda row: row.worker),
    Column("CAUSE", lambda row: short_cause(row.cause), prose=True),
)
LAG_COLUMNS: Sequence[Column[ConnectorRow]] = (
    Column("SINK", lambda row: row.name, whole=True),
    Column("LAG", lambda row: number_text(row.lag), right=True),
    Column("NOT-STARTED", lambda row: counted(row.unread, "partition") if row.unread else ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The verdict on one look. `lag_known`: brokers were asked for the ends of topics."""

    look: ClusterLook
    context: str | None
    lag_known: bool
    connectors: tuple[ConnectorRow, ...]
    workers: tuple[WorkerRow, ...]
    failed: tuple[TaskRow, ...]

    @property
    def healthy(self) -> bool:
        """Whether every worker is healthy, nothing is FAILED and no transaction hangs."""
        return (
            all(worker.status == "healthy" for worker in self.workers)
            and not self.failed
            and not self.look.hanging
        )

    @property
    def faults(self) -> dict[str, str | None]:
        """Each worker and connector with its fault, and each hanging transaction."""
        causes: dict[str, str] = {}
        for task in self.failed:
            causes.setdefault(task.connector, f"{task.name} is FAILED: {task.cause}")
        return {
            **{
                row.address: f"{row.status}: {row.message}" if row.broken else None
                for row in self.workers
            },
            **{row.name: causes.get(row.name) for row in self.connectors},
            **{producer.name: "its transaction hangs" for producer in self.look.hanging or ()},
        }

    @property
    def lagging(self) -> list[ConnectorRow]:
        """Sinks with unread records, the largest lag first."""
        rows = [row for row in self.connectors if row.lag or row.unread]
        return sorted(rows, key=lambda row: (-(row.lag or 0), row.name))

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        hanging = self.look.hanging
        return {
            "healthy": self.healthy,
            "context": self.context,
            "kafka_cluster_id": self.look.kafka_cluster_id,
            "exactly_once_phases": {row.address: row.phase for row in self.workers},
            "workers": [row.to_json() for row in self.workers],
            "connectors": dict(sorted(Counter(row.state for row in self.connectors).items())),
            "tasks": dict(sorted(Counter(_task_states(self.connectors)).items())),
            "without_answer": [
                task.name for row in self.connectors for task in row.tasks if not task.responsive
            ],
            "failed": [
                {"name": row.name, "worker": row.worker, "cause": row.cause} for row in self.failed
            ],
            "lag": (
                {row.name: row.lag for row in self.connectors if row.lag is not None}
                if self.lag_known
                else None
            ),
            "hanging_transactions": (
                None
                if hanging is None
                else [
                    {
                        "topic": producer.partition.topic,
                        "partition": producer.partition.partition,
                        "producer_id": producer.producer_id,
                        "start_offset": producer.first_offset,
                    }
                    for producer in hanging
                ]
            ),
            "not_known": list(self.look.doubts),
        }


def cluster_status(look: ClusterLook, *, context: str | None, lag_known: bool) -> ClusterStatus:
    connectors = tuple(connector_rows(look))
    return ClusterStatus(
        look=look,
        context=context,
        lag_known=lag_known,
        connectors=connectors,
        workers=tuple(worker_rows(look)),
        failed=tuple(failures(connectors)),
    )


def status_lines(status: ClusterStatus, *, width: int | None, colour: bool) -> list[str]:
    """Return one screen; a cut list ends with a line that names the command for the rest."""
    healthy = sum(worker.status == "healthy" for worker in status.workers)
    kafka = f"on Kafka cluster {status.look.kafka_cluster_id}"
    pairs = {
        "cluster": f"{status.context} {kafka}" if status.context else kafka,
        "health": f"{healthy} of {counted(len(status.workers), 'worker')} healthy",
        "connectors": _counts(map(state_text, status.connectors)),
        "tasks": _counts(state_text(task) for row in status.connectors for task in row.tasks),
        "exactly once": phase_of(status.workers),
        "lag": _lag(status),
        "hanging": _hanging(status),
    }
    bad = {
        "health": any(row.status != "healthy" for row in status.workers),
        "connectors": any(row.state == "FAILED" for row in status.connectors),
        "tasks": any(state == "FAILED" for state in _task_states(status.connectors)),
        "hanging": bool(status.look.hanging),
    }
    painted = {
        key: paint(printable(pairs[key]), "bad", colour=colour)
        for key, is_bad in bad.items()
        if is_bad
    }
    lines = key_value_lines(pairs, painted=painted)

    def table(columns: Sequence[Column[object]], rows: Sequence[object]) -> list[str]:
        return ["", *table_lines(columns, rows, headers=True, width=width, colour=colour)]

    silent = [row if row.broken else replace(row, message="") for row in status.workers]
    columns = [column for column in WORKER_COLUMNS if column.title not in {"PHASE", "CONNECTORS"}]
    lines += table(columns, silent)  # type: ignore[arg-type] # columns of these rows
    if status.failed:
        lines += table(FAILURE_COLUMNS, status.failed[:MOST_FAILURES])  # type: ignore[arg-type]
        if (left := len(status.failed) - MOST_FAILURES) > 0:
            lines.append(f"and {left} more: pyconnect tasks list --state FAILED")
    if single := [doubt for doubt in status.look.doubts if doubt.startswith(f"{LAG_DOUBT} of ")]:
        lines.append("")
        for doubt in single:
            lines.append(paint(printable(f"not known: {doubt}"), "warning", colour=colour))
    if status.lag_known and status.lagging:
        lines += table(LAG_COLUMNS, status.lagging[:MOST_LAGGING])  # type: ignore[arg-type]
        if (left := len(status.lagging) - MOST_LAGGING) > 0:
            lines.append(f"and {left} more: pyconnect offsets lag --all")
    return lines


def _task_states(rows: Iterable[ConnectorRow]) -> list[str]:
    return [task.state for row in rows for task in row.tasks]


def _counts(states: Iterable[str]) -> str:
    counts = Counter(states)
    if not counts:
        return "none"
    return f"{counts.total()}: " + ", ".join(
        f"{count} {state}" for state, count in sorted(counts.items())
    )


def _lag(status: ClusterStatus) -> str:
    if not status.lag_known:
        return NEEDS_BROKERS
    if status.look.positions is None:
        return f"not known{_reason(status.look, LAG_DOUBT)}"
    types = Counter(view.type for view in status.look.views.values())
    sinks, untyped = types["sink"], types["unknown"]
    known = [row for row in status.connectors if row.lag is not None]
    if not sinks and untyped:
        return f"not known: the workers do not know the type of {counted(untyped, 'connector')}"
    if not sinks:
        return "no sinks"
    if not known:
        doubts = [text for text in status.look.doubts if text.startswith(f"{LAG_DOUBT} of ")]
        return f"not known{'; see below' if doubts else ': no sink has committed offsets'}"
    total = sum(row.lag or 0 for row in known)
    unknown = sinks - len(known)
    rest = f", not known of {counted(unknown, 'sink')}" if unknown else ""
    return f"{number_text(total)} records in {counted(len(known), 'sink')}{rest}"


def _hanging(status: ClusterStatus) -> str:
    look = status.look
    if look.hanging:
        return (
            f"{counted(len(look.hanging), 'transaction')} without an end:"
            " pyconnect transactions find-hanging"
        )
    if look.hanging is not None:
        return "none"
    if not status.lag_known:
        return NEEDS_BROKERS
    return f"not known{_reason(look, HANGING_DOUBT)}"


def _reason(look: ClusterLook, subject: str) -> str:
    """Return the reason why a value is not known, after a colon; empty without a reason."""
    return next(
        (doubt.removeprefix(subject) for doubt in look.doubts if doubt.startswith(f"{subject}:")),
        "",
    )


SILENT = "unreachable"
LATE = "lag and transactions: "
"""Beginning of the doubt about brokers that have not answered in time."""
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
        """The worst known state of the cluster, one of SEVERITY."""
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
        return len(self.status.failed) if self.status else None

    @property
    def lag(self) -> int | None:
        """The unread records of all sinks; None if the lag is not known."""
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
        return _distinct(worker.phase for worker in self.status.workers) if self.status else ()

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the workers: an agent's own version, a Java worker's Kafka version."""
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
        """Return the stable form for machines; without an answer numbers are null."""
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
    """Return clusters without an answer first, then those with most failures, then by name."""
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
    """Return the columns without the name, for rows of clusters; `-` where there is no cluster."""

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
