"""Metrics of tasks: records, batches, commits, errors, transactions."""

from collections.abc import Mapping

import pytest

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import (
    DESCRIPTIONS,
    SINK_TASK,
    SOURCE_TASK,
    TASK,
    TASK_ERROR,
    MetricValue,
)
from pyconnect_agent.core.offsets.sink import SinkOffsets
from pyconnect_api import TopicPartition
from tests.agent.tasks.parts import sink_metrics, source_metrics

TEXTS = {
    name for name in DESCRIPTIONS[TASK] if name.endswith(("status", "class", "version", "type"))
}
"""Reported beside the numbers: the state by the worker process, the plugins once."""


def test_source_and_sink_tasks_have_all_their_metrics() -> None:
    """A task has exactly the metrics that Kafka names."""
    for metrics, own in ((source_metrics(), SOURCE_TASK), (sink_metrics(), SINK_TASK)):
        values = metrics.values()
        assert values.keys() == {TASK, TASK_ERROR, own}
        for group, members in values.items():
            expected = DESCRIPTIONS[group].keys() - (TEXTS if group == TASK else set())
            assert members.keys() == expected


def test_written_records_are_those_polled_less_those_left_out_or_under_way() -> None:
    """Written records need no count of their own."""
    metrics = source_metrics()

    def counts() -> tuple[MetricValue, ...]:
        found: Mapping[str, MetricValue] = metrics.values()[SOURCE_TASK]
        names = ("poll-total", "active-count", "write-total", "active-count-max")
        return tuple(found[f"source-record-{name}"] for name in names)

    metrics.polled(100)
    metrics.poll_took(3.0)
    metrics.under_way(100)
    assert counts() == (100, 100, 0, 100)
    metrics.left_out(10)
    metrics.under_way(25)
    assert counts() == (100, 25, 65, 100)
    metrics.polled(1)
    metrics.poll_took(1.0)
    metrics.under_way(0)
    assert counts() == (101, 0, 91, 100)
    metrics.task.batch(100)
    metrics.task.batch(1)
    values = metrics.values()
    assert values[SOURCE_TASK]["poll-batch-max-time-ms"] == 3.0
    assert values[TASK]["batch-size-max"] == 100
    assert values[TASK]["batch-size-avg"] == 50.5


def test_records_that_are_not_committed_are_active() -> None:
    """The active count of a partition is at least 0, as a task may return any offsets."""
    metrics, offsets = sink_metrics(), SinkOffsets()
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    offsets.assign({first: 10, second: 5})
    offsets.consumed.update({first: 17})
    offsets.committed[second] = 9
    metrics.look_at(offsets, at_once=True)
    assert metrics.values()[SINK_TASK]["sink-record-active-count"] == 7
    offsets.committed[first] = 17
    metrics.look_at(offsets)
    assert metrics.values()[SINK_TASK]["sink-record-active-count"] == 7
    metrics.look_at(offsets, at_once=True)
    assert metrics.values()[SINK_TASK]["sink-record-active-count"] == 0


def test_commits_count_by_outcome() -> None:
    """Durations are those of successful commits; commits of closing partitions also count apart."""
    metrics = sink_metrics()
    metrics.committed(10, success=True, closing=False)
    metrics.committed(900, success=False, closing=False)
    metrics.committed(30, success=True, closing=True)
    metrics.commit_skipped()
    values = metrics.values()
    assert values[TASK]["offset-commit-max-time-ms"] == 30
    assert values[TASK]["offset-commit-avg-time-ms"] == 20
    assert values[TASK]["offset-commit-failure-percentage"] == pytest.approx(1 / 3)
    sink = values[SINK_TASK]
    assert (sink["offset-commit-completion-total"], sink["offset-commit-skip-total"]) == (2, 1)
    assert (sink["sink-closing-commit-total"], sink["sink-closing-commit-time-ms"]) == (1, 30)


def test_a_task_that_only_ran_was_never_paused() -> None:
    """The pause ratio is a share of the task's life."""
    metrics = source_metrics()
    metrics.task.state_changed(State.RUNNING)
    values = metrics.values()[TASK]
    assert values["pause-ratio"] == 0
