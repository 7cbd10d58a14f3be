"""Sources of tests: numbers, numbers with drops, lines of files, a record with everything, pages.

`SequenceSource` writes numbers and follows a test's flags. Settings: `topic`;
`directory` (flags and signs); `batch` (numbers per poll, 10); `limit` (a poll gives none beyond it;
the flag file `limit` raises it); `pause.ms` (before each poll, 0).
Task n writes keys `n` and values 1, 2, 3 … in order and resumes at its offset. With
`transaction.boundary=connector` transactions end at 1, 2, 3, 5, 8 …, or after each number with
`every=true`; those that end at an even number are aborted.
Flags in the directory, each obeyed once by one task: `die-in-commit` (SIGKILL in the notice of a
commit), `hang-in-poll` (for ever).

`DropOdd` drops the odd numbers; `DroppingTask` notes its calls: the file `told` gets a line per
`commit_record` — the number, and `dropped` or the offset it was written at — and a line `commit`
per commit.

`LinesSource` has `files`, JSON of file by topic, and `batch`, lines of a file per poll (20). Task n
has every `tasks.max`-th file: when the number of tasks changes, files go to other tasks. A line
without its end is left for later; the offset of a file is a position in it.
"""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyconnect_api import (
    STRING_SCHEMA,
    ConfigDef,
    ConnectHeaders,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    RecordMetadata,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TransactionContext,
    Transformation,
    setting,
)
from tests.support.plugins.plain_connectors import PlainSource, PlainSourceTask

SEQUENCE_SOURCE = f"{__name__}.SequenceSource"
DIE_IN_COMMIT = "die-in-commit"
HANG_IN_POLL = "hang-in-poll"
HANGING = "hanging"
LIMIT = "limit"
FIBONACCI = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)


class SequenceTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.topic = props["topic"]
        self.directory = Path(props["directory"])
        self.batch = int(props.get("batch", "10"))
        self.pause_s = int(props.get("pause.ms", "0")) / 1000
        self.every = props.get("every") == "true"
        self.key = props["number"]
        self.partition = {"number": self.key}
        found = self.context.offset_storage_reader.offset(self.partition)
        self.last = int(str(found["last"])) if found else 0

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.flagged(HANG_IN_POLL):
            (self.directory / HANGING).touch()
            threading.Event().wait()
        if self.pause_s:
            self.context.stop_requested.wait(self.pause_s)
        limit = int((self.directory / LIMIT).read_text())
        numbers = range(self.last + 1, min(self.last + self.batch, limit) + 1)
        if not numbers:
            self.context.stop_requested.wait(0.05)
            return None
        self.last = numbers[-1]
        records = [self.record(number) for number in numbers]
        transactions = self.context.transaction_context
        if transactions is not None:
            self.end_transactions(transactions, zip(numbers, records, strict=True))
        return records

    def end_transactions(
        self, transactions: TransactionContext, records: Iterable[tuple[int, SourceRecord]]
    ) -> None:
        for number, record in records:
            if not self.every and number not in FIBONACCI:
                continue
            if number % 2:
                transactions.commit_transaction(record)
            else:
                transactions.abort_transaction(record)

    def record(self, number: int) -> SourceRecord:
        return SourceRecord(
            self.partition,
            {"last": number},
            self.topic,
            0,
            STRING_SCHEMA,
            self.key,
            STRING_SCHEMA,
            str(number),
        )

    def commit(self) -> None:
        if self.flagged(DIE_IN_COMMIT):
            os.kill(os.getpid(), signal.SIGKILL)

    def flagged(self, name: str) -> bool:
        """Remove the flag; return whether it existed and no other task was quicker."""
        try:
            (self.directory / name).unlink()
        except FileNotFoundError:
            return False
        return True


class SequenceSource(PlainSource):
    """A source with `tasks.max` tasks."""

    def task_class(self) -> type[SourceTask]:
        return SequenceTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.props, "number": str(number)} for number in range(max_tasks)]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(
        self, props: Mapping[str, str]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED


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
    """A source with at most one task for each file, and none without files."""

    def task_class(self) -> type[SourceTask]:
        return LinesTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        files = sorted(json.loads(self.props["files"]).items())
        shares = [dict(files[number::max_tasks]) for number in range(max_tasks)]
        return [{**self.props, "mine": json.dumps(share)} for share in shares if share]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


STAMPED_SOURCE = f"{__name__}.StampedSource"
TIMESTAMP_MS = 1_234


class StampedTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.topic = props["topic"]
        self.sent = False

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.sent:
            self.context.stop_requested.wait(0.05)
            return None
        self.sent = True
        headers = ConnectHeaders()
        headers.add_string("origin", "test")
        return [
            SourceRecord(
                {"p": 1},
                {"o": 1},
                self.topic,
                0,
                STRING_SCHEMA,
                "k",
                STRING_SCHEMA,
                "v",
                timestamp=TIMESTAMP_MS,
                headers=headers,
            )
        ]


class StampedSource(PlainSource):
    def task_class(self) -> type[StampedTask]:
        return StampedTask


ASYNC_SOURCE = f"{__name__}.AsyncSource"
PAUSE_S = 0.02


@dataclass(frozen=True)
class AsyncConfig:
    topic: str = setting("The topic to write to.")


class AsyncTask(SourceTask):
    config_class = AsyncConfig
    config: AsyncConfig

    async def start(self, props: Mapping[str, str]) -> None:  # type: ignore[override]
        super().start(props)
        self.loop = asyncio.get_running_loop()
        self.page = 0

    async def poll(self) -> Sequence[SourceRecord]:  # type: ignore[override]
        await asyncio.sleep(PAUSE_S)
        assert asyncio.get_running_loop() is self.loop
        self.page += 1
        self.context.metrics.counter("pages", {"kind": "even"}).increment()
        self.context.metrics.gauge("last-page", {"kind": "even"}).set(self.page)
        offset = {"page": self.page}
        return [SourceRecord({}, offset, self.config.topic, 0, None, None, STRING_SCHEMA, "a page")]


class AsyncSource(SourceConnector):
    task_type = AsyncTask
    config_class = AsyncConfig
