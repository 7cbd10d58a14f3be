"""`pyconnect upgrade`: exactly-once on a running cluster, worker by worker, and back (KIP-618)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperOption

from pyconnect_cli.acls.options import BROKER_OPTIONS, AclOptions, acl_options
from pyconnect_cli.acting.selection import texts
from pyconnect_cli.app import NounGroup
from pyconnect_cli.directories import new_identity
from pyconnect_cli.errors import Conflict, PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.parsing.options import option_specs
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column, worker_column
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.settings.given_files import Inventory, read_inventory
from pyconnect_cli.upgrade.observe import LOOK_S, Observer, Workers
from pyconnect_cli.upgrade.perform import (
    Journal,
    Performer,
    journal_directory,
    last_runs,
    unfinished_group,
)
from pyconnect_cli.upgrade.plan.checks import PhaseWish
from pyconnect_cli.upgrade.plan.decide import Plan, StepLimits, make_plan
from pyconnect_cli.upgrade.plan.model import UpgradedWorker
from pyconnect_cli.upgrade.plan.run import Finished, Resumed, Run, Started, applied
from pyconnect_cli.verbs import ChangingVerb, Context, Verb, option
from pyconnect_clients.connect_names import Phase

CLUSTER_OPTIONS = option_specs("""
--inventory  FILE
    inventory: the workers and the commands that change them
--group  NAME
    group.id of the workers (default: as the agents report it)
""")
TARGET_OPTIONS = option_specs(
    """
--phase  PHASE
    target phase: disabled, preparing or enabled
--worker  URL  repeatable
    worker to change (default: all)
--full-stop
    stop of all workers before the change; allows any change of phase
--direct
    change from enabled to disabled in one rolling restart
--hard
    replacement of the software after disabled, one worker at a time
--strict
    refusal if a connector does not support exactly-once
""",
    {"--phase": tuple(Phase)},
)
CHECK_OPTIONS = (
    *BROKER_OPTIONS,
    *option_specs("""
--accept-unknown
    no refusal because of ACLs that cannot be checked
--declared
    confirmation that the Java workers' files have been checked by hand
"""),
)


class ClusterVerb(ChangingVerb):
    """A command that needs the group of the workers."""

    shared_specs = (("Cluster", CLUSTER_OPTIONS),)


class PlanVerb(Verb):
    """A command that plans an upgrade."""

    shared_specs = (
        ("Target", TARGET_OPTIONS),
        ("Cluster", CLUSTER_OPTIONS),
        ("Checks", CHECK_OPTIONS),
    )


class RunVerb(PlanVerb, ChangingVerb):
    """The command that carries out an upgrade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """The requested change, and the user's knowledge of the cluster."""

    wish: PhaseWish
    inventory: Inventory
    acls: AclOptions
    group: str | None


def upgrade_options(session: Session, *, phase_needed: bool) -> UpgradeOptions:
    """Read the options, and let the session reach every worker of the inventory.

    UsageError for a file that cannot be read or options that exclude each other.
    """
    given = session.given
    phase = Phase(str(given["phase"])) if given.get("phase") else None
    if phase is None and phase_needed:
        raise UsageError(
            "the target phase is missing: --phase preparing, enabled or disabled",
            hint="show the last runs: pyconnect upgrade status",
        )
    if (given.get("hard") or given.get("direct")) and phase not in (None, Phase.DISABLED):
        raise UsageError("--hard and --direct need --phase disabled")
    path = given.get("inventory") or session.settings.inventory
    inventory = read_inventory(Path(str(path)).expanduser()) if path else Inventory()
    session.also_reach([inventory.address(url) for url in inventory.workers])
    files = (*inventory.worker_configs, *texts(given, "worker_config"))
    return UpgradeOptions(
        wish=PhaseWish(
            target=phase or Phase.DISABLED,
            direct=bool(given.get("direct")),
            full_stop=bool(given.get("full_stop")),
            hard=bool(given.get("hard")),
            only=tuple(worker_url(name) for name in texts(given, "worker")),
            inventory=inventory.workers,
            accept_unknown=bool(given.get("accept_unknown")),
            declared=bool(given.get("declared")),
            strict=bool(given.get("strict")),
        ),
        inventory=inventory,
        acls=acl_options({**given, "worker_config": files}),
        group=str(given["group"]) if given.get("group") else None,
    )


def worker_url(text: str) -> str:
    """Return a worker's address as it advertises it."""
    url = text.rstrip("/")
    return url if "://" in url else f"http://{url}"


class UpgradeGroup(NounGroup):
    """A noun whose verb `run` may be left out: `pyconnect upgrade --phase preparing`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words; without a verb they belong to `run`."""
        return super().parse_args(ctx, self.with_verb(ctx, args))

    def with_verb(self, ctx: Context, args: list[str]) -> list[str]:
        """Return the words with a verb first."""
        params = self.commands["run"].get_params(ctx)
        options = [each for each in params if isinstance(each, TyperOption)]
        with_value = {flag for o in options if not (o.is_flag or o.count) for flag in o.opts}
        before = ["", *args]
        if any(
            not word.startswith("-") and last not in with_value
            for last, word in zip(before, args, strict=False)
        ) or {"-h", "--help"} & set(args):
            return args
        return ["run", *args]


app = typer.Typer(
    cls=UpgradeGroup, help="Move a cluster to another phase of exactly-once, worker by worker."
)

KAFKA_NEEDED = "an upgrade needs Kafka itself, for the members of the group and for the lock"


WORKER_COLUMNS: Sequence[Column[UpgradedWorker]] = (
    worker_column(lambda worker: worker.url),
    Column("KIND", lambda worker: worker.kind),
    Column("VERSION", lambda worker: worker.version or "-"),
    Column("PHASE", lambda worker: worker.phase_text),
    Column("LEADER", lambda worker: "yes" if worker.leader else ""),
    Column("CHANGED-BY", lambda worker: worker.means),
)
RUN_COLUMNS: Sequence[Column[Run]] = (
    Column("GROUP", lambda run: run.started.group_id),
    Column("TARGET", lambda run: run.started.target),
    Column("STATE", lambda run: run.state),
    Column("RUN", lambda run: run.started.run_id, whole=True),
    Column("CLUSTER", lambda run: run.started.cluster_id, wide=True),
    Column("DETAIL", lambda run: run.detail, prose=True),
)


@app.command(cls=PlanVerb)
def plan(context: typer.Context) -> None:
    """Show the plan of `run` and the findings that forbid it; change nothing.

    Needs --kafka-bootstrap. Exit 9: `run` would refuse.
    """
    session = session_of(context)
    options = upgrade_options(session, phase_needed=True)
    with _cluster(session, options) as observer:
        unfinished = _unfinished(session, observer)
        if unfinished is not None and options.wish.is_of(unfinished.started):
            _tell_unfinished(session, unfinished)
            return
        _show_plan(session, _plan(session, observer, options), replaces=unfinished)


@app.command(cls=RunVerb)
def run(
    context: typer.Context,
    *,
    resume: Annotated[
        bool, option("--resume", "continuation of an unfinished run; no new run")
    ] = False,
    settle: Annotated[
        str, option("--settle TIME", "time without a rebalance or failure before each step")
    ] = "30s",
    step_timeout: Annotated[str, option("--step-timeout TIME", "time limit of one step")] = "7m",
) -> None:
    """Move a cluster to another phase of exactly-once, worker by worker.

    Needs --kafka-bootstrap. It is safe to run again: a killed or halted run continues. Exit 1:
    halted. Exit 6: another run holds the lock. Exit 9: refused. Exit 75: do the step that it
    prints, then run it again.
    """
    from pyconnect_clients.installation import version

    session = session_of(context)
    options = upgrade_options(session, phase_needed=not resume)
    limits = StepLimits(
        settle_ms=round(parse_duration(settle, what="--settle") * 1000),
        step_ms=round(parse_duration(step_timeout, what="--step-timeout") * 1000),
    )
    with _cluster(session, options) as observer:
        unfinished = _unfinished(session, observer)
        wish = options.wish
        if resume and unfinished is None:
            raise PreconditionFailed(
                "there is no run to continue",
                hint="start one: pyconnect upgrade run --phase preparing",
            )
        if unfinished is not None and (resume or wish.is_of(unfinished.started)):
            _tell_unfinished(session, unfinished)
            session.confirm(f"continue the run to {unfinished.started.target}?")
            _carry_out(session, observer, limits, Resumed(tool_version=version()))
            return
        planned = _plan(session, observer, options)
        _show_plan(session, planned, replaces=unfinished)
        if planned.legs:
            session.confirm(
                f"take {counted(len(planned.view.workers), 'worker')} to {wish.target}?"
            )
            started = planned.started(new_identity(datetime.now(UTC)), version())
            _carry_out(session, observer, limits, started, replaces=unfinished)


