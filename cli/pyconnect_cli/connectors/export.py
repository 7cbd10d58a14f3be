"""Where `connectors export --dir` puts configurations: a file for each connector."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
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
    existing: Collection[str],
    prune: bool,
) -> None:
    """Write `NAME.json` for each document and print its path; `mode` as of `write_whole`.

    Files of earlier exports whose connector is not among the `existing` ones are removed with
    `prune`, and otherwise named. Raises OutputLost when a file cannot be written, UsageError when
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
        stale = [file for file in sorted(directory.glob("*.json")) if _is_stale(file, existing)]
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


def _is_stale(file: Path, existing: Collection[str]) -> bool:
    """Return whether an export wrote a file for a connector that does not exist any more."""
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(document, dict) or set(document) != {"name", "config"}:
        return False
    name = document["name"]
    return isinstance(name, str) and file.name == file_name(name) and name not in existing


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino
