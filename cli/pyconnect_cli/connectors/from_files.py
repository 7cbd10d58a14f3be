"""`connectors create apply patch validate export`: verbs that take files or single keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import (
    UNCHANGED,
    Asks,
    BatchStep,
    config_shows,
    deletion_shows,
    run_steps,
)
from pyconnect_cli.acting.selection import (
    Selection,
    known_connector,
    selected_views,
    selection_from,
)
from pyconnect_cli.acting.wait import delete_and_see, kept_state, wait_for_state, wait_if_asked
from pyconnect_cli.connectors.files import (
    check_settings,
    read_connector_files,
    show_plan,
    total,
    validate_all,
    validation,
    validation_lines,
    write_connector_files,
)
from pyconnect_cli.connectors.plan import (
    Change,
    ConnectorFile,
    PlannedChange,
    patched,
    plan_apply,
    refuse_masked,
)
from pyconnect_cli.errors import (
    Conflict,
    ExitCode,
    OutOfTime,
    PreconditionFailed,
    PyconnectError,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.offsets.files import read_snapshot_file
from pyconnect_cli.offsets.plan.change import Action, OffsetsSnapshot, same_class
from pyconnect_cli.offsets.run import place_offsets
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.streams import PRIVATE
from pyconnect_cli.rest.masking import mask_config, mask_document
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import (
    ActingVerb,
    CreatingVerb,
    FilesOption,
    NamesArgument,
    SelectingCronVerb,
    argument,
    option,
)

app = typer.Typer()

SetOption = Annotated[
    list[str] | None, option("--set/-s KEY=VALUE", "configuration key with its value; repeatable")
]
UnsetOption = Annotated[
    list[str] | None, option("--unset KEY", "configuration key to remove; repeatable")
]
InitialStateOption = Annotated[
    str | None,
    option("--initial-state STATE", "initial state: RUNNING, PAUSED or STOPPED (KIP-980)"),
]
OffsetsOption = Annotated[
    str | None,
    option("--offsets-from FILE", "file of `offsets export` with the offsets to begin at"),
]


@app.command(cls=CreatingVerb)
def create(
    context: typer.Context,
    name: Annotated[str | None, argument("[NAME]", "name of the connector")] = None,
    *,
    files: FilesOption = None,
    keys: SetOption = None,
    initial_state: InitialStateOption = None,
    offsets: OffsetsOption = None,
) -> None:
    """Create a connector from a file or from --set; an existing name is refused (exit 6)."""
    session = session_of(context)
    documents = _documents(files, keys, name)
    for document in documents:
        refuse_masked(document)
    state = None if initial_state is None else initial_state_of(initial_state)
    if offsets is not None and len(documents) > 1:
        raise UsageError("--offsets-from is for one connector")
    snapshot = None if offsets is None else read_offsets_for(documents[0], offsets)

    def act(file: ConnectorFile) -> str | None:
        chosen = state or file.initial_state
        if snapshot is not None:
            return create_with_offsets(session, file, snapshot, chosen or "RUNNING")
        session.client.create_connector(file.name, file.config, initial_state=chosen)
        return None

    steps = [
        BatchStep(
            name=file.name,
            done="created",
            act=partial(act, file),
            # With offsets, the creation is only the first of several changes.
            look=partial(config_shows, file.name, file.config) if snapshot is None else None,
            changes=(f"new {file.config.get('connector.class') or ''}".rstrip(),),
        )
        for file in documents
    ]
    for file in documents:
        check_settings(session, file.name, file.config)
    if session.given.get("dry_run"):
        for file in documents:
            if session.client.exists(file.name):
                raise Conflict(f"connector `{file.name}` exists already")
        validate_all(session, documents)
    run_steps(session, "create", steps)
    wait_if_asked(
        session, {file.name: state or file.initial_state or "RUNNING" for file in documents}
    )


@app.command(cls=ActingVerb)
def apply(
    context: typer.Context,
    *,
    files: FilesOption = None,
    prune: Annotated[
        bool, option("--prune", "deletion of the selected connectors that no file describes")
    ] = False,
    no_validate: Annotated[
        bool, option("--no-validate", "no validation before the first change")
    ] = False,
) -> None:
    """Create, change or delete connectors to match the files, after a plan and validation.

    A selection limits the connectors that --prune may delete.
    """
    session = session_of(context)
    if not prune and selection_from(session.given, ()).filters:
        raise UsageError(
            "a selection limits the connectors that --prune may delete; without --prune"
            " every file is applied",
            hint="leave it out, or add --prune",
        )
    documents = read_connector_files(required_files(files))
    views = session.client.connector_views(() if prune else [file.name for file in documents])
    plan = plan_files(session, documents, views, prune=prune)
    carry_out(session, plan, "apply", views, validated=not no_validate)


def carry_out(
    session: Session,
    plan: Sequence[PlannedChange],
    verb: str,
    views: Mapping[str, ConnectorView],
    *,
    validated: bool,
    ask_all: bool = False,
) -> None:
    """Show a plan, validate, ask, change and wait; with `--dry-run` only show and validate it.

    Consent is needed for deletions, and with `ask_all` for every change; on a terminal also for
    several changes. `views`: the connectors before the change.
    """
    dry_run = bool(session.given.get("dry_run"))
    show_plan(session, plan, as_data=dry_run)
    changes = [planned for planned in plan if planned.change is not Change.UNCHANGED]
    if validated:
        validate_all(session, [p.file for p in changes if p.file is not None])
    if session.ends_with_plan(changes=bool(changes)):
        return
    deletes = any(planned.change is Change.DELETE for planned in changes)
    if deletes or (ask_all and changes) or (len(changes) > 1 and session.interactive):
        session.confirm(f"{verb}: {total(plan)}?")
    steps = [_apply_step(session, planned) for planned in changes]
    run_steps(session, verb, steps, asks=Asks.BEFORE)
    wait_if_asked(session, {p.name: _goal(p, views) for p in changes})


@app.command(cls=ActingVerb)
def patch(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    keys: SetOption = None,
    unset: UnsetOption = None,
) -> None:
    """Change single keys of a connector's configuration and keep the others (KIP-477)."""
    session = session_of(context)
    change = key_changes(keys, unset)
    if not change:
        raise UsageError("nothing to change", hint="--set KEY=VALUE, --unset KEY")
    views = selected_views(session, names or ())

    def act(name: str) -> None:
        session.client.patch_connector_config(name, change)

    steps = [
        BatchStep(
            name=view.name,
            done="patched",
            act=partial(act, view.name),
            look=partial(config_shows, view.name, change, whole=False),
            changes=patched(view.config, change) or (UNCHANGED,),
        )
        for view in views
    ]
    for view in {view.info.class_name: view for view in views if view.info}.values():
        assert view.info is not None
        check_settings(session, view.name, {**view.info.config, **change}, pairs(keys or ()))
    run_steps(session, "patch", steps)
    wait_if_asked(session, {view.name: kept_state(view) for view in views})


