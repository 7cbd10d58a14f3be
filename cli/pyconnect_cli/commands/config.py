"""`pyconnect config`: the settings in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from pyconnect_cli.masking import mask_text
from pyconnect_cli.options import GLOBAL_OPTIONS
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_cli.settings import NO_ORIGIN, Secret, Settings

app = typer.Typer(help="Show the settings in force and their origin.")

UNSET = "-"
NAMES_OF_ATTRIBUTES = {
    "url": "urls",
    "timeout": "timeout_s",
    "request_timeout": "request_timeout_s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting as shown: secrets are described, never revealed."""

    name: str
    value: str
    origin: str


COLUMNS: Sequence[Column[Row]] = (
    Column(title="SETTING", value=lambda row: row.name, whole=True),
    Column(title="VALUE", value=lambda row: row.value, prose=True),
    Column(title="ORIGIN", value=lambda row: row.origin),
)


@app.callback()
def config() -> None:
    """Show the settings in force and their origin."""


@app.command()
def view(context: typer.Context) -> None:
    """Show every setting, its value and where it comes from."""
    session = session_of(context)
    rows = list(_rows(session.settings))
    document = {
        row.name: {"value": None if row.value == UNSET else row.value, "origin": row.origin}
        for row in rows
    }
    session.output.listing(COLUMNS, rows, document=document, names=[row.name for row in rows])


def _rows(settings: Settings) -> list[Row]:
    rows = []
    for option in GLOBAL_OPTIONS:
        attribute = NAMES_OF_ATTRIBUTES.get(option.name, option.name)
        if not hasattr(settings, attribute):
            continue
        origin = settings.origins.get(option.name, NO_ORIGIN)
        rows.append(
            Row(name=option.name, value=_shown(getattr(settings, attribute)), origin=origin)
        )
    rows.append(Row(name="config", value=str(settings.files.user_path), origin="user file"))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, Secret):
        return value.describe()
    if value is None or value == ():
        return UNSET
    if isinstance(value, tuple):
        return ", ".join(mask_text(str(item)) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return mask_text(f"{value:g}s" if isinstance(value, float) else str(value))
