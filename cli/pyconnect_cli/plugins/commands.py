"""`pyconnect plugins`: the installed plugins of a worker, and the test of a plugin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.parsing.near_names import did_you_mean
from pyconnect_cli.plugins import check, trial
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.model import ConfigKey, Plugin
from pyconnect_cli.session import Session, session_of

app = typer.Typer(help="List, describe and test the plugins of a worker.")

app.registered_commands += [*check.app.registered_commands, *trial.app.registered_commands]

COLUMNS: Sequence[Column[Plugin]] = (
    Column("TYPE", lambda plugin: plugin.type),
    Column("CLASS", lambda plugin: plugin.class_name, whole=True),
    Column("VERSION", lambda plugin: plugin.version or "-"),
)


def _default(key: ConfigKey) -> str:
    if key.required:
        return "(required)"
    return "" if key.default_value is None else key.default_value


KEY_COLUMNS: Sequence[Column[ConfigKey]] = (
    Column("KEY", lambda key: key.name, whole=True),
    Column("TYPE", lambda key: key.type),
    Column("DEFAULT", _default),
    Column("IMPORTANCE", lambda key: key.importance),
    Column("GROUP", lambda key: key.group or "", wide=True),
    Column("MEANING", lambda key: " ".join(key.documentation.split()), prose=True),
)
SearchOption = Annotated[
    str | None,
    typer.Option("--search", metavar="REGEX", help="regular expression that a row must contain"),
]


@app.command("list")
def list_plugins(
    context: typer.Context,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="also converters, transformations and predicates")
    ] = False,
    search: SearchOption = None,
) -> None:
    """List the connectors, or all plugins, of the worker that answers."""
    session = session_of(context)
    pattern = _pattern(search)
    plugins = [
        plugin
        for plugin in session.client.plugins(connectors_only=not everything)
        if pattern is None or pattern.search(plugin.class_name)
    ]
    session.output.listing(
        COLUMNS,
        plugins,
        document=[plugin.raw for plugin in plugins],
        names=[plugin.class_name for plugin in plugins],
        empty="no plugin matches",
    )


@app.command()
def describe(
    context: typer.Context,
    plugin: Annotated[str, typer.Argument(metavar="PLUGIN", help="class, simple name or alias")],
    *,
    search: SearchOption = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version", metavar="VERSION", help="version of the plugin, if several are installed"
        ),
    ] = None,
) -> None:
    """Show the configuration keys of a plugin."""
    session = session_of(context)
    pattern = _pattern(search)
    keys = [
        key
        for key in _keys(session, plugin, version)
        if pattern is None or pattern.search(key.name) or pattern.search(key.documentation)
    ]
    session.output.listing(
        KEY_COLUMNS, keys, document=[key.raw for key in keys], empty="no key matches"
    )


def _keys(session: Session, plugin: str, version: str | None) -> list[ConfigKey]:
    try:
        return session.client.plugin_config(plugin, version=version)
    except NotFound as exc:
        known = [found.class_name for found in session.client.plugins(connectors_only=False)]
        short = [name.rsplit(".", 1)[-1] for name in known]
        hint = did_you_mean(plugin, [*known, *short])
        raise NotFound(
            f"plugin `{plugin}` is not installed on this worker",
            hint=hint or "list the installed plugins: pyconnect plugins list --all",
        ) from exc


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as exc:
        raise UsageError(f"`{text}` is not a regular expression: {exc}") from exc
