"""Where `connectors export --dir` puts configurations: a file for each connector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_cli.errors import OutputLost, UsageError
from pyconnect_cli.render.styles import json_text
from pyconnect_cli.render.whole_files import file_name, write_whole
from pyconnect_cli.session import Session


def write_connector_files(
    session: Session,
    directory: Path,
    documents: Sequence[Mapping[str, object]],
    *,
    mode: int | None,
    prune: bool,
) -> None:
    """Write `NAME.json` for each document and print its path; `mode` as of `write_whole`.

    Files of earlier exports whose connector does not exist are removed with `prune`, and otherwise
    named. Raises OutputLost when a file cannot be written, UsageError when
    it is the file of an earlier connector as well: some file systems do not distinguish `Orders`
    and `orders`.
    """
    written: dict[tuple[int, int], str] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for document in documents:
            name = str(document["name"])
            file = directory / file_name(name)
            if file.exists() and (other := written.get(_identity(file))):
                raise UsageError(
                    f"{file}: holds `{other}` and would be overwritten with `{name}`",
                    hint="export them into two directories",
                )
            text = json_text(document, indent=2) + "\n"
            write_whole(file, text, mode=mode)
            written[_identity(file)] = name
            if not session.settings.quiet:
                session.output.line(str(file))
        exported = ((file, _exported(file)) for file in sorted(directory.glob("*.json")))
        kept = {file: other for file, other in exported if other is not None}
        others = [other for other in kept.values() if other not in written.values()]
        existing = session.client.connector_views(others) if others else {}
        stale = [file for file in kept if kept[file] in others and kept[file] not in existing]
        for file in stale if prune else ():
            file.unlink()
            session.output.message(f"removed {file}: its connector does not exist")
        if stale and not prune:
            session.output.warning(
                f"files of connectors that do not exist: {', '.join(map(str, stale))}; `apply`"
                " would create them again; remove them with --prune"
            )
    except OSError as exc:
        raise OutputLost(f"{directory}: cannot be written: {exc.strerror}") from exc


def _exported(file: Path) -> str | None:
    """Return the connector that an export wrote a file for; None for other files."""
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or set(document) != {"name", "config"}:
        return None
    name = document["name"]
    return name if isinstance(name, str) and file.name == file_name(name) else None


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino
