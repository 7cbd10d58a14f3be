"""`pyconnect backup`: configurations, target states, offsets and loggers in one directory.

A connector is read as it was at one moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import Asks, BatchStep, positive_number, run_steps
from pyconnect_cli.acting.selection import listed_views, selection_from
from pyconnect_cli.acting.workers import ask_workers, assigned_workers, connect_cluster, urls_with
from pyconnect_cli.backup.files import BackupWriter, prune
from pyconnect_cli.backup.plan import Manifest, SavedConnector
from pyconnect_cli.directories import new_identity
from pyconnect_cli.errors import (
    NotFound,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.kafka.reader import stored_target_states
from pyconnect_cli.offsets.run import offsets_view, snapshot_of
from pyconnect_cli.parsing.options import CRON_OPTIONS, SELECTION_OPTIONS, WORK_OPTIONS, OptionSpec
from pyconnect_cli.parsing.values import utc_text
from pyconnect_cli.render.outcomes import Outcome
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.rest.model import ConnectCluster, ConnectorView
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.settings.given_files import worker_properties
from pyconnect_cli.verbs import CronVerb, argument, option

ATTEMPTS = 5
SHOWN = frozenset({"RUNNING", "PAUSED", "STOPPED"})
"""States of a connector that are its target state."""
CONFIG_TOPIC = "config.storage.topic"
NO_STATES = (
    "Java workers report it only in their config topic: give --kafka-bootstrap and"
    " --worker-config worker.properties"
)


class ClusterReader:
    """Reads connectors for one command. Threads may read, one connector each.

    `worker_config`: a worker's properties file, which names the config topic.
    """

    def __init__(self, session: Session, worker_config: str | None = None) -> None:
        self._session = session
        self._worker_config = worker_config

    def connector(self, view: ConnectorView) -> tuple[SavedConnector, str | None]:
        """Read a connector; return it with the reason why a part is missing, if one is.

        It is read until configuration and state are the same before and after its offsets. Raises
        NotFound for a connector that was deleted meanwhile.
        """
        for _ in range(ATTEMPTS):
            saved, fault = self._saved(view)
            again = self._session.client.connector_views([view.name]).get(view.name)
            if again is None or again.info is None:
                raise NotFound(f"{view.name}: was deleted meanwhile")
            if view.info and _compared(again) == _compared(view):
                return saved, fault
            view = again
        raise ServerError(
            f"{view.name}: its configuration or state changed each time while it was read",
            hint="run the backup again",
        )

    def _saved(self, view: ConnectorView) -> tuple[SavedConnector, str | None]:
        # The state of a connector that is FAILED or UNASSIGNED is not its target state. Agents
        # report target states, and the config topic holds them; else tasks show it.
        state: str | None = view.state
        if state not in SHOWN and self._states is not None:
            state = self._states.get(view.name)
            state = "RUNNING" if state in {None, "STARTED"} else state
        elif state not in SHOWN:
            tasks = {task.state for task in view.status.tasks} if view.status else set()
            state = next((state for state in ("PAUSED", "RUNNING") if state in tasks), None)
        saved = SavedConnector(name=view.name, config=dict(view.config), state=state, offsets=None)
        fault = None
        if saved.state is None:
            fault = f"its target state is not known, because it is {view.state}; {NO_STATES}"
        try:
            offsets = snapshot_of(offsets_view(self._session, view), self._session.worker)
        except NotFound:
            raise
        except PyconnectError as error:
            return saved, f"its offsets could not be read: {error.message}"
        return replace(saved, offsets=offsets), fault

    @cached_property
    def _states(self) -> Mapping[str, str] | None:
        session = self._session
        urls = session.client.exchange.urls
        for answer in ask_workers(session, urls, lambda ask: AgentClient(ask).target_states()):
            if not isinstance(answer, PyconnectError):
                return answer
        file = self._worker_config
        topic = worker_properties(file).get(CONFIG_TOPIC) if file else None
        if not topic or not session.settings.kafka_bootstrap:
            return None
        try:
            return stored_target_states(kafka_cluster(session, "").librdkafka(), topic)
        except PyconnectError as error:
            session.output.warning(f"target states were not read from {topic}: {error.message}")
            return None


def worker_levels(exchange: Exchange) -> dict[str, str]:
    """Return the levels of the one worker of an exchange."""
    return {each.name: each.level for each in ConnectClient(exchange).loggers() if each.level}


def _compared(view: ConnectorView) -> object:
    """Return the parts that must be the same before and after reading the offsets."""
    return view.info.config if view.info else None, view.state in SHOWN and view.state


app = typer.Typer(
    help="Save configurations, states, offsets and loggers of a cluster in a directory."
)

KEEP_OPTION = OptionSpec(
    ("--keep",),
    "number of backups of this cluster without missing parts to keep; earlier ones are removed"
    " after a backup that has none (default: all)",
    "N",
)
WorkerConfigOption = Annotated[
    str | None,
    option(
        "--worker-config FILE",
        "properties file of a Java worker, which names the config topic: it holds the target"
        " states of connectors that are FAILED",
    ),
]
LOGGERS_OF = "loggers of "


class BackupVerb(CronVerb):
    """A command that saves a selection of connectors."""

    shared_specs = (
        ("Selection", SELECTION_OPTIONS),
        ("Batch", (KEEP_OPTION, *WORK_OPTIONS)),
        ("Cron", CRON_OPTIONS),
    )


class _Backup:
    """One run: a step for each connector and each worker; threads run them."""

    def __init__(
        self, session: Session, writer: BackupWriter, reader: ClusterReader, *, secrets: bool
    ) -> None:
        self._session = session
        self._reader = reader
        self.writer = writer
        self._secrets = secrets
        self.masked: list[str] = []
        self.levels: dict[str, dict[str, str]] = {}

    def save(self, view: ConnectorView) -> str | None:
        """Save a connector; return a remark. Raises for a part that is missing."""
        try:
            saved, fault = self._reader.connector(view)
        except NotFound:
            return "left out: it was deleted meanwhile"
        config = saved.config if self._secrets else mask_config(saved.config)
        if config != saved.config:
            self.masked.append(view.name)
        self.writer.connector(replace(saved, config=config))
        if fault:
            raise PyconnectError(f"saved in part: {fault}")
        return None

    def save_levels(self, url: str) -> str | None:
        """Keep the levels of a worker, which only its memory holds; return why they are missing."""
        exchange = self._session.exchange_with(url)
        try:
            self.levels[url] = worker_levels(exchange)
        except (NotFound, PreconditionFailed):
            return "none: it does not serve /admin/loggers here"
        except Unreachable:
            return "none: it does not answer"
        finally:
            exchange.close()
        return None


@app.command(cls=BackupVerb)
def backup(
    context: typer.Context,
    directory: Annotated[Path, argument("DIR", "directory of backups; each has its own in it")],
    names: Annotated[
        list[str] | None, argument("[NAME]…", "connectors to save (default: all, and loggers)")
    ] = None,
    *,
    show_secrets: Annotated[
        bool, option("--show-secrets", "passwords in plain text; only you can read the files")
    ] = False,
    worker_config: WorkerConfigOption = None,
) -> None:
    """Save configurations, states, offsets and loggers of a cluster in a directory.

    Each connector is saved as it was at one moment. What cannot be read is reported and named in
    the manifest (exit 8), the rest is saved. Passwords in plain text are masked: `restore` then
    needs the connector that has them, or a reference with --set.
    """
    session = session_of(context)
    keep = positive_number(session, "keep")
    selection = selection_from(session.given, names or ())
    selected = bool(selection.names or selection.filters)
    if keep and selected:
        raise UsageError("--keep is for backups of all connectors: leave the selection out")
    now = datetime.now(UTC)
    views = listed_views(session, selection)
    statuses = [view.status for view in views]
    cluster = connect_cluster(session, statuses)
    reader = ClusterReader(session, worker_config)
    writer = BackupWriter(directory / new_identity(now))
    run = _Backup(session, writer, reader, secrets=show_secrets)
    urls = [] if selected else urls_with(session, assigned_workers(statuses))
    steps = [BatchStep(name=view.name, done="saved", act=partial(run.save, view)) for view in views]
    steps += [
        BatchStep(name=f"{LOGGERS_OF}{url}", done="saved", act=partial(run.save_levels, url))
        for url in urls
    ]
    kafka_cluster_id = session.worker.kafka_cluster_id
    try:
        run_steps(session, "save", steps, asks=Asks.BEFORE)
    except PyconnectError:
        _finish(session, run, cluster, now, whole=False)
        raise
    _finish(session, run, cluster, now, whole=not selected)
    if keep:
        for path in prune(
            directory, keep, lambda found: found.is_of(kafka_cluster_id, cluster) is True, now
        ):
            session.output.message(f"removed {path}")


def _finish(
    session: Session, run: _Backup, cluster: ConnectCluster, now: datetime, *, whole: bool
) -> None:
    """Write the manifest, which makes a backup of the saved parts, even if others are missing."""
    results = session.record.results()
    if run.levels:
        run.writer.loggers(run.levels)
    missing = {
        result.name: result.error.message if result.error else "not tried"
        for result in results
        if result.outcome is not Outcome.DONE
    }
    if results and not run.writer.files:
        return
    run.writer.finish(
        Manifest(
            time=utc_text(now),
            kafka_cluster_id=session.worker.kafka_cluster_id,
            connect=cluster,
            version=session.worker.version,
            whole=whole,
            files=dict(run.writer.files),
            missing=missing,
        )
    )
    if run.masked:
        session.output.warning(
            f"secrets are masked: {', '.join(sorted(run.masked))}; a restore takes them from the"
            " connectors, or needs a reference with --set; to keep them: --show-secrets"
        )
    connectors = sum(name.startswith("connectors/") for name in run.writer.files)
    session.output.message(f"backup of {counted(connectors, 'connector')}: {run.writer.path}")
