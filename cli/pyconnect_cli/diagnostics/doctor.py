"""`pyconnect doctor`: checks of the settings, the connection and the cluster."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import typer

from pyconnect_cli.acting.workers import worker_urls, workers_health
from pyconnect_cli.errors import ExitCode, PyconnectError
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.masking import mask_url
from pyconnect_cli.session import Session, session_of

app = typer.Typer(help="Check configuration, connection and cluster.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check; `status` is ok, warning or failed."""

    check: str
    status: str
    detail: str


COLUMNS: Sequence[Column[CheckResult]] = (
    Column("STATUS", lambda finding: finding.status, style=state_style),
    Column("CHECK", lambda finding: finding.check.removeprefix("http://"), distinct=True),
    Column("DETAIL", lambda finding: finding.detail, prose=True),
)


@app.command()
def doctor(context: typer.Context) -> None:
    """Check configuration, connection and cluster.

    Exit 1 when a check failed; warnings alone are exit 0.
    """
    session = session_of(context)
    findings: list[CheckResult] = []
    for check in (_settings, _secrets, _workers, _connectors, _kafka, _sandbox_tools):
        findings += check(session)
        if any(finding.status == "failed" for finding in findings) and check in (
            _settings,
            _secrets,
            _workers,
        ):
            break
    document = [asdict(finding) for finding in findings]
    names = [finding.check for finding in findings]
    if not session.output.silent(success=all(finding.status == "ok" for finding in findings)):
        session.output.listing(COLUMNS, findings, document=document, names=names)
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
        yield _tried(name, secret.describe(), partial(secret.reveal, session.environ))


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


def _connectors(session: Session) -> Iterator[CheckResult]:
    views = session.client.connector_views()
    failed = [view.name for view in views.values() if view.status and view.status.failed]
    if failed:
        detail = f"FAILED: {', '.join(failed)}; pyconnect connectors describe {failed[0]}"
        yield CheckResult(check="connectors", status="warning", detail=detail)
    else:
        detail = f"{len(views)}, none FAILED"
        yield CheckResult(check="connectors", status="ok", detail=detail)


def _kafka(session: Session) -> Iterator[CheckResult]:
    bootstrap = session.settings.kafka_bootstrap
    if bootstrap:
        from pyconnect_cli.kafka.admin import kafka_admin

        yield _tried("kafka", bootstrap, lambda: kafka_admin(session, "doctor").require_contact())


def _sandbox_tools(_: Session) -> Iterator[CheckResult]:
    detail = f"Python {platform.python_version()}"
    yield CheckResult(check="python", status="ok", detail=detail)
    java = shutil.which("java")
    status, text = ("ok", java) if java else ("warning", "not found; only the sandbox needs it")
    yield CheckResult(check="java", status=status, detail=text or "")
