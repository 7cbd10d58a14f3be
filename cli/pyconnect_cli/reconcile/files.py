"""The files of FileStreamSource and FileStreamSink as sides of a compare. Pure."""

from __future__ import annotations

from pyconnect_cli.errors import Undecided, UsageError
from pyconnect_cli.reconcile.audited import Audited, Resolved


def read_file(connector: Audited) -> Resolved:
    """Return the file that a FileStreamSource reads, bounded by its committed offset."""
    file = connector.config.get("file")
    if not file:
        raise UsageError("the connector reads its worker's standard input: there is no file")
    positions = [
        int(str(entry.offset["position"]))
        for entry in connector.offsets
        if (entry.partition or {}).get("filename") == file and entry.offset is not None
    ]
    if not positions:
        raise Undecided(
            f"the connector has committed no offset of {file} yet, so nothing can be compared",
            hint="wait for offset.flush.interval.ms, then run it again",
        )
    side = {"kind": "files", "paths": [file], "format": "text", "limit_bytes": positions[0]}
    return Resolved(side=side)


def written_file(connector: Audited) -> Resolved:
    """Return the file that a FileStreamSink writes."""
    file = connector.config.get("file")
    if not file:
        raise UsageError("the connector writes to its worker's standard output: there is no file")
    return Resolved(side={"kind": "files", "paths": [file], "format": "text"})
