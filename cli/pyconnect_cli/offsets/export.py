"""The output of `offsets export` and `offsets orphans export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import OutputLost
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot
from pyconnect_cli.render.styles import counted, json_text
from pyconnect_cli.render.whole_files import write_whole
from pyconnect_cli.session import Session

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
