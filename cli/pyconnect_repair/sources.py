"""Records of a source's rows as its connector makes them: rows of a table, lines of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from pyconnect_api import STRING_SCHEMA, SourceRecord
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.file_side import FileSide
from pyconnect_reconcile.spec import TopicSide
from pyconnect_reconcile.table_side import TablePosition, TableSide
from pyconnect_repair.job import Job
from pyconnect_repair.messages import RepairRecord
from pyconnect_repair.plan import Refused, key_of
from pyconnect_repair.records import WrittenRecords

Row: TypeAlias = Mapping[str, Any]
"""A row's place as a report has it: `table` and `key`, or `file` and `row`."""


@contextmanager
def source_records(job: Job, digest: str | None = None) -> Iterator[Callable[[Row], RepairRecord]]:
    """Yield a function that makes the record of a row of the left side.

    It raises Refused for a row without one, ReconcileError for one that has changed. `digest` is
    that of a file's lines in the report, where its row numbers are from.
    """
    side, copy = job.audit.left, job.audit.right
    assert isinstance(copy, TopicSide)
    [topic] = copy.topics
    with closing(WrittenRecords(job.config, job.audit.clusters[copy.cluster])) as records:
        match side:
            case TableSide(position=TablePosition() as position):
                # It needs libraries that files do without.
                from pyconnect_repair.source_tables import source_table

                with source_table(records.config, topic, position) as table:
                    yield lambda row: records.written(table.record(_key(row)))
            case FileSide(limit_bytes=int() as end):
                line_of = _lines(side.paths[0], topic, end, digest)
                yield lambda row: records.written(line_of(row))
            case _:
                raise ReconcileError(
                    "the left side of the report has no committed position of the connector",
                    hint="audit it by its name alone: pyconnect reconcile source-topic CONNECTOR",
                )


def _key(row: Row) -> Mapping[str, str]:
    key = key_of(row.get("key") or "")
    if key is None:
        raise Refused("the report does not name the row: it has no key, or keys are hidden")
    return key


def _lines(file: str, topic: str, end: int, digest: str | None) -> Callable[[Row], SourceRecord]:
    """Return a function of the lines that the source had read, which end with LF alone."""
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(end)
    except OSError as exc:
        raise ReconcileError(f"{file} cannot be read: {exc.strerror}") from exc
    if len(content) < end:
        raise ReconcileError(f"{file} is shorter than it was at the report", hint="audit again")
    if digest is not None and sha256(content).hexdigest() != digest:
        raise ReconcileError(
            f"the lines of {file} that the source has read are others than at the report, or the"
            " report is of an earlier version",
            hint="put the file back if it was replaced; then audit again",
        )
    lines = content.split(b"\n")

    def line_of(row: Row) -> SourceRecord:
        number = row.get("row")
        if number is None or not 0 < number < len(lines) or b"\r" in content:
            raise Refused("the report does not name the line, or lines of the file end with CR")
        text = lines[number - 1].decode("utf-8", "replace")
        return SourceRecord({"filename": file}, {}, topic, value_schema=STRING_SCHEMA, value=text)

    return line_of