@app.command()
def validate(
    context: typer.Context,
    name: Annotated[str | None, argument("[NAME]", "name of the connector")] = None,
    *,
    files: FilesOption = None,
    keys: SetOption = None,
) -> None:
    """Validate configurations on the worker and change nothing; exit 1 if one is not valid."""
    session = session_of(context)
    if name and not files and not keys:
        config = known_connector(session, name).config
        documents = [ConnectorFile(name=name, config=config, place=name)]
    else:
        documents = _documents(files, keys, name)
    answers = [(file, validation(session, file)) for file in documents]
    failed = any(answer.error_count for _, answer in answers)
    if session.output.silent(success=not failed):
        return
    if session.output.machine:
        bodies = [mask_document(answer.raw) for _, answer in answers]
        session.output.document(bodies[0] if len(bodies) == 1 else bodies)
    else:
        for file, answer in answers:
            for line in validation_lines(file, answer):
                session.output.line(line)
    if failed:
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


@app.command(cls=SelectingCronVerb)
def export(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    directory: Annotated[
        Path | None,
        option("--dir/-d DIR", "directory for one JSON file per connector, instead of stdout"),
    ] = None,
    show_secrets: Annotated[
        bool,
        option("--show-secrets", "passwords in plain text; only you can read the files of --dir"),
    ] = False,
    prune: Annotated[
        bool,
        option("--prune", "removal of the files in --dir whose connector does not exist any more"),
    ] = False,
) -> None:
    """Write configurations as files that `apply` accepts."""
    session = session_of(context)
    if prune and directory is None:
        raise UsageError("--prune removes files of a directory", hint="add --dir DIR")
    if not names and not selection_from(session.given, ()).filters:
        session.given["all"] = True
    views = [view for view in selected_views(session, names or ()) if view.info]
    documents: list[dict[str, object]] = []
    for view in views:
        assert view.info is not None
        config = dict(view.info.config) if show_secrets else mask_config(view.info.config)
        if config != dict(view.info.config):
            session.output.warning(
                f"{view.name}: secrets are masked; `apply` takes them from the connector, another"
                " cluster needs --show-secrets"
            )
        documents.append({"name": view.name, "config": config})
    session.record = BatchRecord.of_checks("export", {view.name: None for view in views})
    if directory is None:
        session.output.document(documents)
        return
    write_connector_files(
        session, directory, documents, mode=PRIVATE if show_secrets else None, prune=prune
    )


def plan_files(
    session: Session,
    documents: Sequence[ConnectorFile],
    views: Mapping[str, ConnectorView],
    *,
    prune: bool,
) -> list[PlannedChange]:
    """Plan the changes that make the cluster match the files.

    With `prune` the plan deletes selected connectors that no file describes.
    """
    configs = {name: view.info.config for name, view in views.items() if view.info}
    doomed: list[str] = []
    if prune:
        selection: Selection = selection_from(session.given, ())
        if not selection.filters:
            raise UsageError(
                "--prune needs a selection of the connectors that it may delete",
                hint="for example -l team=orders, -e 'orders-.*', or --all",
            )
        doomed = [name for name, view in views.items() if selection.matches(view)]
    return plan_apply(documents, configs, doomed)


