"""The limits of a task's memory and processor time, and its use of them.

No Kafka counterpart: a JVM cannot account for one of its threads.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

CPU_WINDOW_MS = 60_000
"""For a shorter time a task may use more than its share of the processor, as after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """The limits of a task; None: no limit. `cpu_percent`: 150 is one and a half processors."""

    memory_bytes: int | None = None
    cpu_percent: int | None = None

    @property
    def any(self) -> bool:
        return self.memory_bytes is not None or self.cpu_percent is not None

    def to_json(self) -> dict[str, Any]:
        return {"memory_bytes": self.memory_bytes, "cpu_percent": self.cpu_percent}


NO_LIMITS = TaskLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The use of one process at `at_ms`: resident bytes, and processor time since its start."""

    at_ms: int
    resident_bytes: int
    cpu_ms: int


class UseOverTime:
    """Samples of one process, for its average use of the processor."""

    def __init__(self) -> None:
        self._samples: deque[Use] = deque()

    def add(self, use: Use) -> None:
        """Take a sample; samples come in order of time."""
        self._samples.append(use)
        while len(self._samples) > 2 and use.at_ms - self._samples[1].at_ms >= CPU_WINDOW_MS:
            self._samples.popleft()

    @property
    def latest(self) -> Use | None:
        return self._samples[-1] if self._samples else None

    @property
    def cpu_percent(self) -> float | None:
        """The average over the window, or over the life of a younger process; None at first."""
        if len(self._samples) < 2:
            return None
        first, last = self._samples[0], self._samples[-1]
        elapsed_ms = last.at_ms - first.at_ms
        return None if elapsed_ms <= 0 else 100 * (last.cpu_ms - first.cpu_ms) / elapsed_ms

    @property
    def spans_window(self) -> bool:
        samples = self._samples
        return bool(samples) and samples[-1].at_ms - samples[0].at_ms >= CPU_WINDOW_MS


def excess(limits: TaskLimits, use: UseOverTime) -> str | None:
    """Return the trace for a task that is over a limit, otherwise None."""
    latest, cpu_percent = use.latest, use.cpu_percent
    if latest is None:
        return None
    if limits.memory_bytes is not None and latest.resident_bytes > limits.memory_bytes:
        return (
            f"The task was ended because it was over its memory limit: it used"
            f" {latest.resident_bytes} bytes of resident memory,"
            f" agent.limit.memory.bytes is {limits.memory_bytes}."
        )
    if (
        limits.cpu_percent is not None
        and cpu_percent is not None
        and use.spans_window
        and cpu_percent > limits.cpu_percent
    ):
        return (
            f"The task was ended because it was over its processor limit: it used"
            f" {cpu_percent:.0f} % of a processor over the last {CPU_WINDOW_MS // 1000} s,"
            f" agent.limit.cpu.percent is {limits.cpu_percent}."
        )
    return None
