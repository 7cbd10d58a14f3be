"""The loop of a sink task gives records to the task in puts, and learns their ends.

Layer: tasks. A task in this process takes a batch at once. One in a Java process is sent the
records of several puts in one frame, and the next frame while it is at one, as each message between
the processes costs both of them time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyconnect_api import SinkRecord, SinkRecords, SinkTask, TopicPartition

MOST_PUTS = 10
"""How many puts a frame may have."""

QUICK_MS = 20.0
"""After a frame whose puts took longer the next one has one put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutEnd:
    """The end of a batch that a task was given.

    `taken` records at its begin are the task's. The next `due` ones are those of a put that has
    failed with `error`, and have to be given to it again. The rest was given to no put. `puts`:
    sizes and milliseconds of those that succeeded. After `stopped` batches that were begun before
    this end was known are not taken.
    """

    taken: int
    puts: Sequence[tuple[int, float]]
    stopped: bool
    due: int = 0
    error: Exception | None = None


BeginPut: TypeAlias = Callable[[Sequence[SinkRecord]], Callable[[], PutEnd]]
"""Starts with a batch, and returns what waits for the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A batch that is under way; `ends` are the offsets after its records."""

    batch: Sequence[SinkRecord]
    ends: Mapping[TopicPartition, int]
    finish: Callable[[], PutEnd]


def put_at_once(task: SinkTask) -> BeginPut:
    """Return what puts when it is called."""

    def begin(batch: Sequence[SinkRecord]) -> Callable[[], PutEnd]:
        # A list is copied: the task may keep what it gets, and change it.
        records = batch if isinstance(batch, SinkRecords) else list(batch)
        began_s = time.monotonic()
        try:
            task.put(records)
        except Exception as exc:  # noqa: BLE001  plugin code; the loop decides
            end = PutEnd(taken=0, puts=(), stopped=True, due=len(batch), error=exc)
        else:
            puts = ((len(batch), (time.monotonic() - began_s) * 1000),)
            end = PutEnd(taken=len(batch), puts=puts, stopped=False)
        return lambda: end

    return begin


class FrameSize:
    """Records to consume at once: those of one put, or of several if puts are quick."""

    def __init__(self, put_records: int, *, grows: bool) -> None:
        self._put_records = put_records
        self._grows = grows
        self.records = put_records

    @property
    def under_way(self) -> int:
        """Return how many batches may be under way: the end of a slow one is to be seen at once."""
        return 2 if self.records > self._put_records else 1

    def ended(self, size: int, end: PutEnd) -> None:
        """Learn from a batch."""
        duration_ms = sum(duration_ms for _, duration_ms in end.puts)
        if end.stopped or duration_ms > QUICK_MS:
            self.records = self._put_records
        elif self._grows and size >= self.records:
            self.records = min(2 * self.records, MOST_PUTS * self._put_records)
