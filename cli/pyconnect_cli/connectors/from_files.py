"""`connectors create apply patch validate export`: what works from files and keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import Step, confirm_steps, run_steps
from pyconnect_cli.acting.conditions import Selection, selection_from
from pyconnect_cli.acting.looks import config_shows, deletion_shows
from pyconnect_cli.acting.selection import selected_views
from pyconnect_cli.acting.wait import wait_if_asked
from pyconnect_cli.connectors.export import write_connector_files
from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.connectors.plan import (
    Change,
    ConnectorFile,
    PlannedChange,
    plan_apply,
    refuse_masked,
)
from pyconnect_cli.connectors.show import known_connector
from pyconnect_cli.connectors.with_offsets import create_with_offsets, read_offsets_for
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError
from pyconnect_cli.parsing.arguments import FilesOption, NamesArgument
from pyconnect_cli.render.tables import Column
from pyconnect_cli.render.whole_files import PRIVATE
from pyconnect_cli.rest.masking import mask_config, mask_document
from pyconnect_cli.rest.model import Validation
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import ActingVerb, CreatingVerb, SelectingVerb

app = typer.Typer()

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="configuration key with its value; repeatable"
    ),
]
UnsetOption = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="KEY", help="configuration key to remove; repeatable"),
]
SIGNS = {
    Change.CREATE: ("+", "good"),
    Change.UPDATE: ("~", "warning"),
    Change.DELETE: ("-", "bad"),
    Change.UNCHANGED: ("=", "dim"),
}


@app.command(cls=CreatingVerb)
def create(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="the connector")] = None,
    *,
    files: FilesOption = None,
    keys: SetOption = None,
    initial_state: Annotated[
        str | None,
        typer.Option(
            "--initial-state",
            metavar="STATE",
            help="initial state: RUNNING, PAUSED or STOPPED (KIP-980)",
        ),
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            "--offsets-from",
            metavar="FILE",
            help="file of `offsets export` with the offsets to begin at",
        ),
    ] = None,
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
        Step(
            name=file.name,
            done="created",
            act=partial(act, file),
            # With offsets, the creation is only the first of several changes.
            look=partial(config_shows, file.name, file.config) if snapshot is None else None,
        )
        for file in documents
    ]
    run_steps(session, "create", steps)
    wait_if_asked(session, [file.name for file in documents])


@app.command(cls=ActingVerb)
def apply(
    context: typer.Context,
    *,
    files: FilesOption = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="deletion of the selected connectors that no file describes"),
    ] = False,
    no_validate: Annotated[
        bool, typer.Option("--no-validate", help="no validation before the first change")
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
    plan = plan_files(session, documents, prune=prune)
    carry_out(session, plan, "apply", validated=not no_validate)


def carry_out(
    session: Session,
    plan: Sequence[PlannedChange],
    verb: str,
    *,
    validated: bool,
    ask_all: bool = False,
) -> None:
    """Show a plan, validate, ask, change and wait; with `--dry-run` only show it.

    The user is asked about deletions, with `ask_all` about every change.
    """
    dry_run = bool(session.given.get("dry_run"))
    show_plan(session, plan, as_data=dry_run)
    changes = [planned for planned in plan if planned.change is not Change.UNCHANGED]
    if dry_run:
        _exit_if_changes(session, changes)
        return
    if validated:
        _validate_all(session, [p.file for p in changes if p.file is not None])
    deletions = [planned.name for planned in changes if planned.change is Change.DELETE]
    if ask_all and changes:
        confirm_steps(session, verb, [planned.name for planned in changes])
    elif deletions:
        confirm_steps(session, "delete", deletions)
    run_steps(session, verb, [_apply_step(session, planned) for planned in changes])
    wait_if_asked(session, [p.name for p in changes if p.change is not Change.DELETE])


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
        Step(
            name=view.name,
            done="patched",
            act=partial(act, view.name),
            look=partial(config_shows, view.name, change, whole=False),
        )
        for view in views
    ]
    run_steps(session, "patch", steps)
    wait_if_asked(session, [view.name for view in views])


@app.command()
def validate(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="the connector")] = None,
    *,
    files: FilesOption = None,
    keys: SetOption = None,
) -> None:
    """Validate configurations on the worker and change nothing; exit 1 if one is not valid."""
    session = session_of(context)
    if name and not files and not keys:
        config = known_connector(session, name).config
        documents = [ConnectorFile(name=name, config=config, initial_state=None, place=name)]
    else:
        documents = _documents(files, keys, name)
    answers = [(file, _validation(session, file)) for file in documents]
    if session.output.machine:
        bodies = [mask_document(answer.raw) for _, answer in answers]
        session.output.document(bodies[0] if len(bodies) == 1 else bodies)
    else:
        for file, answer in answers:
            for line in _validation_lines(file, answer):
                session.output.line(line)
    if any(answer.error_count for _, answer in answers):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


@app.command(cls=SelectingVerb)
def export(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            "-d",
            metavar="DIR",
            help="directory for one JSON file per connector, instead of stdout",
        ),
    ] = None,
    show_secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets", help="passwords in plain text; only you can read the files of --dir"
        ),
    ] = False,
) -> None:
    """Write configurations as files that `apply` accepts."""
    session = session_of(context)
    if not names and not selection_from(session.given, ()).filters:
        session.given["all"] = True
    views = [view for view in selected_views(session, names or ()) if view.info]
    documents: list[dict[str, object]] = []
    for view in views:
        assert view.info is not None
        config = dict(view.info.config) if show_secrets else mask_config(view.info.config)
        if config != dict(view.info.config):
            session.output.warning(
                f"{view.name}: secrets are masked and `apply` will refuse them; see --show-secrets"
            )
        documents.append({"name": view.name, "config": config})
    if directory is None:
        session.output.document(documents)
        return
    write_connector_files(session, directory, documents, mode=PRIVATE if show_secrets else None)


def plan_files(
    session: Session, documents: Sequence[ConnectorFile], *, prune: bool
) -> list[PlannedChange]:
    """Plan what makes the cluster match the files; with `prune` what the selection may delete."""
    views = session.client.connector_views()
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


def show_plan(session: Session, plan: Sequence[PlannedChange], *, as_data: bool) -> None:
    """Print a plan: on stdout when it is what was asked for, else as a message."""
    output = session.output
    if output.machine:
        if as_data:
            output.listing(
                (Column(title="NAME", value=_planned_name),),
                [planned for planned in plan if planned.change is not Change.UNCHANGED],
                document=[_plan_json(planned) for planned in plan],
            )
        return
    for planned in plan:
        sign, style = SIGNS[planned.change]
        lines = [(f"{sign} {planned.change.value} {planned.name}", style)]
        if planned.change is Change.UPDATE:
            for difference in planned.differences:
                lines += [(line, "") for line in difference.lines(show_secrets=False)]
        for line, line_style in lines:
            if as_data:
                output.line(output.paint(line, line_style))
            else:
                output.message(line, style=line_style)


def _planned_name(planned: PlannedChange) -> str:
    return planned.name


def _plan_json(planned: PlannedChange) -> dict[str, object]:
    before = {d.key: d.before for d in planned.differences}
    after = {d.key: d.after for d in planned.differences}
    return {
        "name": planned.name,
        "change": planned.change.value,
        "before": mask_config(before),
        "after": mask_config(after),
    }


def _exit_if_changes(session: Session, changes: Sequence[PlannedChange]) -> None:
    if changes and session.given.get("exit_code"):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


def _apply_step(session: Session, planned: PlannedChange) -> Step:
    def act() -> None:
        if planned.file is None:
            session.client.delete_connector(planned.name)
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
    return Step(name=planned.name, done=done[planned.change], act=act, look=look)


def _validate_all(session: Session, files: Sequence[ConnectorFile]) -> None:
    """Raise for the first wrong file, before anything was changed."""
    for file in files:
        answer = _validation(session, file)
        if answer.error_count:
            lines = "\n".join(_validation_lines(file, answer))
            raise UsageError(
                f"{file.place}: the worker finds {answer.error_count} error(s); nothing was changed"
                f"\n{lines}"
            )


def _validation(session: Session, file: ConnectorFile) -> Validation:
    plugin = file.config.get("connector.class")
    if not plugin:
        raise UsageError(f"{file.place}: `connector.class` is missing")
    return session.client.validate(plugin, {"name": file.name, **file.config})


def _validation_lines(file: ConnectorFile, answer: Validation) -> list[str]:
    if not answer.error_count:
        return [f"{file.name}: valid"]
    return [
        f"{file.name}: {found.name}: {error}" for found in answer.fields for error in found.errors
    ]


def _documents(
    files: Sequence[str] | None, keys: Sequence[str] | None, name: str | None
) -> list[ConnectorFile]:
    pairs = _pairs(keys or ())
    if not files:
        if not name or not pairs:
            raise UsageError("no configuration", hint="give -f FILE, or NAME and --set KEY=VALUE …")
        return [ConnectorFile(name=name, config=pairs, initial_state=None, place="--set")]
    documents = read_connector_files(files, name=name)
    if name and len(documents) > 1:
        raise UsageError(f"{len(documents)} documents cannot all be named `{name}`")
    return [
        ConnectorFile(
            name=file.name,
            config={**file.config, **pairs},
            initial_state=file.initial_state,
            place=file.place,
        )
        for file in documents
    ]


def key_changes(keys: Sequence[str] | None, unset: Sequence[str] | None) -> dict[str, str | None]:
    """Read --set and --unset: None removes a key."""
    return {**_pairs(keys or ()), **dict.fromkeys(unset or (), None)}


def _pairs(texts: Sequence[str]) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"`{text}` is not KEY=VALUE")
        pairs[key] = value
    return pairs


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
