"""`pyconnect upgrade`: exactly-once on a running cluster, worker by worker, and back (KIP-618)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from pyconnect_cli.acls.options import (
    AclOptions,
    EveryoneOption,
    ProbeOption,
    SuperUserOption,
    WorkerConfigOption,
    acl_options,
)
from pyconnect_cli.errors import PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.kafka.cluster import kafka_cluster
from pyconnect_cli.parsing.durations import parse_duration
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.rest.phases import Phase
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.upgrade.cluster.observe import LOOK_S, Observer, Workers
from pyconnect_cli.upgrade.inventory import Inventory, read_inventory
from pyconnect_cli.upgrade.journal import Journal, journal_directory, unfinished_group
from pyconnect_cli.upgrade.options import (
    AcceptUnknownOption,
    CleanupOption,
    DeclaredOption,
    DirectOption,
    FullStopOption,
    GroupOption,
    HardOption,
    InventoryOption,
    PhaseOption,
    PlanOption,
    ResumeOption,
    SettleOption,
    StepTimeoutOption,
    StrictOption,
    WorkerOption,
)
from pyconnect_cli.upgrade.output import runs, show_plan
from pyconnect_cli.upgrade.perform import Performer
from pyconnect_cli.upgrade.plan.checks import Wish
from pyconnect_cli.upgrade.plan.decide import Limits
from pyconnect_cli.upgrade.plan.planning import Plan, make_plan
from pyconnect_cli.upgrade.plan.run import Finished, Resumed, Run, Started, applied

app = typer.Typer(help="Move a cluster to another phase of exactly-once, worker by worker.")

KAFKA_NEEDED = "an upgrade needs Kafka itself, for the members of the group and for the lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run is carried out."""

    wish: Wish
    inventory: Inventory
    acls: AclOptions
    limits: Limits
    group: str | None
    plan_only: bool
    resume: bool


@app.callback(invoke_without_command=True)
def upgrade(
    context: typer.Context,
    *,
    phase: PhaseOption = None,
    plan: PlanOption = False,
    worker: WorkerOption = None,
    resume: ResumeOption = False,
    full_stop: FullStopOption = False,
    direct: DirectOption = False,
    hard: HardOption = False,
    cleanup: CleanupOption = False,
    inventory: InventoryOption = None,
    worker_config: WorkerConfigOption = None,
    super_user: SuperUserOption = None,
    allow_everyone: EveryoneOption = False,
    probe: ProbeOption = False,
    group: GroupOption = None,
    settle: SettleOption = "30s",
    step_timeout: StepTimeoutOption = "7m",
    accept_unknown: AcceptUnknownOption = False,
    declared: DeclaredOption = False,
    strict: StrictOption = False,
) -> None:
    """Move a cluster to another phase of exactly-once, worker by worker.

    Needs --kafka-bootstrap. It is safe to run again: a killed or halted run continues. Exit 1:
    halted. Exit 6: another run holds the lock. Exit 9: refused. Exit 75: do the step that it
    prints, then run it again.
    """
    if context.invoked_subcommand is not None:
        return
    session = session_of(context)
    _check_usage(phase, needed=not (resume or cleanup), down_only=hard or direct)
    known = inventory or session.settings.inventory
    read = read_inventory(Path(known).expanduser()) if known else Inventory()
    session.also_reach([read.address(url) for url in read.workers])
    acls = acl_options(
        worker_configs=(*read.worker_configs, *(worker_config or ())),
        super_users=super_user,
        allow_everyone=allow_everyone,
        probe=probe,
    )
    wish = Wish(
        target=phase or Phase.DISABLED,
        direct=direct,
        full_stop=full_stop,
        hard=hard,
        only=tuple(_url(name) for name in worker or ()),
        inventory=read.workers,
        accept_unknown=accept_unknown,
        declared=declared,
        strict=strict,
    )
    options = Options(
        wish=wish,
        inventory=read,
        acls=acls,
        limits=_limits(settle, step_timeout),
        group=group,
        plan_only=plan,
        resume=resume,
    )
    with _cluster(session, options) as observer:
        if cleanup:
            _end_run(session, observer)
        else:
            _upgrade(session, observer, options)


@app.command()
def status(context: typer.Context) -> None:
    """Show the last run of each cluster from this user's journals. No request is sent."""
    session = session_of(context)
    runs(session, journal_directory(session.environ))


def _check_usage(phase: Phase | None, *, needed: bool, down_only: bool) -> None:
    if phase is None and needed:
        raise UsageError(
            "the target phase is missing: --phase preparing, enabled or disabled",
            hint="show the last runs: pyconnect upgrade status",
        )
    if down_only and phase not in (None, Phase.DISABLED):
        raise UsageError("--hard and --direct lead down: they need --phase disabled")


def _limits(settle: str, step_timeout: str) -> Limits:
    return Limits(
        settle_ms=round(parse_duration(settle, what="--settle") * 1000),
        step_ms=round(parse_duration(step_timeout, what="--step-timeout") * 1000),
    )


@contextmanager
def _cluster(session: Session, options: Options) -> Iterator[Observer]:
    from pyconnect_cli.kafka.protocol import connected
    from pyconnect_cli.upgrade.cluster.kafka_group import cluster_id, group_of_workers

    cluster = kafka_cluster(session, KAFKA_NEEDED)
    workers = Workers(session.endpoint, options.inventory, verbosity=session.settings.verbose)
    with connected(cluster, lambda: LOOK_S) as protocol:
        try:
            group = options.group or options.inventory.group
            urls = options.inventory.workers or session.client.exchange.urls
            group = (
                group
                or _agents_group(workers, urls)
                or session.settings.group
                or unfinished_group(
                    journal_directory(session.environ), cluster_id(protocol), map(_url, urls)
                )
            )
            group = group or group_of_workers(protocol, urls)
            yield Observer(workers, protocol, group)
        finally:
            workers.close()


def _agents_group(workers: Workers, urls: Sequence[str]) -> str | None:
    for url in urls:
        try:
            group = workers.admin(url).info().raw.get("group_id")
        except PyconnectError:
            continue
        if group is not None:
            return str(group)
    return None


def _upgrade(session: Session, observer: Observer, options: Options) -> None:
    run = _unfinished(session, observer)
    wish = options.wish
    goes_on = run is not None and (options.resume or _same(run.started, wish))
    if options.resume and run is None:
        raise PreconditionFailed(
            "there is no run to continue", hint="start one: pyconnect upgrade --phase preparing"
        )
    if goes_on:
        assert run is not None
        session.output.message(
            f"run {run.started.run_id} to {run.started.target} continues: {run.state.lower()}"
        )
        if options.plan_only:
            return
        session.confirm(f"continue the run to {run.started.target}?")
        _carry_out(session, observer, options, Resumed(tool_version=_version()))
        return
    plan = _plan(session, observer, options)
    show_plan(session, plan, replaces=run)
    if plan.refused:
        raise PreconditionFailed(
            f"refused, for {len(plan.refused)} reason{'' if len(plan.refused) == 1 else 's'}:"
            " nothing was changed"
        )
    if not plan.legs or options.plan_only:
        return
    session.confirm(f"take {len(plan.view.workers)} workers to {wish.target}?")
    _carry_out(session, observer, options, plan.started(_run_id(), _version()))


def _plan(session: Session, observer: Observer, options: Options) -> Plan:
    from pyconnect_cli.upgrade.gather import planning_view

    show = Performer(observer.workers, "plan")
    view = planning_view(session, observer, options.wish, options.acls, show)
    return make_plan(view, options.wish)


def _carry_out(
    session: Session, observer: Observer, options: Options, first: Started | Resumed
) -> None:
    from pyconnect_cli.upgrade.carry_out import Rolling, Tools
    from pyconnect_cli.upgrade.cluster.lock import cluster_lock

    journal = _journal(session, observer)
    journal.lock()
    cluster = kafka_cluster(session, KAFKA_NEEDED)
    try:
        with (
            cluster_lock(cluster, observer.protocol, observer.group_id) as lock,
            StepLine(session.output) as line,
        ):
            before = journal.run()
            if isinstance(first, Started):
                if before is not None and not before.finished:
                    journal.append(Finished(abandoned=True))
                journal.append(first)
                run = Run(started=first)
            else:
                if before is None or before.finished:
                    raise PreconditionFailed("the run was finished meanwhile")
                journal.append(first)
                run = applied(before, first)
            tools = Tools(
                observer=observer,
                performer=Performer(observer.workers, run.started.run_id),
                journal=journal,
                lock=lock,
                limits=options.limits,
                again=session.command_line(),
            )
            Rolling(tools, run, line).go_on()
    finally:
        journal.close()


def _end_run(session: Session, observer: Observer) -> None:
    run = _unfinished(session, observer)
    if run is None:
        session.output.message("there is no unfinished run")
        return
    session.confirm(f"end run {run.started.run_id} to {run.started.target} in its present state?")
    journal = _journal(session, observer)
    journal.lock()
    journal.append(Finished(abandoned=True))
    journal.close()
    session.output.message(
        f"run {run.started.run_id} has ended; its workers keep their present phases:"
        " show them with pyconnect agent status"
    )


def _unfinished(session: Session, observer: Observer) -> Run | None:
    run = _journal(session, observer).run()
    return None if run is None or run.finished else run


def _journal(session: Session, observer: Observer) -> Journal:
    cluster_id = observer.cluster_id()
    return Journal(journal_directory(session.environ), cluster_id, observer.group_id)


def _same(started: Started, wish: Wish) -> bool:
    asked = (wish.target, wish.full_stop, wish.hard, wish.only)
    return asked == (started.target, started.full_stop, started.hard, started.only)


def _url(text: str) -> str:
    url = text.rstrip("/")
    return url if "://" in url else f"http://{url}"


def _run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def _version() -> str:
    from importlib.metadata import version

    return version("pyconnect-worker")
