"""A source of lines from several files, dealt to as many tasks as it may have.

Settings: `files`, JSON of file by topic; `batch`, lines of a file per poll (20). Task n has every
`tasks.max`-th file: when the number of tasks changes, files go to other tasks. A line whose end is
not there yet is left for later; the offset of a file is a position in it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_api import STRING_SCHEMA, ExactlyOnceSupport, SourceRecord, SourceTask
from tests.support.plugins.plain_connectors import PlainSource, PlainSourceTask

LINES_SOURCE = f"{__name__}.LinesSource"
IDLE_S = 0.05


class LinesTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.files: dict[str, str] = json.loads(props["mine"])
        self.batch = int(props.get("batch", "20"))
        partitions = [{"file": file} for file in self.files.values()]
        found = self.context.offset_storage_reader.offsets(partitions)
        self.positions = {
            topic: int(str(offset["position"])) if offset else 0
            for topic, (_, offset) in zip(self.files, found, strict=True)
        }

    def poll(self) -> Sequence[SourceRecord] | None:
        records = [record for topic in self.files for record in self.read(topic)]
        if not records:
            self.context.stop_requested.wait(IDLE_S)
        return records or None

    def read(self, topic: str) -> list[SourceRecord]:
        file = self.files[topic]
        with Path(file).open("rb") as opened:
            opened.seek(self.positions[topic])
            found = opened.read(4_096)
        whole = found[: found.rfind(b"\n") + 1]
        records = []
        for line in whole.splitlines(keepends=True)[: self.batch]:
            self.positions[topic] += len(line)
            offset = {"position": self.positions[topic]}
            text = line.decode().rstrip()
            records.append(
                SourceRecord({"file": file}, offset, topic, 0, None, None, STRING_SCHEMA, text)
            )
        return records


class LinesSource(PlainSource):
    """Makes as many tasks as it may, none without files."""

    def task_class(self) -> type[SourceTask]:
        return LinesTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        files = sorted(json.loads(self.props["files"]).items())
        shares = [dict(files[number::max_tasks]) for number in range(max_tasks)]
        return [{**self.props, "mine": json.dumps(share)} for share in shares if share]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED
