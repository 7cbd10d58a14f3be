"""`connectors init`: a template of a configuration."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.connectors.from_files import SetOption, pairs
from pyconnect_cli.connectors.templates import FORMATS, chosen_plugin, template_name, template_of
from pyconnect_cli.errors import UsageError
from pyconnect_cli.session import session_of

app = typer.Typer()


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
    template = template_of(
        chosen, settings, name or template_name(chosen.class_name), pairs(keys or ())
    )
    session.output.line(FORMATS[form](template))
    if template.empty:
        session.output.message(f"give a value to: {', '.join(template.empty)}")
