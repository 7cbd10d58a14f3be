"""`connectors init`: a template of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from pyconnect_cli.connectors.from_files import SetOption, pairs
from pyconnect_cli.connectors.templates import (
    FORMATS,
    chosen_plugin,
    template_name,
    template_of,
    with_refused,
)
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.rest.model import Plugin
from pyconnect_cli.session import Session, session_of

app = typer.Typer()

FILE_SINK = "file-stream-sink"


def refused_without_value(
    session: Session, plugin: Plugin, name: str, values: Mapping[str, str | None]
) -> frozenset[str]:
    """Return the settings that the plugin's own validation refuses in a config without them.

    Many Java connectors require settings by code, and their definitions do not show it.
    """
    config = {"name": name, "connector.class": plugin.class_name, **values}
    if plugin.type == "sink" and "topics.regex" not in values:
        config.setdefault("topics", name)
    try:
        found = session.client.validate(plugin.class_name, config).fields
    except PyconnectError:
        return frozenset()
    return frozenset(field.name for field in found) - values.keys()


@app.command()
def init(
    context: typer.Context,
    plugin: Annotated[
        str,
        typer.Argument(metavar="CONNECTOR", help="name such as sql-sink, simple name or class"),
    ],
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="name of the new connector")
    ] = None,
    keys: SetOption = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json without comments; yaml or properties with all settings, described",
        ),
    ] = "json",
) -> None:
    """Print a configuration with the required settings of a connector, for `create -f`."""
    session = session_of(context)
    if form not in FORMATS:
        raise UsageError(f"--format: `{form}` is not one of {', '.join(FORMATS)}")
    chosen = chosen_plugin(plugin, session.client.plugins())
    settings = session.client.plugin_config(chosen.class_name)
    name = name or template_name(chosen.class_name)
    values = pairs(keys or ())
    settings = with_refused(settings, refused_without_value(session, chosen, name, values))
    template = template_of(chosen, settings, name, values)
    session.output.line(FORMATS[form](template))
    if template_name(chosen.class_name) == FILE_SINK:
        session.output.message(
            "FileStreamSink delivers at-least-once: after a failure, lines are appended again."
            " LakeSink writes files exactly once: `pyconnect connectors init lake-sink`"
        )
    if template.empty:
        session.output.message(f"give a value to: {', '.join(template.empty)}")
