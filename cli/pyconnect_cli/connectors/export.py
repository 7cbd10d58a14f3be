"""Where `connectors export --dir` puts configurations: a file for each connector."""

from __future__ import annotations

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
) -> None:
    """Write `NAME.json` for each document and print its path; `mode` as of `write_whole`.

    Raises OutputLost when a file cannot be written, UsageError when it is the file of an earlier
    connector as well: some file systems do not distinguish `Orders` and `orders`.
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
            session.output.line(str(file))
    except OSError as exc:
        raise OutputLost(f"{directory}: cannot be written: {exc.strerror}") from exc


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino
