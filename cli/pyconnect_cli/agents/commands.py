"""`pyconnect agent`: pyconnect's own workers, one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from pyconnect_cli.acting.wait import within_time
from pyconnect_cli.acting.workers import ask_workers, worker_urls
from pyconnect_cli.agents.doctor import AgentFinding, ExaminedAgent, examine
from pyconnect_cli.agents.readiness import Readiness
from pyconnect_cli.agents.readiness import readiness as examine_readiness
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError, WaitTimedOut
from pyconnect_cli.parsing.durations import format_duration
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.agent_client import AgentChild, AgentClient, AgentInfo
from pyconnect_cli.session import Session, session_of
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.properties_file import load_properties

app = typer.Typer(help="Show, check and drain pyconnect's own workers.")

Item = TypeVar("Item")
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
AGENT_COLUMNS: Sequence[Column[AgentInfo]] = (
    Column(title="WORKER", value=lambda agent: agent.url),
    Column(title="STATE", value=lambda agent: agent.state, style=state_style),
    Column(title="LEADER", value=lambda agent: "yes" if agent.leader else ""),
    Column(title="GENERATION", value=lambda agent: _text(agent.generation), right=True),
    Column(title="PHASE", value=lambda agent: agent.phase or "-"),
    Column(title="VERSION", value=lambda agent: agent.version),
    Column(title="PID", value=lambda agent: str(agent.pid), right=True),
    Column(
        title="CONFIG", value=lambda agent: "changed since" if agent.config_outdated else "current"
    ),
)
CHILD_COLUMNS: Sequence[Column[AgentChild]] = (
    Column(title="NAME", value=lambda child: child.name),
    Column(title="STATE", value=lambda child: child.state or "starting", style=state_style),
    Column(title="SINCE", value=lambda child: _ago(child.since_ms), right=True),
    Column(title="PID", value=lambda child: _text(child.pid), right=True, wide=True),
    Column(title="MEMORY", value=lambda child: _mebibytes(child.rss_bytes), right=True),
    Column(
        title="ANSWERS",
        value=lambda child: "-" if child.pid is None else "yes" if child.responsive else "no",
    ),
    Column(title="ACTIVE", value=lambda child: _ago(child.last_activity_ms), right=True),
    Column(title="COMMIT", value=lambda child: _ago(child.last_commit_ms), right=True),
    Column(title="QUEUE", value=lambda child: _text(child.queue_size), right=True),
    Column(title="WORKER", value=lambda child: child.url),
)
DOCTOR_COLUMNS: Sequence[Column[AgentFinding]] = (
    Column(title="WORKER", value=lambda finding: finding.url),
    Column(title="STATUS", value=lambda finding: finding.status, style=state_style),
    Column(title="CHECK", value=lambda finding: finding.check),
    Column(title="DETAIL", value=lambda finding: finding.detail, prose=True),
)
READINESS_COLUMNS: Sequence[Column[Readiness]] = (
    Column(title="STATUS", value=lambda finding: finding.status, style=state_style),
    Column(title="ABOUT", value=lambda finding: finding.about),
    Column(title="NAME", value=lambda finding: finding.name),
    Column(title="DETAIL", value=lambda finding: finding.detail, prose=True),
)


@app.command()
def status(
    context: typer.Context,
    *,
    all_workers: Annotated[
        bool, typer.Option("--all-workers", help="also the workers that connectors' statuses name")
    ] = False,
    tasks: Annotated[
        bool,
        typer.Option("--tasks", help="connectors and tasks of each worker, with their processes"),
    ] = False,
) -> None:
    """Show each worker: state (active, draining, drained), leader, phase, configuration.

    The command asks every given address. It reports workers that do not answer at the end, and
    exits with the code of the last failure; exit 9 for a Java worker.
    """
    session = session_of(context)
    urls = worker_urls(session, everywhere=all_workers)
    failures: list[PyconnectError] = []
    if tasks:
        asked = _ask(session, urls, AgentClient.children, failures)
        children = [child for answer in asked for child in answer]
        document = [{"url": child.url, **child.raw} for child in children]
        names = [child.name for child in children]
        if asked:
            session.output.listing(
                CHILD_COLUMNS, children, document=document, names=names, empty="no child processes"
            )
    else:
        agents = _ask(session, urls, AgentClient.info, failures)
        if agents:
            session.output.listing(
                AGENT_COLUMNS, agents, document=[dict(agent.raw) for agent in agents]
            )
    for failure in failures[:-1]:
        session.output.error(failure)
    if failures:
        raise failures[-1]


@app.command()
def drain(
    context: typer.Context,
    worker: Annotated[
        str | None,
        typer.Argument(metavar="[URL]", help="address of the worker, if several are given"),
    ] = None,
    *,
    undrain: Annotated[
        bool,
        typer.Option("--undrain", help="end of draining: the worker takes part in the group again"),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="no wait for the end of draining")
    ] = False,
) -> None:
    """Make a worker stop all its work and leave its group; it still answers reads.

    The command waits until the worker has left, at most --timeout (exit 124). It is safe to run
    twice. Other workers take over the work after scheduled.rebalance.max.delay.ms.
    """
    session = session_of(context)
    url = _one_worker(session, worker)
    wanted = "active" if undrain else "drained"
    with AgentClient(session.exchange_with(url)) as agent:
        if agent.info().state == wanted:
            session.output.message(f"{url} is {wanted} already")
            return
        if not undrain:
            session.confirm(f"drain {url}: stop all its connectors and tasks?")
        agent.drain(undrain=undrain)
        if no_wait:
            session.output.message(f"{url} was asked to {'take part' if undrain else 'drain'}")
            return
        _wait_for_state(agent, session, wanted)
    if undrain:
        delay = "scheduled.rebalance.max.delay.ms"
        session.output.message(f"{url} is active; work that left with it waits for {delay}")
    else:
        session.output.message(f"{url} is drained")


@app.command()
def doctor(
    context: typer.Context,
    *,
    all_workers: Annotated[
        bool, typer.Option("--all-workers", help="also the workers that connectors' statuses name")
    ] = False,
) -> None:
    """Check each agent: state, configuration, phase, protocol, and whether it can be upgraded.

    Warnings are exit 0. The command reports agents that do not answer at the end, with their exit
    code.
    """
    session = session_of(context)
    failures: list[PyconnectError] = []
    urls = worker_urls(session, everywhere=all_workers)
    examined = _ask(
        session,
        urls,
        lambda agent: ExaminedAgent(info=agent.info(), config=agent.config()),
        failures,
    )
    findings = examine(examined)
    if findings:
        session.output.listing(
            DOCTOR_COLUMNS, findings, document=[finding.to_json() for finding in findings]
        )
    for failure in failures[:-1]:
        session.output.error(failure)
    if failures:
        raise failures[-1]


@app.command()
def readiness(
    context: typer.Context,
    *,
    worker_config: Annotated[
        Path | None,
        typer.Option(
            "--worker-config",
            metavar="FILE",
            help="properties file of a Java worker; REST does not show what is in it",
        ),
    ] = None,
) -> None:
    """Check what agents would run of a Java cluster: plugins, connectors, worker properties.

    Nothing is changed. Exit 1 when an agent could not run something, 0 with warnings alone.
    """
    session = session_of(context)
    worker = None if worker_config is None else _properties(worker_config)
    views = session.client.connector_views().values()
    findings = examine_readiness(
        session.client.plugins(connectors_only=False),
        [view.info for view in views if view.info is not None],
        worker,
    )
    session.output.listing(
        READINESS_COLUMNS, findings, document=[finding.to_json() for finding in findings]
    )
    if any(finding.status == "failed" for finding in findings):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


def _properties(path: Path) -> dict[str, str]:
    """Read a worker's file as it is: references to config providers are not resolved here."""
    try:
        return load_properties(str(path))
    except ClientPropertyError as exc:
        raise UsageError(str(exc)) from exc


def _ask(
    session: Session,
    urls: Sequence[str],
    question: Callable[[AgentClient], Item],
    failures: list[PyconnectError],
) -> list[Item]:
    answers = []
    for answer in ask_workers(session, urls, lambda exchange: question(AgentClient(exchange))):
        if isinstance(answer, PyconnectError):
            failures.append(answer)
        else:
            answers.append(answer)
    return answers


def _one_worker(session: Session, worker: str | None) -> str:
    urls = worker_urls(session, everywhere=False)
    if worker is None:
        if len(urls) == 1:
            return urls[0]
        raise UsageError(
            f"several workers are given: {', '.join(urls)}",
            hint="name one: pyconnect agent drain URL",
        )
    url = worker.rstrip("/")
    return url if "://" in url else f"{urls[0].partition('://')[0]}://{url}"


def _wait_for_state(agent: AgentClient, session: Session, wanted: str) -> None:
    pause = FIRST_PAUSE_S
    started = time.monotonic()
    while True:
        with within_time(
            session, f"the worker is not {wanted} in time; it continues in the background"
        ):
            state = agent.info().state
        if state == wanted:
            return
        if session.budget.remaining_s() <= pause:
            waited = format_duration(time.monotonic() - started)
            raise WaitTimedOut(
                f"the worker is {state}, not {wanted}, after {waited}",
                hint="wait longer with --timeout 10m; the worker continues in the background",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_S)


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _ago(epoch_ms: int | None) -> str:
    if epoch_ms is None:
        return "-"
    return format_duration(max(0.0, time.time() - epoch_ms / 1000))


def _mebibytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 2**20:.0f}M"
