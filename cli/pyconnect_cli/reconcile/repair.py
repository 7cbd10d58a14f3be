"""`reconcile repair` and `reconcile undo`: changes for missing, doubled and different rows.

The process `pyconnect_repair` plans and changes rows and topics; here are the question and the
audit's second run. A run that a kill ended in the state `started` or `undoing` goes on with the
same command: each change of its file is to do, done, or refused, as the rows in the table show.
The verbs of the noun come together here.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pyconnect_cli.acting.wait import describe, has_state
from pyconnect_cli.errors import ExitCode, PreconditionFailed, PyconnectError, Undecided, UsageError
from pyconnect_cli.parsing.options import PLAN_OPTIONS
from pyconnect_cli.reconcile import compare, scan
from pyconnect_cli.reconcile.compare import (
    AuditAccess,
    Key,
    RightBootstrap,
    RightProperties,
    data_audit,
    topics_audit,
)
from pyconnect_cli.reconcile.connectors import (
    SINK,
    SOURCE,
    TOPICS,
    Config,
    simple_class,
    with_providers,
)
from pyconnect_cli.reconcile.repair_journal import (
    Repair,
    RepairProgress,
    Repairs,
    RepairStarted,
    RepairState,
)
from pyconnect_cli.reconcile.run import Audit, name_secrets, reconcile_each, write_private
from pyconnect_cli.reconcile.spec import DataVerb, complete
from pyconnect_cli.render.styles import counted
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import argument

app = typer.Typer(help="Audit moved data with Spark: losses, duplicates, gaps, differences.")
# The verbs that only read come first.
app.registered_commands += scan.app.registered_commands + compare.app.registered_commands

SINKS = {"SqlSink": "sql", "LakeSink": "lake"}
"""The extra that installs each sink; `SOURCES` has those of sources."""
SOURCES = {"SqlSource": "sql", "FileStreamSource": ""}
PROVENANCE = "pyconnect.provenance.headers"
SILENT_S = 400.0
"""The longest time without output of the process: one statement may take 300 seconds."""


class RepairVerb(DataVerb):
    """A verb that changes data: the options of the audit, and those of a plan."""

    changes = True
    shared_specs = (("Plan", PLAN_OPTIONS), *DataVerb.shared_specs)


@app.command(cls=RepairVerb)
def repair(
    context: typer.Context,
    # Not `report`: that is the directory of the audit that follows (--report).
    found: Annotated[
        Path, argument("REPORT", "directory of a report of topic-sink, source-topic or topic-topic")
    ],
    *,
    right_bootstrap: RightBootstrap = None,
    right_properties: RightProperties = None,
    key: Key = None,
) -> None:
    """Repair what a report names in a sink's table or a topic, then audit again."""
    session = session_of(context)
    repairs = Repairs(session.environ)
    directory = found.expanduser().absolute()
    if directory.name == "report.json":
        directory = directory.parent
    report = _document(directory / "report.json")
    access = AuditAccess(key, right_bootstrap, right_properties)
    with repairs.journal.lock():
        begun = repairs.unfinished(str(directory))
        if begun is not None and begun.state is RepairState.UNDOING:
            raise PreconditionFailed(
                f"the undo of repair {begun.id} has not ended",
                hint=f"end it: pyconnect reconcile undo {begun.id}; where it is refused, audit"
                " again and repair by the new report",
            )
        job, target = (str(report.get(name) or "") for name in ("job", "target"))
        work = _Work(session, job, target, access)
        if begun is None:
            begun = _planned(work, repairs, directory)
            if begun is None:
                return
        elif session.ends_with_plan(changes=begun.state is RepairState.STARTED):
            session.output.message(f"repair {begun.id} of {begun.begun.table} has not ended")
            return
        elif begun.state is RepairState.STARTED:
            session.confirm(f"continue repair {begun.id} of {begun.begun.table}?")
        if begun.state is RepairState.STARTED:
            work.require_stopped()
            if _head(repairs.rows(begun.id)).get("undoable", True):
                session.output.message(f"undo: pyconnect reconcile undo {begun.id}")
            progress = partial(_progress, repairs, begun)
            snapshot = work.run("apply", repairs.rows(begun.id), progress=progress)
            repairs.note(begun.id, RepairState.APPLIED, snapshot)
        # A difference that is left is the command's result.
        try:
            reconcile_each(session, work.job, [work.audit()])
        except PyconnectError as error:
            if error.exit_code == ExitCode.NEGATIVE:
                repairs.note(begun.id, RepairState.VERIFIED)
            raise
        repairs.note(begun.id, RepairState.VERIFIED)


