"""A `SequenceSource` whose odd numbers a transformation drops, and which notes what it is told.

The file `told` in its directory gets a line per `commit_record` — the number, and `dropped` or the
offset it was written at — and a line `commit` per commit.
"""

from collections.abc import Mapping
from pathlib import Path

from pyconnect_api import ConfigDef, RecordMetadata, SourceRecord, SourceTask, Transformation
from tests.support.plugins.sequence_source import SequenceSource, SequenceTask

TOLD = "told"
DROPPED = "dropped"
COMMIT = "commit"


class DropOdd(Transformation[SourceRecord]):
    def config(self) -> ConfigDef:
        return ConfigDef()

    def configure(self, configs: Mapping[str, object]) -> None:
        """Nothing to configure."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        return None if int(str(record.value)) % 2 else record

    def close(self) -> None:
        """Nothing to close."""


class DroppingTask(SequenceTask):
    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self.note(f"{record.value} {DROPPED if metadata is None else metadata.offset}")

    def commit(self) -> None:
        self.note(COMMIT)

    def note(self, line: str) -> None:
        with (self.directory / TOLD).open("a") as told:
            told.write(f"{line}\n")


class DroppingSource(SequenceSource):
    def task_class(self) -> type[SourceTask]:
        return DroppingTask


DROPPING_SOURCE = f"{__name__}.{DroppingSource.__name__}"
DROP_ODD = f"{__name__}.{DropOdd.__name__}"


def notes(directory: Path) -> list[str]:
    """Return the calls of the task, without commits that followed an empty poll."""
    lines = (directory / TOLD).read_text().splitlines()
    return [
        line
        for number, line in enumerate(lines)
        if line != COMMIT or (number and lines[number - 1] != COMMIT)
    ]
