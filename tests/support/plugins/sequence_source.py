"""A source of numbers that tells, and obeys, what a test wants to know of its transactions.

Settings: `topic`; `directory` (flags and signs); `batch` (numbers per poll, 10); `limit` (a poll
gives none beyond it; the flag file `limit` raises it); `pause.ms` (before each poll, 0).
Task n writes keys `n` and values 1, 2, 3 … in order and resumes at its offset. With
`transaction.boundary=connector` transactions end at 1, 2, 3, 5, 8 …, or after each number with
`every=true`; those that end at an even number are aborted.
Flags in the directory, each obeyed once by one task: `die-in-commit` (SIGKILL when told of a
commit), `hang-in-poll` (for ever).
"""

import os
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyconnect_api import (
    STRING_SCHEMA,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    SourceRecord,
    SourceTask,
    TransactionContext,
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
        """Take the flag away, if it is there and no other task was quicker."""
        try:
            (self.directory / name).unlink()
        except FileNotFoundError:
            return False
        return True


class SequenceSource(PlainSource):
    """Makes `tasks.max` tasks."""

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
