"""`connectors history rollback`: the recorded changes of a connector, and the way back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from pyconnect_cli.connectors.from_files import SetOption, carry_out, key_changes
from pyconnect_cli.connectors.plan import Config, ConnectorFile, plan_apply
from pyconnect_cli.diagnostics import (
    DEFAULT_MAX,
    MaxOption,
    SinceOption,
    UserOption,
    recorded_changes,
    show_changes,
)
from pyconnect_cli.errors import NotFound, PreconditionFailed
from pyconnect_cli.rest.agent_client import RecordedChange
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import CreatingVerb, NameArgument, option

app = typer.Typer()

HIDDEN = "[hidden]"
"""The mask of the agents' journal."""


@app.command()
def history(
    context: typer.Context,
    name: NameArgument,
    *,
    user: UserOption = None,
    since: SinceOption = None,
    most: MaxOption = DEFAULT_MAX,
) -> None:
    """List the recorded changes of a connector, a deleted one too, the oldest first.

    Agents only (exit 9), with agent.journal.topic or agent.journal.file. With -o json each change
    has the configurations before and after, with secrets hidden.
    """
    session = session_of(context)
    changes = recorded_changes(session, connector=name, user=user, since=since, most=most)
    show_changes(session, changes, connector=False)


@app.command(cls=CreatingVerb)
def rollback(
    context: typer.Context,
    name: NameArgument,
    *,
    to: Annotated[
        int | None,
        option(
            "--to N",
            "number of the change whose result is wanted; default: before the last change",
            least=0,
        ),
    ] = None,
    keys: SetOption = None,
) -> None:
    """Give a connector the configuration that it had before its last change, or after change N.

    The journal has no secrets: they are those that the connector has now. If it has no more (exit
    9), give them with --set. A deleted connector is created again, in the target state that it had.
    """
    session = session_of(context)
    changes = recorded_changes(session, connector=name)
    place, recorded, state = target_of(name, changes, to)
    views = session.client.connector_views([name])
    stored = {view.name: view.info.config for view in views.values() if view.info}
    given = key_changes(keys, None)
    config, gone = with_secrets({**recorded, **given}, stored.get(name, {}))
    if gone:
        raise PreconditionFailed(
            f"{name}: the journal hides {', '.join(gone)}, and the connector has no such value",
            hint=f"add --set {gone[0]}=VALUE for each, also a ${{provider:path:key}} reference",
        )
    # The state counts for a connector that is created again: a stopped one must not start to work.
    initial_state = state if state in {"PAUSED", "STOPPED"} else None
    file = ConnectorFile(name=name, config=config, initial_state=initial_state, place=place)
    carry_out(session, plan_apply([file], stored), "rollback", views, validated=True, ask_all=True)


def target_of(
    name: str, changes: Sequence[RecordedChange], to: int | None
) -> tuple[str, Config, str | None]:
    """Return the place in the journal, the configuration and the target state; else NotFound.

    Without `to` the configuration is the one before the last change.
    """
    hint = f"list its changes: pyconnect connectors history {name}"
    if to is None:
        last = next((change for change in reversed(changes) if change.changed_config), None)
        if last is None or last.before is None:
            raise NotFound(f"the journal has no configuration of {name} to go back to", hint=hint)
        return f"before change {last.number}", last.before, last.before_state
    found = [change for change in changes if change.number == to]
    if not found:
        raise NotFound(f"change {to} of {name} is not in the journal", hint=hint)
    if len(found) > 1:
        raise NotFound(f"several agents have a change {to} of {name} in their files", hint=hint)
    if found[0].after is None:
        raise NotFound(f"there was no connector {name} after change {to}", hint=hint)
    return f"after change {to}", found[0].after, found[0].after_state


def with_secrets(
    recorded: Mapping[str, str | None], stored: Config
) -> tuple[dict[str, str | None], list[str]]:
    """Return a configuration with its hidden values replaced by stored ones, and keys without one.

    If only a part of a value is hidden, such as a password in an address, the rest must agree.
    """
    config, gone = dict(recorded), []
    for key, value in recorded.items():
        if value is None or HIDDEN not in value:
            continue
        pattern = ".+".join(map(re.escape, value.split(HIDDEN)))
        held = stored.get(key)
        if held is not None and re.fullmatch(pattern, held, re.DOTALL):
            config[key] = held
        else:
            gone.append(key)
    return config, gone
