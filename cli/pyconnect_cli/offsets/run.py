"""Every change of offsets: plan, its display, question, stop, backup, change, read back, resume.

The planner is pure and called twice: for the plan that is shown, and again once the connector is
STOPPED, for the request. A connector is never stopped unless `--stop` was given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial

from pyconnect_cli.acting.batch import UNCHANGED, Asks, BatchStep, confirm_names, run_steps
from pyconnect_cli.acting.wait import has_state, wait_for_state, wait_if_asked, wait_until
from pyconnect_cli.acting.workers import connect_cluster
from pyconnect_cli.errors import (
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutOfTime,
    PartialFailure,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    UnknownOutcome,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.offsets.files import Backups, backups_of
from pyconnect_cli.offsets.plan.change import (
    DONE,
    Action,
    OffsetsPlan,
    OffsetsSnapshot,
    OffsetsView,
    plan_restore,
    read_back_differs,
    require_fitting,
)
from pyconnect_cli.parsing.options import (
    CRON_OPTIONS,
    PLAN_OPTIONS,
    SELECTED_BATCH_OPTIONS,
    SELECTION_OPTIONS,
    WAIT_OPTIONS,
    OptionSpec,
)
from pyconnect_cli.parsing.values import utc_text
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.client import kafka_version
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.rest.model import ConnectCluster, ConnectorView, WorkerInfo
from pyconnect_cli.rest.offset_entries import partition_key, show_offset, show_partition
from pyconnect_cli.session import Session
from pyconnect_cli.verbs import ActingVerb

MOST_LINES = 20


def show_plans(
    session: Session,
    plans: Sequence[OffsetsPlan],
    refused: Sequence[PyconnectError],
    *,
    backup: bool,
) -> None:
    """Print the plans; all partitions with `-v` or `-o wide`, else each connector's first ones."""
    lines = []
    for plan in plans:
        view = plan.view
        if not plan.needed:
            lines.append(f"{view.name}: nothing to change")
            continue
        short_class = view.class_name.rsplit(".", 1)[-1]
        lines += [
            f"{plan.action.value} offsets of {view.name} ({view.type}, {short_class})",
            f"  state   {' -> '.join(plan.states)}",
        ]
        if plan.changes:
            lines.append(f"  backup  {'first' if backup else 'none'}")
        else:
            lines.append("  no offsets are stored; the connector is asked to reset its own")
        lines += [f"  {line}" for line in plan.since_lines]
        left = {partition_key(change.partition): change.before for change in plan.since or ()}
        changes = []
        for change in plan.changes:
            after = "forgotten" if change.after is None else show_offset(change.after)
            key = partition_key(change.partition)
            since = f"  (was left at {show_offset(left[key])})" if key in left else ""
            moved = f"{show_offset(change.before)} -> {after}{since}"
            changes.append(f"  {show_partition(change.partition)}  {moved}")
        lines += first_lines(session, changes, len(changes))
    show_plan(session, lines, [plan.to_json() for plan in plans])
    for error in refused if session.given.get("dry_run") else ():
        session.output.error(error)


def show_plan(session: Session, lines: Sequence[str], document: object) -> None:
    """Print a plan on stderr; with --dry-run on stdout, for machines as a document."""
    dry_run = bool(session.given.get("dry_run"))
    if dry_run and session.output.machine:
        session.output.document(document)
        return
    for line in lines:
        if dry_run:
            session.output.line(line)
        else:
            session.output.message(line)


def first_lines(session: Session, lines: Sequence[str], total: int) -> list[str]:
    """Return the lines of partitions: the first ones, all with `-v` or `-o wide`."""
    everything = bool(session.settings.verbose) or session.settings.output == "wide"
    shown = [*lines] if everything else [*lines[:MOST_LINES]]
    if total > len(shown):
        shown.append(f"  … and {total - len(shown)} more; see all with -v")
    return shown


Planner = Callable[[OffsetsView], OffsetsPlan]
READ_BACK_S = 10.0
EXTERNAL = "manages offsets externally"
FIRST_WITH_CHANGES = (3, 6)
# The worker did not accept the request, or it was not sent.
REFUSALS = (UsageError, PreconditionFailed, NotAuthenticated, Forbidden, NotFound, OutOfTime)


def run_changes(
    session: Session,
    steps: Sequence[BatchStep],
    verb: str,
    backups: Backups | None,
    *,
    what: str = "connector",
) -> None:
    """Ask, act and print how to undo it; nothing with --dry-run. `backups` None: make no backups.

    The user has seen the plan of each step.
    """
    needed = [step.name for step in steps if step.done != UNCHANGED]
    if session.ends_with_plan(changes=bool(needed)) or not steps:
        return
    if needed:
        if backups:
            backups.require_writable()
        confirm_names(session, f"{verb} the offsets of", needed, what=what)
    try:
        run_steps(session, verb, steps, asks=Asks.BEFORE)
    finally:
        for identity in backups.stored if backups else ():
            undo = mask_command(["pyconnect", "offsets", "undo", identity])
            session.output.message(f"undo: {undo}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The user's options beside the change itself: a stop before it, a resume after it."""

    stop: bool = False
    resume: bool = False
    backup: bool = True
    force: bool = False


def change_offsets(
    session: Session,
    views: Sequence[ConnectorView],
    action: Action,
    planner: Planner,
    around: Around,
) -> None:
    """Plan for all, show, ask, then change one after the other (or --parallel).

    A refusal of a single connector is raised before the first change. In a batch the others are
    changed, and the run ends with PartialFailure (exit 8).
    """
    if not views:
        return
    planned: dict[str, OffsetsPlan | PyconnectError] = {}
    for view in views:
        try:
            seen = offsets_view(session, view)
            planned[view.name] = _plan_or_raise(session, planner, seen, around)
        except PyconnectError as error:
            planned[view.name] = error
    refused = [error for error in planned.values() if isinstance(error, PyconnectError)]
    if len(planned) == 1 and refused:
        raise refused[0]
    plans = [plan for plan in planned.values() if isinstance(plan, OffsetsPlan)]
    show_plans(session, plans, refused, backup=around.backup)
    needed = [plan.view.name for plan in plans if plan.needed]
    if session.given.get("dry_run") and refused:
        raise PartialFailure(f"{len(refused)} would be refused")
    if needed:
        # Check now: no connector may be stopped for a worker that cannot change offsets.
        version = session.worker.version
        if kafka_version(version) < FIRST_WITH_CHANGES:
            raise PreconditionFailed(
                f"the worker runs version {version}: offsets can be changed over REST since"
                " Kafka 3.6 (KIP-875); nothing was changed"
            )
    run, done = _Changes(session, planner, around, views), DONE[action]
    steps = [
        BatchStep(name=name, done=done if name in needed else UNCHANGED, act=partial(run.act, plan))
        for name, plan in planned.items()
    ]
    run_changes(session, steps, action.value, run.backups)
    goal = "RUNNING" if around.resume else "STOPPED"
    wait_if_asked(session, dict.fromkeys((plan.view.name for plan in plans), goal))


def place_offsets(
    session: Session,
    view: ConnectorView,
    snapshot: OffsetsSnapshot,
    *,
    action: Action,
    cluster_id: str | None,
    resume: bool = False,
) -> str | None:
    """Give a STOPPED connector the offsets of a snapshot, without asking; return a remark.

    Offsets of an earlier connector of the name are backed up and replaced. `cluster_id`: that of
    its Kafka, which the snapshot has to fit; None: it need not fit.
    """

    def planner(found: OffsetsView) -> OffsetsPlan:
        if cluster_id is not None:
            require_fitting(snapshot, found, cluster_id=cluster_id)
        return plan_restore(found, snapshot.offsets, action=action)

    around = Around(resume=resume)
    plan = _plan_or_raise(session, planner, offsets_view(session, view), around)
    return _Changes(session, planner, around, [view]).act(plan)


def offsets_view(session: Session, view: ConnectorView) -> OffsetsView:
    """Complete a connector's view with its offsets."""
    return OffsetsView(
        name=view.name,
        type=view.type,
        class_name=view.class_name,
        state=view.state,
        config=view.config,
        offsets=session.client.connector_offsets(view.name).entries,
    )


def snapshot_of(view: OffsetsView, worker: WorkerInfo) -> OffsetsSnapshot:
    return OffsetsSnapshot(
        cluster_id=worker.kafka_cluster_id,
        connector=view.name,
        class_name=view.class_name,
        type=view.type,
        time=utc_text(datetime.now(UTC)),
        version=worker.version,
        offsets=view.offsets,
    )


class _Changes:
    """The changes of one command; `act` may run in several threads, one connector each."""

    def __init__(
        self, session: Session, planner: Planner, around: Around, views: Sequence[ConnectorView]
    ) -> None:
        self.session = session
        # Connectors whose offsets may have been changed.
        self._touched: set[str] = set()
        self._planner = planner
        self._around = around
        self._views = {view.name: view for view in views}

    @cached_property
    def backups(self) -> Backups | None:
        """The directory of backups; None if the user wants none."""
        return backups_of(self.session) if self._around.backup else None

    @cached_property
    def connect(self) -> ConnectCluster:
        return connect_cluster(self.session, (view.status for view in self._views.values()))

    def act(self, planned: OffsetsPlan | PyconnectError) -> str | None:
        """Change one connector; return a remark."""
        if isinstance(planned, PyconnectError):
            raise planned
        view = planned.view
        client = self.session.client
        if not planned.needed:
            # An earlier run may have ended between the change and the resume.
            if self._around.resume and view.state == "STOPPED":
                client.resume_connector(view.name)
                return "resumed"
            return None
        stopped_here = view.state != "STOPPED"
        if stopped_here:
            try:
                client.stop_connector(view.name)
            except UnknownOutcome:
                # The wait that follows sees the result of the stop.
                self.session.output.message(
                    f"{view.name}: the stop was not answered; waiting for STOPPED"
                )
        try:
            alone = len(self._views) == 1 and self.session.settings.yes
            if alone and has_state(self._views[view.name].status, "STOPPED"):
                remark = self._change(planned)
            else:
                wait_for_state(self.session, [view.name], "STOPPED")
                # Tasks commit while they stop.
                offsets = client.connector_offsets(view.name).entries
                fresh = replace(view, state="STOPPED", offsets=offsets)
                remark = self._change(
                    _plan_or_raise(self.session, self._planner, fresh, self._around)
                )
            if self._around.resume:
                client.resume_connector(view.name)
        except PyconnectError as error:
            if stopped_here:
                error.hint = self._left_as_it_was(view) or (
                    f"{view.name} was stopped and stays STOPPED; to resume it: pyconnect"
                    f" connectors resume {view.name}"
                )
            if isinstance(error, OutOfTime):
                # The batch would report "not tried", although the connector has been changed.
                raise WaitTimedOut(error.message, hint=error.hint) from error
            raise
        return remark

    def _left_as_it_was(self, view: OffsetsView) -> str | None:
        """Undo the stop if no offset was changed; return how, or None if the connector is STOPPED.

        The run's time may be over: the request has its own.
        """
        if view.name in self._touched:
            return None
        try:
            with self.session.second_look() as client:
                if view.state == "PAUSED":
                    client.pause_connector(view.name)
                else:
                    client.resume_connector(view.name)
        except PyconnectError:
            return None
        verb = "paused" if view.state == "PAUSED" else "resumed"
        return f"no offset was changed, and {view.name} was {verb} again"

    def _change(self, plan: OffsetsPlan) -> str:
        client, view = self.session.client, plan.view
        if not plan.needed:
            return "nothing to change"
        if self.backups is None or not plan.changes:
            backup = None
        else:
            worker = self.session.worker
            snapshot = replace(
                snapshot_of(plan.view, worker),
                action=plan.action.value,
                left=plan.left,
                connect=self.connect,
            )
            backup = self.backups.store(snapshot, datetime.now(UTC))
        self._touched.add(view.name)
        try:
            if plan.everything:
                message = client.reset_offsets(view.name)
            else:
                message = client.alter_offsets(view.name, plan.wanted)
        except REFUSALS:
            # Without a change there is nothing to undo.
            self._touched.discard(view.name)
            if backup and self.backups:
                self.backups.discard(backup.id)
            raise
        except UnknownOutcome as error:
            message = ""
            try:
                self._read_back(plan)
            except PyconnectError as unseen:
                self._mark_failed(backup)
                raise UnknownOutcome(f"{error.message}; now: {unseen.message}") from error
        except PyconnectError:
            # Nothing, a part or all of it may be done; `undo` compares the offsets.
            self._mark_failed(backup)
            raise
        else:
            self._read_back(plan)
        remarks = [counted(len(plan.changes), "partition")]
        if backup:
            remarks.append(f"backup {backup.id}")
        if EXTERNAL in message:
            remarks.append("offsets that the connector manages itself are not changed")
        return ", ".join(remarks)

    def _mark_failed(self, backup: OffsetsSnapshot | None) -> None:
        if backup and self.backups:
            self.backups.mark_failed(backup)

    def _read_back(self, plan: OffsetsPlan) -> None:
        """Raise ServerError if the worker's answers keep differing from the sent offsets.

        A worker may list partitions before it has read its offsets topic to the end, so one
        answer proves nothing.
        """
        different: list[str | None] = []

        def same() -> bool:
            offsets = self.session.client.connector_offsets(plan.view.name).entries
            different.append(read_back_differs(plan, offsets))
            return different[-1] is None

        def late() -> PyconnectError:
            return ServerError(
                f"{plan.view.name}: the worker reported the change of offsets, but partition"
                f" {different[-1]} differs from the sent offset"
            )

        wait_until(self.session, same, late, most_s=READ_BACK_S, pause_s=0.05)


def _plan_or_raise(
    session: Session, planner: Planner, view: OffsetsView, around: Around
) -> OffsetsPlan:
    plan = replace(planner(view), resume=around.resume)
    if plan.needed and view.state != "STOPPED" and not around.stop:
        raise PreconditionFailed(
            f"{view.name} is {view.state}: its offsets can be changed only while it is STOPPED",
            hint=f"to stop it for the change, run: {session.command_line('--stop')}",
        )
    return plan


PARTITION_OPTION = OptionSpec(
    ("--partition", "-p"),
    "partition to change: JSON as `get` shows it, or TOPIC:NUMBER of a sink (default: all)",
    "PARTITION",
    repeatable=True,
)
FORCE_OPTION = OptionSpec(
    ("--force",), "change even if the offsets do not seem to fit, or were changed meanwhile"
)
CHANGE_OPTIONS = (
    OptionSpec(("--stop",), "stop of the connector before the change, if it is not STOPPED"),
    OptionSpec(("--resume",), "resume of the connector after the change"),
    OptionSpec(("--no-backup",), "no backup: the change cannot be undone"),
)


class OffsetsVerb(ActingVerb):
    """A command that changes the offsets of one connector."""

    shared_specs = (
        ("Change", (*CHANGE_OPTIONS, FORCE_OPTION)),
        ("Plan", PLAN_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


class SelectingOffsetsVerb(ActingVerb):
    """A command that changes the offsets of a selection."""

    shared_specs = (
        ("Change", (PARTITION_OPTION, *CHANGE_OPTIONS)),
        ("Selection", SELECTION_OPTIONS),
        ("Batch", SELECTED_BATCH_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


def around(given: Mapping[str, object]) -> Around:
    """Read the options; UsageError for a wait whose state would never come."""
    resume, wait = bool(given.get("resume")), given.get("wait")
    if wait is not None and str(wait).upper() in {"", "RUNNING"} and not resume:
        raise UsageError(
            "--wait waits until the connector runs again: it needs --resume",
            hint="the command always waits for the stop",
        )
    return Around(
        stop=bool(given.get("stop")),
        resume=resume,
        backup=not given.get("no_backup"),
        force=bool(given.get("force")),
    )
