"""Offsets in files: the REST body, as `get -o json` prints it, or a snapshot from `export`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import OutputLost, UsageError
from pyconnect_cli.offsets.plan.checks import read_entries
from pyconnect_cli.offsets.plan.snapshots import FORMAT, OffsetsSnapshot, read_snapshot
from pyconnect_cli.parsing.json_text import parse_json
from pyconnect_cli.render.styles import counted, json_text
from pyconnect_cli.render.whole_files import write_whole
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_cli.session import Session
from pyconnect_cli.settings.given_files import read_given, yaml_documents


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsFile:
    """The content of a file; `snapshot` is None for a REST body, which has no origin."""

    place: str
    entries: tuple[OffsetEntry, ...]
    snapshot: OffsetsSnapshot | None = None


def read_offsets_file(place: str, connector_type: str) -> OffsetsFile:
    """Read a REST body or a snapshot, JSON or YAML; `-` is stdin. UsageError says what is wrong."""
    text, shown = read_given(place)
    document = _document(text, place, shown)
    if isinstance(document, Mapping) and document.get("format") == FORMAT:
        snapshot = read_snapshot(text, shown)
        return OffsetsFile(place=shown, entries=snapshot.offsets, snapshot=snapshot)
    if not isinstance(document, Mapping) or "offsets" not in document:
        raise UsageError(
            f"{shown}: an object with `offsets` was expected",
            hint="for an example: pyconnect offsets get NAME -o json",
        )
    if unknown := sorted(str(key) for key in document if key != "offsets"):
        raise UsageError(f"{shown}: unknown member {', '.join(unknown)}")
    return OffsetsFile(
        place=shown, entries=read_entries(document["offsets"], connector_type, shown)
    )


def read_snapshot_file(place: str) -> OffsetsSnapshot:
    """Read a snapshot that `export` wrote."""
    text, shown = read_given(place)
    return read_snapshot(text, shown)


def _document(text: str, place: str, shown: str) -> object:
    if Path(place).suffix.lower() not in {".yaml", ".yml"}:
        return parse_json(text, shown)
    return next(iter(yaml_documents(text, shown)), None)


ExportFileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", help="file to write instead of stdout"),
]


def export_snapshot(session: Session, snapshot: OffsetsSnapshot, file: Path | None) -> None:
    """Print a snapshot's JSON if `file` is None or `-`, else write it there whole.

    Raises OutputLost when it cannot be written.
    """
    text = json_text(snapshot.to_json(), indent=2)
    if file is None or str(file) == "-":
        session.output.line(text)
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text + "\n")
    except OSError as exc:
        raise OutputLost(f"{file}: cannot be written: {exc.strerror}") from exc
    session.output.message(
        f"{snapshot.connector}: {counted(len(snapshot.offsets), 'partition')} written to {file}"
    )
