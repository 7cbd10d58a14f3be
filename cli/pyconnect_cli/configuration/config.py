"""`pyconnect config`: the settings in force, and trust in project files that set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from pyconnect_cli.render.streams import tell
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.masking import mask_text, mask_url
from pyconnect_cli.session import session_of
from pyconnect_cli.settings.contexts import (
    PROJECT_FILE,
    parse_config_file,
    read_content,
    shown_setting,
    trust,
    withdraw_trust,
)
from pyconnect_cli.settings.resolved import NO_ORIGIN, Secret, working_directory
from pyconnect_cli.verbs import ChangingVerb

app = typer.Typer(help="Show the settings in force and their origin; trust a project file.")

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="pyconnect.toml file (default: the one in this directory)"
    ),
]

UNSET = "-"
NAMES_OF_ATTRIBUTES = {
    "url": "urls",
    "timeout": "timeout_s",
    "request_timeout": "request_timeout_s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting as shown: a secret's origin, never its value."""

    name: str
    value: str
    origin: str


COLUMNS: Sequence[Column[SettingRow]] = (
    Column("SETTING", lambda row: row.name, whole=True),
    Column("VALUE", lambda row: row.value, prose=True),
    Column("ORIGIN", lambda row: row.origin),
)


@app.callback()
def config() -> None:
    """Show the settings in force and their origin; trust a project file."""


@app.command()
def view(context: typer.Context) -> None:
    """Show every setting, its value and where it comes from."""
    session = session_of(context)
    settings = session.settings
    rows = []
    for option in GLOBAL_OPTIONS:
        attribute = NAMES_OF_ATTRIBUTES.get(option.name, option.name)
        if hasattr(settings, attribute):
            value = getattr(settings, attribute)
            if isinstance(value, Secret):
                shown = value.describe()
            elif value is None or value == ():
                shown = UNSET
            elif isinstance(value, tuple):
                shown = ", ".join(mask_url(str(item)) for item in value)
            elif isinstance(value, bool):
                shown = "true" if value else "false"
            else:
                shown = mask_text(f"{value:g}s" if isinstance(value, float) else str(value))
            origin = settings.origins.get(option.name, NO_ORIGIN)
            rows.append(SettingRow(name=option.name, value=shown, origin=origin))
    user_path = str(settings.files.user_path)
    rows.append(SettingRow(name="config", value=user_path, origin="user file"))
    document = {
        row.name: {"value": None if row.value == UNSET else row.value, "origin": row.origin}
        for row in rows
    }
    session.output.listing(COLUMNS, rows, document=document, names=[row.name for row in rows])


@app.command("trust", cls=ChangingVerb)
def trust_file(context: typer.Context, file: FileArgument = None) -> None:
    """Allow a project file, with its present content, to set addresses and credentials.

    Read the file first: commands in its directory will connect to the addresses that it names,
    with the secrets that it names. The file is refused again as soon as it changes.
    """
    session = session_of(context)
    path = _project_file(file)
    if not path.is_file():
        raise NotFound(f"{path}: no such file")
    content = read_content(path)
    parsed = parse_config_file(path, "project file", content)
    trust(path, content, session.environ)
    if session.given.get("quiet"):
        return
    if parsed.current:
        tell(f"  current = {parsed.current}")
    tables = {"defaults": parsed.defaults}
    tables |= {f"contexts.{name}": table for name, table in parsed.contexts.items()}
    for where, table in tables.items():
        for key, value in sorted(table.items()):
            tell(f"  {where}.{key} = {shown_setting(key, value)}")
    tell(f"{path}: trusted until it changes")


@app.command("untrust", cls=ChangingVerb)
def untrust_file(context: typer.Context, file: FileArgument = None) -> None:
    """Withdraw the trust in a project's file; the file need not exist any more."""
    session = session_of(context)
    path = _project_file(file)
    recorded = withdraw_trust(path, session.environ)
    # `session.output` needs settings, which may be refused now that the file is not trusted.
    if not session.given.get("quiet"):
        tell(f"{path}: {'no longer trusted' if recorded else 'was not trusted'}")


def _project_file(file: Path | None) -> Path:
    path = working_directory() / (file or PROJECT_FILE)
    if path.is_dir():
        path = path / PROJECT_FILE
    if path.name != PROJECT_FILE:
        raise UsageError(f"{path}: a project file must be named {PROJECT_FILE}")
    return path