def _goal(planned: PlannedChange, views: Mapping[str, ConnectorView]) -> str:
    match planned.change:
        case Change.DELETE:
            return "DELETED"
        case Change.CREATE if planned.file and planned.file.initial_state:
            return planned.file.initial_state
        case _:
            return kept_state(views.get(planned.name))


def _apply_step(session: Session, planned: PlannedChange) -> BatchStep:
    def act() -> None:
        if planned.file is None:
            delete_and_see(session, planned.name)
        elif planned.change is Change.CREATE:
            session.client.create_connector(
                planned.name, planned.file.config, initial_state=planned.file.initial_state
            )
        else:
            session.client.put_connector_config(planned.name, planned.file.config)

    done = {Change.CREATE: "created", Change.UPDATE: "updated", Change.DELETE: "deleted"}
    look = (
        partial(deletion_shows, planned.name)
        if planned.file is None
        else partial(config_shows, planned.name, planned.file.config)
    )
    return BatchStep(name=planned.name, done=done[planned.change], act=act, look=look)


def _documents(
    files: Sequence[str] | None, keys: Sequence[str] | None, name: str | None
) -> list[ConnectorFile]:
    given = pairs(keys or ())
    if not files:
        if not name or not given:
            raise UsageError("no configuration", hint="give -f FILE, or NAME and --set KEY=VALUE …")
        return [ConnectorFile(name=name, config=given, place="--set")]
    documents = read_connector_files(files, name=name)
    if name and len(documents) > 1:
        raise UsageError(f"{len(documents)} documents cannot all be named `{name}`")
    return [replace(file, config={**file.config, **given}) for file in documents]


def key_changes(keys: Sequence[str] | None, unset: Sequence[str] | None) -> dict[str, str | None]:
    """Read --set and --unset: None removes a key."""
    return {**pairs(keys or ()), **dict.fromkeys(unset or (), None)}


def pairs(texts: Sequence[str]) -> dict[str, str | None]:
    """Return KEY=VALUE texts as a map; UsageError for another text."""
    found: dict[str, str | None] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"`{text}` is not KEY=VALUE")
        found[key] = value
    return found


def required_files(files: Sequence[str] | None) -> Sequence[str]:
    """Return the files that were given; UsageError without any."""
    if not files:
        raise UsageError("no file was given", hint="-f FILE, -f DIRECTORY or -f -")
    return files


def initial_state_of(text: str) -> str:
    """Read a state that a connector can be created in."""
    state = text.upper()
    if state not in {"RUNNING", "PAUSED", "STOPPED"}:
        raise UsageError(f"`{text}` is not an initial state", hint="RUNNING, PAUSED or STOPPED")
    return state


def read_offsets_for(file: ConnectorFile, place: str) -> OffsetsSnapshot:
    """Read an exported file for a new connector; offsets of another class are refused."""
    snapshot = read_snapshot_file(place)
    if not snapshot.offsets:
        raise UsageError(f"{place}: contains no offsets")
    class_name = file.config.get("connector.class") or ""
    if not same_class(snapshot.class_name, class_name):
        raise PreconditionFailed(
            f"{place}: contains offsets of a {snapshot.class_name}, but {file.name} is a"
            f" {class_name}: nothing was created",
            hint="if this is intended: create it with --initial-state STOPPED, then import"
            " with --force",
        )
    return snapshot


def create_with_offsets(
    session: Session, file: ConnectorFile, snapshot: OffsetsSnapshot, state: str
) -> str | None:
    """Create one connector with exactly these offsets; return a remark for its result line.

    After a failure the new connector stays STOPPED: it has done nothing yet.
    """
    client, cluster_id = session.client, session.worker.kafka_cluster_id
    info = client.create_connector(file.name, file.config, initial_state="STOPPED")
    try:
        wait_for_state(session, [file.name], "STOPPED")
        status = client.connector_status(file.name)
        view = ConnectorView(name=file.name, info=info, status=status)
        resume = state == "RUNNING"
        remark = place_offsets(
            session, view, snapshot, action=Action.IMPORT, cluster_id=cluster_id, resume=resume
        )
        if state == "PAUSED":
            client.pause_connector(file.name)
    except PyconnectError as error:
        error.hint = (
            f"{file.name} was created and is STOPPED: import its offsets and resume it, or"
            f" pyconnect connectors delete {file.name}"
        )
        if isinstance(error, OutOfTime):
            # The batch would report "not tried", but the connector was created.
            raise WaitTimedOut(error.message, hint=error.hint) from error
        raise
    return remark