@app.command()
def status(context: typer.Context) -> None:
    """Show the last run of each cluster from this user's journals. No request is sent."""
    session = session_of(context)
    found, broken = last_runs(journal_directory(session.environ))
    for reason in broken:
        session.output.warning(reason)
    session.output.listing(
        RUN_COLUMNS,
        found,
        document=[
            {
                "run_id": run.started.run_id,
                "group": run.started.group_id,
                "kafka_cluster_id": run.started.cluster_id,
                "target": run.started.target,
                "state": run.state,
                "leg": None if run.leg is None else str(run.leg),
                "verified": sorted(run.verified),
                "under_way": sorted(run.steps),
                "reason": None if run.halted is None else run.halted.reason,
                "hint": None if run.halted is None else run.halted.hint,
            }
            for run in found
        ],
        names=[run.started.run_id for run in found],
        empty="this user has not run an upgrade on this host",
    )


@app.command(cls=ClusterVerb)
def abandon(context: typer.Context) -> None:
    """End an unfinished run in its present state; no worker is changed. Needs --kafka-bootstrap."""
    session = session_of(context)
    options = upgrade_options(session, phase_needed=False)
    with _cluster(session, options) as observer:
        _end_run(session, observer)


@contextmanager
def _cluster(session: Session, options: UpgradeOptions) -> Iterator[Observer]:
    from pyconnect_cli.kafka.admin import connected
    from pyconnect_cli.upgrade.observe import cluster_id, group_of_workers

    cluster = kafka_cluster(session, KAFKA_NEEDED)
    workers = Workers(session.endpoint, options.inventory, verbosity=session.settings.verbose)
    with connected(cluster, lambda: LOOK_S) as protocol:
        try:
            group = options.group or options.inventory.group
            urls = options.inventory.workers or session.client.exchange.urls
            for url in urls if not group else ():
                with suppress(PyconnectError):
                    told = workers.admin(url).info().raw.get("group_id")
                    if told is not None:
                        group = str(told)
                        break
            group = (
                group
                or session.settings.group
                or unfinished_group(
                    journal_directory(session.environ), cluster_id(protocol), map(worker_url, urls)
                )
                or group_of_workers(protocol, urls)
            )
            yield Observer(workers, protocol, group)
        finally:
            workers.close()


def _tell_unfinished(session: Session, run: Run) -> None:
    session.output.message(
        f"run {run.started.run_id} to {run.started.target} continues: {run.state.lower()}"
    )


def _show_plan(session: Session, plan: Plan, *, replaces: Run | None) -> None:
    """Print workers, rolling restarts, notes, findings; PreconditionFailed if one forbids it."""
    output = session.output
    output.listing(
        WORKER_COLUMNS,
        plan.view.workers,
        document={
            "group": plan.view.group_id,
            "kafka_cluster_id": plan.view.cluster_id,
            "target": plan.wish.target,
            "allowed": not plan.refused,
            "rollings": [
                {"rolling": str(leg), "order": [worker.url for worker in plan.order(leg)]}
                for leg in plan.legs
            ],
            "workers": [
                {
                    "url": worker.url,
                    "kind": worker.kind,
                    "version": worker.version,
                    "phase": worker.phase_text,
                    "phase_source": worker.source,
                    "leader": worker.leader,
                    "fences": worker.fences,
                    "changed_by": worker.means,
                }
                for worker in plan.view.workers
            ],
            "refusals": [asdict(finding) for finding in plan.refused],
            "warnings": [asdict(finding) for finding in plan.warnings],
            "notes": list(plan.notes),
        },
        empty="no workers",
    )
    if replaces is not None:
        output.warning(
            f"run {replaces.started.run_id} to {replaces.started.target} is unfinished"
            f" ({replaces.state.lower()}); this run replaces it"
        )
    for finding in plan.warnings:
        output.warning(str(finding))
    for finding in plan.refused:
        output.message(f"refused: {finding}", style="bad")
    if plan.refused:
        raise PreconditionFailed(
            f"refused, for {counted(len(plan.refused), 'reason')}: nothing was changed"
        )
    if not plan.legs:
        output.message(f"every worker is {plan.wish.target} already")
    for leg in plan.legs:
        order = ", then ".join(worker.url for worker in plan.order(leg))
        manner = (
            "all workers stopped first"
            if plan.wish.full_stop and not leg.replace
            else "one worker at a time"
        )
        output.message(f"{leg}, {manner}: {order}")
    for note in plan.notes:
        output.message(f"note: {note}")


def _plan(session: Session, observer: Observer, options: UpgradeOptions) -> Plan:
    from pyconnect_cli.upgrade.gather import planning_view

    show = Performer(observer.workers, "plan")
    view = planning_view(session, observer, options.wish, options.acls, show)
    return make_plan(view, options.wish)


def _carry_out(
    session: Session,
    observer: Observer,
    limits: StepLimits,
    first: Started | Resumed,
    *,
    replaces: Run | None = None,
) -> None:
    """Hold the locks and go on; `replaces`: the unfinished run that the plan was shown for."""
    from pyconnect_cli.upgrade.perform import Rolling, cluster_lock

    journal = _journal(session, observer)
    cluster = kafka_cluster(session, KAFKA_NEEDED)
    with (
        journal.lock(),
        cluster_lock(cluster, observer.protocol, observer.group_id) as lock,
        StepLine(session.output) as line,
    ):
        before = journal.run()
        if isinstance(first, Started):
            if before is not None and not before.finished:
                if replaces is None or before.started != replaces.started:
                    raise Conflict(
                        f"run {before.started.run_id} to {before.started.target} was begun"
                        " meanwhile; nothing was changed",
                        hint="show it: pyconnect upgrade status; then plan again",
                    )
                journal.append(Finished(abandoned=True))
            journal.append(first)
            run = Run(started=first)
        else:
            if before is None or before.finished:
                raise PreconditionFailed("the run was finished meanwhile")
            journal.append(first)
            run = applied(before, first)
        Rolling(
            observer=observer,
            performer=Performer(observer.workers, run.started.run_id),
            journal=journal,
            lock=lock,
            limits=limits,
            run=run,
            line=line,
            again=session.command_line(),
        ).go_on()


def _end_run(session: Session, observer: Observer) -> None:
    run = _unfinished(session, observer)
    if run is None:
        session.output.message("there is no unfinished run")
        return
    name = f"run {run.started.run_id}"
    session.confirm(f"end {name} to {run.started.target} in its present state?")
    journal = _journal(session, observer)
    with journal.lock():
        now = journal.run()
        if now is None or now.finished or now.started != run.started:
            raise Conflict(
                f"{name} is not the unfinished run any more; nothing was changed",
                hint="show the runs: pyconnect upgrade status",
            )
        journal.append(Finished(abandoned=True))
    session.output.message(
        f"{name} has ended; its workers keep their present phases:"
        " show them with pyconnect agent status"
    )


def _unfinished(session: Session, observer: Observer) -> Run | None:
    run = _journal(session, observer).run()
    return None if run is None or run.finished else run


def _journal(session: Session, observer: Observer) -> Journal:
    from pyconnect_cli.upgrade.observe import cluster_id

    directory = journal_directory(session.environ)
    return Journal(directory, cluster_id(observer.protocol), observer.group_id)
