"""When a task is over a limit, and the text of its trace."""

import pytest

from pyconnect_agent.core.config.agent_keys import MEMORY, PROCESSOR, AgentKeys
from pyconnect_agent.core.task_limits import (
    CPU_WINDOW_MS,
    NO_LIMITS,
    TaskLimits,
    Use,
    UseOverTime,
    excess,
)


def used(*samples: tuple[int, int, int]) -> UseOverTime:
    """Return the use over time, from samples of seconds, bytes and seconds of processor time."""
    found = UseOverTime()
    for at_s, resident_bytes, cpu_s in samples:
        found.add(Use(at_ms=at_s * 1_000, resident_bytes=resident_bytes, cpu_ms=cpu_s * 1_000))
    return found


def test_memory_over_its_limit_is_said_with_both_numbers() -> None:
    """A task exactly at its limit is not over it."""
    limits = TaskLimits(memory_bytes=100)
    assert excess(limits, used((0, 100, 0))) is None
    trace = excess(limits, used((0, 50, 0), (1, 101, 0))) or ""
    assert "it used 101 bytes of resident memory, agent.limit.memory.bytes is 100." in trace


def test_the_processor_counts_over_a_whole_minute() -> None:
    """The average of the last minute counts: neither a short burst nor earlier use."""
    limits = TaskLimits(cpu_percent=50)
    assert excess(limits, used((0, 1, 0), (30, 1, 30))) is None
    assert excess(limits, used((0, 1, 0), (30, 1, 30), (60, 1, 30))) is None
    trace = excess(limits, used((0, 1, 0), (60, 1, 36))) or ""
    assert "it used 60 % of a processor over the last 60 s" in trace
    assert "agent.limit.cpu.percent is 50." in trace
    late = used((0, 1, 0), (60, 1, 0), (120, 1, 36))
    assert excess(limits, late) is not None


def test_samples_and_limits_have_ends() -> None:
    """Old samples are dropped; without limits or samples no task is over a limit."""
    use = used(*((at_s, 1, at_s // 2) for at_s in range(1_000)))
    assert use.cpu_percent == pytest.approx(50, abs=1)
    assert len(use._samples) <= CPU_WINDOW_MS // 1_000 + 2
    assert excess(NO_LIMITS, used((0, 1 << 60, 0), (60, 1 << 60, 600))) is None
    assert excess(TaskLimits(memory_bytes=1, cpu_percent=1), UseOverTime()) is None


def test_a_connector_overrides_the_worker_also_with_no_limit() -> None:
    """0 removes the worker's limit, and a value that cannot be parsed has no effect."""
    worker = AgentKeys().overridden({MEMORY: 1_000, PROCESSOR: 0})
    assert worker.limits == TaskLimits(memory_bytes=1_000)
    expected = TaskLimits(cpu_percent=150)
    assert worker.of_connector({MEMORY: "0", PROCESSOR: "150"}).limits == expected
    assert worker.of_connector({MEMORY: "${file:x:y}"}).limits == worker.limits
