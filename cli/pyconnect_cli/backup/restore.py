"""`pyconnect restore`: a backup's connectors, states, offsets and loggers on a cluster.

A connector is created STOPPED, or stopped, gets configuration and offsets, and then its state. The
journal of the run (`run.json` in the user's state directory) notes each connector before it may
move on from its offsets, so a run that was killed is finished by the same command: it sets no
offsets twice. Beside it is a backup from before the run, for the undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import Asks, BatchStep, run_steps
from pyconnect_cli.acting.selection import selected_or_all, selection_from
from pyconnect_cli.acting.wait import delete_and_see, wait_for_state, wait_if_asked
from pyconnect_cli.acting.workers import (
    ask_all,
    ask_workers,
    assigned_workers,
    connect_cluster,
    urls_with,
)
from pyconnect_cli.backup.files import (
    Levels,
    RestoreRun,
    SavedCluster,
    StateBefore,
    find_backup,
    manifest_of,
    read_backup,
)
from pyconnect_cli.backup.plan import (
    ConnectorRestore,
    Manifest,
    Restored,
    SavedConnector,
    plan_connector,
    require_same_cluster,
)
from pyconnect_cli.backup.save import LOGGERS_OF, ClusterReader, WorkerConfigOption, worker_levels
from pyconnect_cli.connectors.from_files import SetOption, key_changes
from pyconnect_cli.connectors.promote import MapOption, Remapping, remapping
from pyconnect_cli.directories import new_identity, state_directory
from pyconnect_cli.errors import PyconnectError, UnknownOutcome
from pyconnect_cli.loggers import levels_to_set
from pyconnect_cli.offsets.plan.change import Action
from pyconnect_cli.offsets.run import place_offsets
from pyconnect_cli.parsing.options import (
    BATCH_OPTIONS,
    CRON_OPTIONS,
    SELECTION_OPTIONS,
    WAIT_OPTIONS,
)
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.rest.model import (
    ConnectCluster,
    ConnectorInfo,
    ConnectorStatus,
    ConnectorView,
    InstanceState,
)
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import ActingVerb, argument, option

app = typer.Typer(help="Restore connectors, states, offsets and loggers from a backup.")

READ_AT_ONCE = 8
OF_BACKUPS = ("all", "regex", "selector", "state", "type", "class")
"""Conditions that a connector in a backup can meet."""


class RestoreVerb(ActingVerb):
    """A command that restores a selection of a backup."""

    shared_specs = (
        ("Selection", tuple(spec for spec in SELECTION_OPTIONS if spec.name in OF_BACKUPS)),
        ("Batch", BATCH_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


@app.command(cls=RestoreVerb)
def restore(
    context: typer.Context,
    place: Annotated[
        Path, argument("DIR", "a backup, or a directory of backups: the newest of this cluster")
    ],
    names: Annotated[
        list[str] | None, argument("[NAME]…", "connectors to restore (default: all, and loggers)")
    ] = None,
    *,
    maps: MapOption = None,
    keys: SetOption = None,
    no_offsets: Annotated[
        bool, option("--no-offsets", "configurations and states without offsets")
    ] = False,
    force: Annotated[
        bool, option("--force", "restore into another cluster than the one that was saved")
    ] = False,
    again: Annotated[
        bool, option("--again", "restore of all offsets, also after a run that was interrupted")
    ] = False,
    worker_config: WorkerConfigOption = None,
) -> None:
    """Restore connectors, states, offsets and loggers from a backup.

    Connectors that the backup does not hold stay as they are. The command verifies the backup,
    shows its plan and asks. A connector is created STOPPED or is stopped, gets configuration and
    offsets, and then its state. The same command finishes a run that was interrupted, and prints
    the command that undoes it.
    """
    session = session_of(context)
    rules = remapping(maps or (), key_changes(keys, None))
    cluster = connect_cluster(session, session.client.connector_statuses().values())
    saved = _backup(session, place, cluster, force=force)
    chosen = _chosen(session, saved, names or (), rules)
    if no_offsets:
        chosen = [replace(each, offsets=None) for each in chosen]
    run = _run(session, saved, cluster, again=again)
    restorer = _Restorer(session, run, cluster, force=force)
    steps = restorer.steps(saved, chosen, ClusterReader(session, worker_config))
    if len(chosen) == len(saved.connectors) and not names:
        steps += restorer.deletions(saved)
        steps += restorer.logger_steps(saved.levels)
    if not steps:
        session.output.message("nothing to restore: the cluster has what the backup holds")
    try:
        if steps:
            run_steps(session, "restore", steps, asks=Asks.ALWAYS, what="object")
        if not session.given.get("dry_run"):
            run.finish()
    finally:
        if run.begun:
            undo = mask_command(["pyconnect", "restore", str(run.before)])
            session.output.message(f"undo: {undo}")
    wait_if_asked(session, restorer.goals)


def _run(
    session: Session, saved: SavedCluster, cluster: ConnectCluster, *, again: bool
) -> RestoreRun:
    """Return the unfinished run, with a message that it continues, or a new one."""
    target = {
        "backup": saved.digest,
        "kafka_cluster_id": session.worker.kafka_cluster_id,
        "connect": cluster.group_id or ",".join(sorted(session.client.exchange.urls)),
    }
    directory = state_directory(session.environ) / "restores"
    run = RestoreRun.of(directory, target)
    if not run.interrupted:
        return run
    if again:
        return RestoreRun(directory / new_identity(datetime.now(UTC)), target)
    session.output.message(
        "an earlier restore of this backup did not finish and goes on:"
        f" {counted(len(run.placed), 'connector')} with restored offsets keep the present ones;"
        " to set all offsets: --again"
    )
    return run


def _backup(session: Session, place: Path, cluster: ConnectCluster, *, force: bool) -> SavedCluster:
    """Find and verify the backup, check its cluster, and report its missing parts."""
    kafka_cluster_id = session.worker.kafka_cluster_id
    path, unfinished = find_backup(
        place, lambda manifest: manifest.is_of(kafka_cluster_id, cluster) is not False
    )
    for other in unfinished:
        session.output.warning(f"{other} is half-written and is not used")
    if path != place:
        session.output.message(f"backup {path} of {manifest_of(path).time}")
    saved = read_backup(path)
    if not force:
        require_same_cluster(saved.manifest, kafka_cluster_id, cluster, str(path))
    for name, reason in saved.manifest.missing.items():
        session.output.warning(f"the backup is not whole: {name}: {reason}")
    return saved


def _chosen(
    session: Session, saved: SavedCluster, names: Sequence[str], rules: Remapping
) -> list[SavedConnector]:
    """Return the selected connectors with their references remapped."""
    views = {
        name: ConnectorView(
            name=name,
            info=ConnectorInfo(name=name, config=each.config, type=each.type),
            status=ConnectorStatus(
                name=name,
                type=each.type,
                connector=InstanceState(state=each.state or "UNASSIGNED", worker_id=""),
                tasks=(),
            ),
        )
        for name, each in saved.connectors.items()
    }
    found = selected_or_all(views, selection_from(session.given, names))
    chosen = []
    for each in (saved.connectors[view.name] for view in found):
        values = {key: value and rules.reference(value) for key, value in each.config.items()}
        chosen.append(replace(each, config={**values, **rules.values}))
    return chosen


class _Restorer:
    """Plans and carries out the steps of one run."""

    def __init__(
        self, session: Session, run: RestoreRun, cluster: ConnectCluster, *, force: bool
    ) -> None:
        self._session = session
        self._run = run
        self._force = force
        worker = session.worker
        manifest = Manifest(
            time="",
            kafka_cluster_id=worker.kafka_cluster_id,
            connect=cluster,
            version=worker.version,
            whole=False,
            files={},
        )
        self._before = StateBefore(manifest=manifest)
        self.goals: dict[str, str] = {}

    def steps(
        self, saved: SavedCluster, chosen: Sequence[SavedConnector], reader: ClusterReader
    ) -> list[BatchStep]:
        """Return a step for each connector that is not as the backup holds it."""
        client = self._session.client
        views = client.connector_views([each.name for each in chosen])
        there = list(views.values())
        present: dict[str, SavedConnector | PyconnectError] = {}
        for start in range(0, len(there), READ_AT_ONCE):
            part = there[start : start + READ_AT_ONCE]
            for view, answer in zip(part, ask_all(part, reader.connector), strict=True):
                present[view.name] = answer if isinstance(answer, PyconnectError) else answer[0]
        created = tuple(each.name for each in chosen if each.name not in present)
        self._before = replace(
            self._before,
            manifest=replace(self._before.manifest, absent=created),
            connectors=[each for each in present.values() if isinstance(each, SavedConnector)],
        )
        steps = [self._step(each, present.get(each.name), str(saved.path)) for each in chosen]
        return [step for step in steps if step is not None]

    def deletions(self, saved: SavedCluster) -> list[BatchStep]:
        """Return a step for each connector that the undone restore created."""
        return [
            self._batch_step(ConnectorRestore(name=name, kind=Restored.DELETE))
            for name in saved.manifest.absent
            if self._session.client.exists(name)
        ]

    def _step(
        self, saved: SavedConnector, present: SavedConnector | PyconnectError | None, place: str
    ) -> BatchStep | None:
        try:
            if isinstance(present, PyconnectError):
                raise present
            placed = present is not None and saved.name in self._run.placed
            planned = plan_connector(saved, present, place=place, placed=placed)
        except PyconnectError as error:
            refusal = error

            def refuse() -> None:
                raise refusal

            changes = (f"refused: {error.message}",)
            return BatchStep(name=saved.name, done="restored", act=refuse, changes=changes)
        if planned.state:
            self.goals[saved.name] = planned.state
        return self._batch_step(planned) if planned.changes else None

    def _batch_step(self, planned: ConnectorRestore) -> BatchStep:
        return BatchStep(
            name=planned.name,
            done=planned.kind.value,
            act=partial(self._act, planned),
            changes=planned.changes,
        )

    def _act(self, planned: ConnectorRestore) -> str | None:
        self._run.begin(self._before)
        name, client = planned.name, self._session.client
        if planned.kind is Restored.DELETE:
            delete_and_see(self._session, name)
            return None
        remark = None
        if planned.kind is Restored.CREATE:
            client.create_connector(name, planned.config, initial_state="STOPPED")
            wait_for_state(self._session, [name], "STOPPED")
            remark = self._place_offsets(planned)
        elif planned.stops:
            try:
                client.stop_connector(name)
            except UnknownOutcome:
                self._session.output.message(f"{name}: the stop was not answered; waiting for it")
            wait_for_state(self._session, [name], "STOPPED")
            if planned.configured:
                client.put_connector_config(name, planned.config)
            remark = self._place_offsets(planned)
        # From here tasks may commit new offsets, so no later run sets the saved ones.
        self._run.place(name)
        match planned.state:
            case "RUNNING":
                client.resume_connector(name)
            case "PAUSED":
                client.pause_connector(name)
            case "STOPPED" if planned.kind is Restored.CHANGE and not planned.stops:
                client.stop_connector(name)
            case None:
                remark = "it stays STOPPED: its target state is not known"
            case _:
                pass
        return remark

    def _place_offsets(self, planned: ConnectorRestore) -> str | None:
        """Set the offsets of a STOPPED connector; keep its present ones for `offsets undo`."""
        if planned.offsets is None:
            return None
        session = self._session
        cluster_id = None if self._force else session.worker.kafka_cluster_id
        view = ConnectorView(
            name=planned.name,
            info=session.client.connector(planned.name),
            status=session.client.connector_status(planned.name),
        )
        return place_offsets(
            session, view, planned.offsets, action=Action.RESTORE, cluster_id=cluster_id
        )

    def logger_steps(self, saved: Levels) -> list[BatchStep]:
        """Return a step for each worker whose levels differ from the saved ones.

        A worker that was not saved gets the levels of the others, if these were the same on all.
        """
        session = self._session
        every = list(saved.values())
        common = every[0] if every and all(levels == every[0] for levels in every) else None
        statuses = session.client.connector_statuses().values() if saved else ()
        urls = urls_with(session, assigned_workers(statuses)) if saved else []
        steps = []
        answers = dict(zip(urls, ask_workers(session, urls, worker_levels), strict=True))
        for url, present in answers.items():
            wanted = saved.get(url, common)
            if isinstance(present, PyconnectError) or wanted is None:
                reason = present.message if isinstance(present, PyconnectError) else "it is new"
                session.output.message(f"{LOGGERS_OF}{url} are not restored: {reason}")
            elif levels := levels_to_set(wanted, present):
                changes = [f"{name}: {present.get(name, '-')} -> {level}" for name, level in levels]
                steps.append(
                    BatchStep(
                        name=f"{LOGGERS_OF}{url}",
                        done="restored",
                        act=partial(self._set_levels, url, levels),
                        changes=tuple(changes),
                    )
                )
        known = {url: each for url, each in answers.items() if isinstance(each, dict)}
        self._before = replace(self._before, levels=known)
        return steps

    def _set_levels(self, url: str, levels: Sequence[tuple[str, str]]) -> None:
        self._run.begin(self._before)
        client = self._session.client_of(url)
        for name, level in levels:
            client.set_logger(name, level)
