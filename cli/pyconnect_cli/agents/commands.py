"""`pyconnect agent`: pyconnect's own workers, one by one; `examine`, for `doctor`, is pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from pyconnect_cli.acting.wait import LONGER, wait_until, within_time
from pyconnect_cli.acting.workers import ask_workers, describe_restarts, worker_urls
from pyconnect_cli.agents.readiness import Readiness
from pyconnect_cli.agents.readiness import readiness as examine_readiness
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError, WaitTimedOut
from pyconnect_cli.parsing.values import format_duration
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column, worker_column
from pyconnect_cli.rest.agent_client import AgentChild, AgentClient, AgentInfo
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import AllWorkersOption, PlannedVerb, argument, option
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.plugin_findings import check_locations, plugin_path_of
from pyconnect_clients.properties_file import load_properties

app = typer.Typer(help="Show, check and drain pyconnect's own workers.")

Item = TypeVar("Item")
WorkerArgument = Annotated[
    str | None, argument("[URL]", "address of the worker, if several are given")
]
NoWaitOption = Annotated[bool, option("--no-wait", "return without waiting for the new state")]
AGENT_COLUMNS: Sequence[Column[AgentInfo]] = (
    worker_column(lambda agent: agent.url),
    Column("STATE", lambda agent: agent.state, style=state_style),
    Column("LEADER", lambda agent: "yes" if agent.leader else ""),
    Column("GENERATION", lambda agent: _text(agent.generation), right=True),
    Column("PHASE", lambda agent: agent.phase or "-"),
    Column("VERSION", lambda agent: agent.version),
    Column("PID", lambda agent: str(agent.pid), right=True),
    Column("CONFIG", lambda agent: "changed since" if agent.config_outdated else "current"),
)
CHILD_COLUMNS: Sequence[Column[AgentChild]] = (
    Column("NAME", lambda child: child.name, distinct=True),
    Column("STATE", lambda child: child.state or "starting", style=state_style),
    Column("SINCE", lambda child: _ago(child.since_ms), right=True),
    Column("PID", lambda child: _text(child.pid), right=True, wide=True),
    Column(
        "MEMORY", lambda child: _used(child.rss_bytes, child.memory_limit, "M", 2**20), right=True
    ),
    Column("CPU", lambda child: _used(child.cpu_percent, child.cpu_limit, "%"), right=True),
    Column(
        "ANSWERS",
        lambda child: (
            "asleep"
            if child.asleep
            else "-"
            if child.pid is None
            else "yes"
            if child.responsive
            else "no"
        ),
    ),
    Column("ACTIVE", lambda child: _ago(child.last_activity_ms), right=True),
    Column("COMMIT", lambda child: _ago(child.last_commit_ms), right=True),
    Column("QUEUE", lambda child: _text(child.queue_size), right=True),
    Column("RESTARTS", lambda child: describe_restarts(child.restarts), wide=True),
    worker_column(lambda child: child.url),
)
DOCTOR_COLUMNS: Sequence[Column[AgentFinding]] = (
    worker_column(lambda finding: finding.url),
    Column("STATUS", lambda finding: finding.status, style=state_style),
    Column("CHECK", lambda finding: finding.check),
    Column("DETAIL", lambda finding: finding.detail, prose=True),
)
READINESS_COLUMNS: Sequence[Column[Readiness]] = (
    Column("STATUS", lambda finding: finding.status, style=state_style),
    Column("ABOUT", lambda finding: finding.about),
    Column("NAME", lambda finding: finding.name, distinct=True),
    Column("DETAIL", lambda finding: finding.detail, prose=True),
)


@app.command()
def status(
    context: typer.Context,
    *,
    all_workers: AllWorkersOption = False,
    tasks: Annotated[
        bool,
        option(
            "--tasks",
            "connectors and tasks of each worker: their processes, and use against limits",
        ),
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
                AGENT_COLUMNS,
                agents,
                document=[dict(agent.raw) for agent in agents],
                names=[agent.url for agent in agents],
            )
    raise_last(session, failures)


@app.command(cls=PlannedVerb)
def drain(
    context: typer.Context, worker: WorkerArgument = None, *, no_wait: NoWaitOption = False
) -> None:
    """Make a worker stop all its work and leave its group; it still answers reads.

    The command waits until the worker has left, at most --timeout (exit 124). It is safe to run
    twice. Other workers take over the work after scheduled.rebalance.max.delay.ms.
    """
    _change_state(context, worker, "drained", no_wait=no_wait)


@app.command(cls=PlannedVerb)
def undrain(
    context: typer.Context, worker: WorkerArgument = None, *, no_wait: NoWaitOption = False
) -> None:
    """Let a drained worker join its group and take work again; safe to run twice."""
    _change_state(context, worker, "active", no_wait=no_wait)


def _change_state(
    context: typer.Context, worker: str | None, wanted: str, *, no_wait: bool
) -> None:
    session = session_of(context)
    verb = "drain" if wanted == "drained" else "undrain"
    urls = worker_urls(session, everywhere=False)
    if worker is None and len(urls) > 1:
        raise UsageError(
            f"several workers are given: {', '.join(urls)}",
            hint=f"name one: pyconnect agent {verb} URL",
        )
    url = urls[0] if worker is None else worker.rstrip("/")
    if "://" not in url:
        url = f"{urls[0].partition('://')[0]}://{url}"
    with AgentClient(session.exchange_with(url)) as agent:
        if agent.info().state == wanted:
            session.output.message(f"{url} is {wanted} already")
            return
        if session.given.get("dry_run"):
            session.output.line(f"would {verb} {url}")
        if session.ends_with_plan(changes=True):
            return
        if verb == "drain":
            session.confirm(f"drain {url}: stop all its connectors and tasks?")
        agent.drain(undrain=verb == "undrain")
        if no_wait:
            session.output.message(f"{url} was asked to {verb}")
            return
        started, states = time.monotonic(), [""]

        def late() -> PyconnectError:
            waited = format_duration(time.monotonic() - started)
            return WaitTimedOut(
                f"the worker is {states[-1]}, not {wanted}, after {waited}",
                hint=f"{LONGER}; the worker continues in the background",
            )

        def reached() -> bool:
            states.append(agent.info().state)
            return states[-1] == wanted

        unanswered = f"the worker is not {wanted} in time; it continues in the background"
        with within_time(session, partial(WaitTimedOut, unanswered, hint=LONGER)):
            wait_until(session, reached, late)
    later = "; its former work waits for scheduled.rebalance.max.delay.ms"
    session.output.message(f"{url} is {wanted}{later if verb == 'undrain' else ''}")


@app.command()
def doctor(context: typer.Context, *, all_workers: AllWorkersOption = False) -> None:
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
    well = all(finding.status == "ok" for finding in findings) and not failures
    if findings and not session.output.silent(success=well):
        session.output.listing(
            DOCTOR_COLUMNS,
            findings,
            document=[asdict(finding) for finding in findings],
            names=[finding.url for finding in findings],
        )
    raise_last(session, failures)


@app.command()
def readiness(
    context: typer.Context,
    *,
    worker_config: Annotated[
        Path | None,
        option(
            "--worker-config FILE",
            "properties file of a Java worker; REST does not show what is in it",
        ),
    ] = None,
) -> None:
    """Check whether agents can run a Java cluster: plugins, connectors, worker properties.

    With --worker-config the jars of its plugin.path are read, too, if they are on this machine: as
    by `pyconnect plugins check`.

    The command changes nothing. Exit 1 if agents cannot run a part, 0 with warnings alone.
    """
    session = session_of(context)
    worker = None
    if worker_config is not None:
        try:
            # The file is read without resolving references to config providers.
            worker = load_properties(str(worker_config))
        except ClientPropertyError as exc:
            raise UsageError(str(exc)) from exc
    views = session.client.connector_views().values()
    findings = examine_readiness(
        session.client.plugins(connectors_only=False),
        [view.info for view in views if view.info is not None],
        worker,
        agent=session.client.worker_info().agent,
    )
    # The file may be from another machine, whose plugins are not here.
    here = [entry for entry in plugin_path_of(worker or {}) if entry.exists()]
    findings += [
        Readiness(
            about="location",
            name=Path(each.location).name,
            status=each.status,
            detail=f"Kafka {each.kafka}: {each.detail}",
        )
        for each in check_locations(here)
    ]
    if not session.output.silent(success=all(finding.status == "ok" for finding in findings)):
        session.output.listing(
            READINESS_COLUMNS, findings, document=[asdict(finding) for finding in findings]
        )
    if any(finding.status == "failed" for finding in findings):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


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


def raise_last(session: Session, failures: Sequence[PyconnectError]) -> None:
    """Print all failures but the last one, and raise that one."""
    for failure in failures[:-1]:
        session.output.error(failure)
    if failures:
        raise failures[-1]


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _ago(epoch_ms: int | None) -> str:
    if epoch_ms is None:
        return "-"
    return format_duration(max(0.0, time.time() - epoch_ms / 1000))


def _used(used: float | None, limit: int | None, unit: str, size: int = 1) -> str:
    """Return the amount in use and, behind a slash, the limit; both in units of `size`."""
    if used is None:
        return "-"
    return "/".join(f"{each / size:.0f}{unit}" for each in (used, limit) if each is not None)


ALLOW = "agent.allow.phase.change"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinding:
    """One finding about one agent; `status` is ok, warning or failed."""

    url: str
    status: str
    check: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedAgent:
    """One agent with its configuration in force."""

    info: AgentInfo
    config: dict[str, str | None]


def examine(agents: Sequence[ExaminedAgent]) -> list[AgentFinding]:
    """Return a finding for each agent and check, and findings that compare the agents. Pure."""
    phases = Counter(agent.info.phase for agent in agents)
    usual = phases.most_common(1)[0][0] if phases else None
    return [finding for agent in agents for finding in _each(agent, usual)]


def _each(agent: ExaminedAgent, usual_phase: str | None) -> Iterator[AgentFinding]:
    info = agent.info
    url = info.url

    def finding(check: str, detail: str, *, status: str = "ok") -> AgentFinding:
        return AgentFinding(url=url, status=status, check=check, detail=detail)

    state = "ok" if info.state == "active" else "warning"
    yield finding("state", info.state, status=state)
    if info.config_outdated:
        yield finding(
            "configuration", "its properties file was changed after its start", status="warning"
        )
    else:
        yield finding("configuration", "the file is in force")
    for problem in info.plugin_problems:
        yield finding("plugins", problem, status="warning")
    if info.phase is None:
        yield finding("phase", "standalone: it has no group protocol")
        return
    differs = info.phase != usual_phase
    yield finding(
        "phase",
        f"{info.phase}, others are {usual_phase}: an upgrade is under way or was left"
        if differs
        else info.phase,
        status="warning" if differs else "ok",
    )
    protocol = str(info.raw.get("protocol") or "-")
    weak = protocol in {"eager", "compatible"}
    yield finding(
        "protocol",
        f"{protocol}: requests between workers are not signed" if weak else protocol,
        status="warning" if weak else "ok",
    )
    missing = []
    if agent.config.get(ALLOW) != "true":
        missing.append(f"{ALLOW}=true")
    if str(info.raw.get("restart") or "none") == "none":
        missing.append("a program: the one that it runs has been removed")
    if missing:
        needs = f"by hand; to change its phase itself it needs {', and '.join(missing)}"
        yield finding("upgrades", needs, status="warning")
    else:
        yield finding("upgrades", "changes its phase and restarts itself")
