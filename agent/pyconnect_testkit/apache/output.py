"""The output of test connectors: a line of JSON for each event.

Layer: builtin. Apache's print to standard output. Here `output.file` names a file to append to, for
tasks run in processes of their own; without it lines go to standard output too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from pyconnect_api import ConnectException, Struct

OUTPUT_FILE = "output.file"


class EventOutput:
    """Writes events; lines of several processes do not mix."""

    def __init__(self, props: Mapping[str, str]) -> None:
        """Open what `output.file` names; ConnectException when that is impossible."""
        path = props.get(OUTPUT_FILE)
        self._descriptor: int | None = None
        if path:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            try:
                self._descriptor = os.open(path, flags, 0o644)
            except OSError as error:
                raise ConnectException(f"Cannot write to {path}: {error.strerror}") from error

    def write(self, event: Mapping[str, object]) -> None:
        """Write one event."""
        line = json.dumps(event, separators=(",", ":"), ensure_ascii=False, default=_plain) + "\n"
        if self._descriptor is None:
            sys.stdout.write(line)
            sys.stdout.flush()
        else:
            os.write(self._descriptor, line.encode())

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _plain(value: object) -> object:
    if isinstance(value, Struct):
        return {field.name: value.get(field) for field in value.schema.fields}
    return str(value)