@app.command(cls=RepairVerb)
def undo(
    context: typer.Context,
    identity: Annotated[
        str | None, argument("[ID]", "id of the repair (default: the newest one)")
    ] = None,
    *,
    right_bootstrap: RightBootstrap = None,
    right_properties: RightProperties = None,
    key: Key = None,
) -> None:
    """Restore what was there before a repair, unless it has changed since."""
    session = session_of(context)
    repairs = Repairs(session.environ)
    with repairs.journal.lock():
        found = repairs.find(identity)
        rows = repairs.rows(found.id)
        if found.state is RepairState.UNDONE or not rows.is_file():
            gone = "is undone already" if rows.is_file() else "has no rows any more"
            raise PreconditionFailed(f"repair {found.id} {gone}")
        if not _head(rows).get("undoable", True):
            raise PreconditionFailed(
                f"repair {found.id} of {found.begun.table} stays: a record of a topic cannot be"
                " taken back",
                hint=f"name the repair to undo: {', '.join(repairs.all())}",
            )
        access = AuditAccess(key, right_bootstrap, right_properties)
        work = _Work(session, found.begun.job, found.begun.connector, access)
        work.require_stopped()
        total = found.begun.rows
        if session.ends_with_plan(changes=True):
            return
        what = f"{counted(total, NOUNS[found.begun.job])} of {found.begun.table}"
        session.confirm(f"restore {what} from before {found.id}?")
        work.require_stopped()
        repairs.note(found.id, RepairState.UNDOING)
        work.run("undo", rows, progress=partial(_progress, repairs, found))
        repairs.note(found.id, RepairState.UNDONE)
    # A repair that was interrupted had not changed all of them.
    session.output.message(f"the {what} are as before {found.id}")


class _Work:
    """A connector with its table or topic, or two topics, for the process that changes them."""

    def __init__(self, session: Session, job: str, target: str, access: AuditAccess) -> None:
        self.session = session
        self.job = job
        self._target = target
        self._access = access
        self._config: Config = {}
        if job == TOPICS:
            return
        if not target:
            raise UsageError(
                "the report names no connector, whose code and settings a repair uses",
                hint=f"audit the connector by its name: pyconnect reconcile {job} CONNECTOR",
            )
        self._config = session.client.connector(target).config
        if reason := _refusal(self._config, job):
            if job == SOURCE:
                raise UsageError(f"records of {target} are not written again: {reason}")
            raise UsageError(
                f"{target} writes neither a table of SqlSink nor an Iceberg table of LakeSink:"
                f" {reason}"
            )

    def audit(self) -> Audit:
        """Resolve the audit as it is now."""
        if self.job == TOPICS:
            return topics_audit(self.session, self._target, self._access)
        return data_audit(self.session, self.job, self._target, self._access.key)

    def require_stopped(self) -> None:
        """Raise PreconditionFailed unless the connector is STOPPED, because it may write meanwhile.

        The process itself refuses a topic that has got other records.
        """
        if self.job == TOPICS:
            return
        status = self.session.client.connector_status(self._target)
        if not has_state(status, "STOPPED"):
            raise PreconditionFailed(
                f"{self._target} is {describe(status)}: it may write meanwhile",
                hint=f"pyconnect connectors stop {self._target} --wait",
            )

    def run(
        self,
        action: str,
        rows: Path,
        *,
        progress: Callable[[int, int], None],
        report: Path | None = None,
    ) -> int | None:
        """Run one action in the process; raise its error. Return the snapshot that it committed."""
        from pyconnect_cli.reconcile.run import EventCalls, run_module
        from pyconnect_cli.render.step_line import StepLine

        session = self.session
        audit = self.audit()
        resolved = complete(session, self.job, audit.target, audit.resolved)
        document = {
            "action": action,
            "rows": str(rows),
            "report": str(report or ""),
            "audit": resolved,
            "config": with_providers(self._config),
        }
        with tempfile.TemporaryDirectory(prefix="pyconnect-repair-") as work:
            spec, log = Path(work) / "spec.json", Path(work) / "log"
            # The user of the table is a part of the question.
            name_secrets(resolved, audit.secrets, Path(work))
            # The configuration may hold passwords: the file exists only while the process runs.
            write_private(spec, json.dumps(document))
            committed: list[int] = []
            with StepLine(session.output) as line:
                calls = EventCalls(step=line, progress=progress, committed=committed.append)
                command = ("pyconnect_repair", str(spec), "--events", "--tethered")
                ended = run_module(command, log, calls, session.environ, silent_s=SILENT_S)
        if ended.exit_code == 0:
            return committed[-1] if committed else None
        refusal = ended.refusals.get(None)
        if refusal is None and "ModuleNotFoundError" in ended.log:
            from pyconnect_clients.installation import install_command

            extra = {**SINKS, **SOURCES}.get(simple_class(self._config)) or "sql"
            raise PreconditionFailed(
                f"a repair writes as the agent does, which is not installed: {ended.log}",
                hint=f"install it: {install_command(f'agent,{extra}')}",
            )
        if refusal is None:
            raise Undecided(
                f"the repair process ended with status {ended.exit_code}: {ended.log}",
                hint="run the same command again: it continues" if action != "plan" else None,
            )
        raise PreconditionFailed(refusal.message, hint=refusal.hint)


def _planned(work: _Work, repairs: Repairs, directory: Path) -> Repair | None:
    """Plan, ask and note the start; None if the user asked for the plan only."""
    session = work.session
    work.require_stopped()
    identity = repairs.new_id()
    rows = repairs.rows(identity)
    try:
        work.run("plan", rows, progress=lambda *_: None, report=directory)
        head = _head(rows)
        counts: Mapping[str, int] = head["counts"]
        _show(session, head)
        if session.ends_with_plan(changes=bool(counts)):
            return None
        if not counts:
            raise PreconditionFailed("no finding of the report can be repaired")
        place = head.get("table") or head["topic"]
        session.confirm(f"change {counted(sum(counts.values()), NOUNS[work.job])} of {place}?")
        begun = RepairStarted(
            id=identity,
            report=str(directory),
            connector=head["target"],
            table=place,
            rows=sum(counts.values()),
            job=work.job,
            snapshot=head.get("snapshot_id"),
        )
        repairs.journal.append(begun)
    finally:
        # A file of rows without an entry in the journal is of no use.
        if identity not in repairs.all():
            rows.unlink(missing_ok=True)
    return Repair(begun=begun)


def _progress(repairs: Repairs, begun: Repair, done: int, total: int) -> None:
    repairs.journal.append(RepairProgress(id=begun.id, done=done, total=total))


def _refusal(config: Config, job: str) -> str | None:
    """Return why a sink's row, or a source's record, cannot be made again; None if it can."""
    name = simple_class(config)
    if job != SOURCE:
        if name == "IcebergSink":
            return (
                "this sink commits its offsets before the table, so files with rows that an audit"
                " misses may wait in its control topic, and would be added to those of a repair"
            )
        if name not in SINKS:
            return "rows of other sinks cannot be repaired"
        is_file = SINKS[name] == "lake" and config.get("format.class") != "iceberg"
        return "files of a lake are not repaired" if is_file else None
    if name == "LakeSource":
        return "a report does not name rows of files with columns"
    if name not in SOURCES:
        return f"it is not known which record {name} makes of a row"
    if config.get("transforms"):
        return "its transformations may depend on time and on records before"
    if (config.get(PROVENANCE) or "").strip().lower() == "true":
        return f"its records are numbered ({PROVENANCE}), and the lost numbers are not known"
    return None


NOUNS = {SINK: "row", TOPICS: "record", SOURCE: "record"}
_WRITTEN = {
    "missing": ("missing record", "write {} again, behind the last ones"),
    "different": ("key", "write the expected version of {}"),
    "extra": ("surplus key", "write a tombstone for {}"),
}
_PLANNED = {
    "missing": ("missing row", "write {} again from the topic"),
    "different": ("row", "write {} again where the table differs from the topic"),
    "extra": ("row", "delete {} that the topic does not have"),
    "repeated": ("surplus row", "delete {} of which the table has a copy"),
}


def _show(session: Session, head: Mapping[str, Any]) -> None:
    """Print the plan: a line for each kind of change, examples, and the reasons for the rest."""
    output = session.output
    if output.machine:
        shown = ("table", "topic", "counts", "examples", "refused")
        output.document({name: head[name] for name in shown if name in head})
        return
    output.message(f"plan for {head.get('table') or head['topic']}:")
    for kind, count in head["counts"].items():
        noun, text = (_WRITTEN if "topic" in head else _PLANNED)[kind]
        output.message(f"  {text.format(counted(count, noun))}")
    if head["examples"]:
        output.message("such as:")
    for example in head["examples"]:
        output.message(f"  {example}")
    for reason in head["refused"]:
        output.warning(f"not repaired: {reason}")
    if "topic" in head and head["counts"] and not head["undoable"]:
        output.warning("this cannot be undone: a record of a topic cannot be taken back")


def _head(rows: Path) -> dict[str, Any]:
    """Return the head of a plan's file; PreconditionFailed if it cannot be read."""
    try:
        with rows.open(encoding="utf-8") as stream:
            found: dict[str, Any] = json.loads(stream.readline())
    except (OSError, ValueError) as exc:
        raise PreconditionFailed(
            f"{rows}: the plan of the repair cannot be read: {exc}",
            hint="restore the file, or audit again and repair by the new report",
        ) from exc
    return found


def _document(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{file}: is not a report: {exc}", hint="give the directory of a report"
        ) from exc
    if not isinstance(found, dict) or "job" not in found:
        raise UsageError(f"{file}: is not a report")
    return found
