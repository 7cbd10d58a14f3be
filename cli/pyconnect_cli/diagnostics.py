"""`pyconnect doctor`, `health`, `info` and `journal`: what workers report about their cluster."""

import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.workers import (
    WorkerHealth,
    ask_workers,
    assigned_workers,
    urls_with,
    worker_urls,
    workers_health,
)
from pyconnect_cli.errors import ExitCode, PyconnectError
from pyconnect_cli.parsing.values import local_text, parse_duration
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import printable, state_style
from pyconnect_cli.render.tables import Column, worker_column
from pyconnect_cli.rest.agent_client import AgentClient, AgentJournal, RecordedChange
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.masking import mask_url
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import AllWorkersOption, CronVerb, option

doctor_app = typer.Typer(help="Check configuration, connection and cluster.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check; `status` is ok, warning or failed."""

    check: str
    status: str
    detail: str


CHECK_COLUMNS: Sequence[Column[CheckResult]] = (
    Column("STATUS", lambda finding: finding.status, style=state_style),
    Column("CHECK", lambda finding: finding.check.removeprefix("http://"), distinct=True),
    Column("DETAIL", lambda finding: finding.detail, prose=True),
)


@doctor_app.command()
def doctor(context: typer.Context) -> None:
    """Check configuration, connection and cluster.

    Exit 1 when a check failed; warnings alone are exit 0.
    """
    session = session_of(context)
    findings: list[CheckResult] = []
    for check in (_settings, _secrets, _workers, _cluster, _sandbox_tools):
        findings += check(session)
        if check is not _cluster and any(finding.status == "failed" for finding in findings):
            break
    document = [asdict(finding) for finding in findings]
    names = [finding.check for finding in findings]
    if not session.output.silent(success=all(finding.status == "ok" for finding in findings)):
        session.output.listing(CHECK_COLUMNS, findings, document=document, names=names)
    if any(finding.status == "failed" for finding in findings):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


def _settings(session: Session) -> Iterator[CheckResult]:
    settings = session.settings
    files = ", ".join(str(file.path) for file in settings.files.files) or "none"
    yield CheckResult(check="configuration files", status="ok", detail=files)
    chosen = settings.context or "none"
    addresses = ", ".join(map(mask_url, settings.urls))
    yield CheckResult(check="context", status="ok", detail=f"{chosen}, {addresses}")
    for name in ("ca_file", "cert", "key", "kafka_properties"):
        path = getattr(settings, name)
        if path and not Path(path).is_file():
            yield CheckResult(check=name, status="failed", detail=f"{path}: no such file")
    if settings.insecure:
        detail = "certificates are not checked (--insecure)"
        yield CheckResult(check="TLS", status="warning", detail=detail)


def _secrets(session: Session) -> Iterator[CheckResult]:
    settings = session.settings
    for name, secret in (("password", settings.password), ("token", settings.token)):
        if secret is None:
            continue
        reveal = partial(secret.reveal, session.environ, settings.timeout_s)
        yield _tried(name, secret.describe(), reveal)


def _tried(check: str, detail: str, action: Callable[[], object]) -> CheckResult:
    try:
        action()
    except PyconnectError as exc:
        return CheckResult(check=check, status="failed", detail=exc.message)
    return CheckResult(check=check, status="ok", detail=detail)


def _workers(session: Session) -> Iterator[CheckResult]:
    answered = False
    for answer in workers_health(session, worker_urls(session, everywhere=False)):
        answered = answered or answer.status not in {"unreachable", "failed"}
        status = "ok" if answer.status == "healthy" else "warning"
        software = answer.agent_version or answer.version
        version = f"version {software}, " if software else ""
        yield CheckResult(check=answer.url, status=status, detail=f"{version}{answer.message}")
    if not answered:
        yield CheckResult(check="workers", status="failed", detail="none answers")


def _cluster(session: Session) -> Iterator[CheckResult]:
    views = session.client.connector_views()
    failed = [view.name for view in views.values() if view.status and view.status.failed]
    if failed:
        detail = f"FAILED: {', '.join(failed)}; pyconnect connectors describe {failed[0]}"
        yield CheckResult(check="connectors", status="warning", detail=detail)
    else:
        detail = f"{len(views)}, none FAILED"
        yield CheckResult(check="connectors", status="ok", detail=detail)

    if bootstrap := session.settings.kafka_bootstrap:
        from pyconnect_cli.kafka.admin import kafka_admin

        yield _tried("kafka", bootstrap, lambda: kafka_admin(session, "doctor").require_contact())


def _sandbox_tools(_: Session) -> Iterator[CheckResult]:
    detail = f"Python {platform.python_version()}"
    yield CheckResult(check="python", status="ok", detail=detail)
    java = shutil.which("java")
    status, text = ("ok", java) if java else ("warning", "not found; only the sandbox needs it")
    yield CheckResult(check="java", status=status, detail=text or "")


health_app = typer.Typer(help="Check the health of each worker.")

HEALTH_COLUMNS: Sequence[Column[WorkerHealth]] = (
    worker_column(lambda worker: worker.url),
    Column("STATUS", lambda worker: worker.status, style=state_style),
    Column("VERSION", lambda worker: worker.agent_version or worker.version or "-"),
    Column("MESSAGE", lambda worker: worker.message, prose=True),
)


@health_app.command(cls=CronVerb)
def health(context: typer.Context, *, all_workers: AllWorkersOption = False) -> None:
    """Check the health of each worker.

    The command asks every given address; exit 1 if a worker is not healthy.
    """
    session = session_of(context)
    urls = worker_urls(session, everywhere=all_workers)
    answers = workers_health(session, urls)
    session.record = BatchRecord.of_checks(
        "check",
        {
            answer.url: None if answer.status == "healthy" else f"{answer.status}: {answer.message}"
            for answer in answers
        },
    )
    healthy = all(answer.status == "healthy" for answer in answers)
    if not session.output.silent(success=healthy):
        session.output.listing(
            HEALTH_COLUMNS,
            answers,
            document=[asdict(answer) for answer in answers],
            names=[answer.url for answer in answers],
        )
    if not healthy:
        unreachable = all(answer.status == "unreachable" for answer in answers)
        raise PyconnectError(
            "", exit_code=ExitCode.UNREACHABLE if unreachable else ExitCode.NEGATIVE
        )


info_app = typer.Typer(help="Show the cluster: version, workers, states.")


@info_app.command()
def info(context: typer.Context) -> None:
    """Show the cluster: version, workers, states."""
    session = session_of(context)
    worker = session.client.worker_info()
    views = session.client.connector_views()
    connectors = Counter(view.state for view in views.values())
    tasks = Counter(
        task.state for view in views.values() if view.status for task in view.status.tasks
    )
    workers = urls_with(session, assigned_workers(view.status for view in views.values()))
    document = {
        "version": worker.version,
        "commit": worker.commit,
        "kafka_cluster_id": worker.kafka_cluster_id,
        "workers": workers,
        "connectors": dict(sorted(connectors.items())),
        "tasks": dict(sorted(tasks.items())),
    }
    lines = key_value_lines(
        {
            "version": f"{worker.version} ({worker.commit})",
            "kafka cluster": worker.kafka_cluster_id,
            "workers": ", ".join(workers),
            "connectors": _counts(connectors),
            "tasks": _counts(tasks),
        }
    )
    session.output.document(document, text="\n".join(lines))


def _counts(counts: Counter[str]) -> str:
    if not counts:
        return "none"
    parts = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return f"{counts.total()} ({parts})"


journal_app = typer.Typer(help="Show which user has changed what on the agents of a cluster.")


@journal_app.callback()
def journal() -> None:
    """Show which user has changed what on the agents of a cluster."""


SinceOption = Annotated[
    str | None, option("--since TIME", "age of the oldest change, for example 24h")
]
UserOption = Annotated[str | None, option("--user USER", "user that has sent the request")]
MaxOption = Annotated[int, option("--max N", "most changes, the newest ones", least=1)]
DEFAULT_MAX = 1_000


def change_text(change: RecordedChange) -> str:
    """Say what a request has changed, or what it has asked for."""
    if change.changed_config:
        before, after = change.before or {}, change.after or {}
        keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
        if change.before is None:
            return "created"
        return "deleted" if change.after is None else f"config: {', '.join(keys)}"
    text = f"{change.method} {change.path}"
    return f"{text}: {change.error}" if change.error else text


CHANGE_COLUMNS: Sequence[Column[RecordedChange]] = (
    Column("NUMBER", lambda change: str(change.number), right=True),
    Column("TIME", lambda change: local_text(change.time_ms), whole=True),
    Column("USER", lambda change: printable(change.user or "-")),
    Column("FROM", lambda change: change.address, wide=True),
    Column("CONNECTOR", lambda change: change.connector or "-"),
    Column("CHANGE", lambda change: printable(change_text(change)), prose=True),
    Column("STATUS", lambda change: str(change.status), right=True),
)


def recorded_changes(
    session: Session,
    *,
    connector: str | None = None,
    user: str | None = None,
    since: str | None = None,
    most: int = DEFAULT_MAX,
) -> list[RecordedChange]:
    """Return the selected changes, the oldest first.

    One agent is asked for a journal that the group shares, all for journals in files.
    """
    since_ms = None
    if since is not None:
        since_ms = max(0, int((time.time() - parse_duration(since, what="--since")) * 1000))

    def question(exchange: Exchange) -> AgentJournal:
        return AgentClient(exchange).journal(
            connector=connector, user=user, since_ms=since_ms, limit=most
        )

    urls = worker_urls(session, everywhere=True)
    found: dict[str, RecordedChange] = {}
    failure: PyconnectError | None = None
    answered = False
    for some in (urls[:1], urls[1:]):
        for answer in ask_workers(session, some, question):
            if isinstance(answer, PyconnectError):
                failure = failure or answer
            elif answer.shared:
                return list(answer.records)
            else:
                answered = True
                found |= {record.id: record for record in answer.records}
    if failure is not None and not answered:
        raise failure
    if failure is not None:
        session.output.error(failure)
    return sorted(found.values(), key=lambda record: (record.time_ms, record.number))[-most:]


def show_changes(session: Session, changes: Sequence[RecordedChange], *, connector: bool) -> None:
    session.output.listing(
        [each for each in CHANGE_COLUMNS if connector or each.title != "CONNECTOR"],
        changes,
        document=[change.raw for change in changes],
        names=[str(change.number) for change in changes],
        empty="no change is recorded",
    )


@journal_app.command("list")
def list_changes(
    context: typer.Context,
    *,
    user: UserOption = None,
    since: SinceOption = None,
    most: MaxOption = DEFAULT_MAX,
) -> None:
    """List changing requests: user, address, change and answer, the oldest first.

    Agents only (exit 9), with agent.journal.topic or agent.journal.file. With -o json each change
    has the configurations before and after, with secrets hidden.
    """
    session = session_of(context)
    changes = recorded_changes(session, user=user, since=since, most=most)
    show_changes(session, changes, connector=True)
