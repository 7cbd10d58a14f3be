"""Log, trace and metrics of records that a sink cannot process."""

import json
import logging

import pytest

from pyconnect_agent.tasks.trace import format_trace
from pyconnect_api import ConnectException
from tests.agent.tasks.sink.dead_letters import POISON, SECRET, Queue, convert, tolerance
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeMessage


@cases("messages", False, True)
def test_the_log_names_the_record_only_when_messages_are_included(
    caplog: pytest.LogCaptureFixture, messages: bool
) -> None:
    """By topic, partition, offset and timestamp; its value is in no line in either case."""
    config = {
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.log.include.messages": str(messages),
    }
    assert convert(POISON, tolerance(config)) == []
    stage = (
        "Error encountered in task c-2. Executing stage 'VALUE_CONVERTER' with class "
        "'pyconnect_agent.builtin.converters.json.JsonConverter'"
    )
    record = (
        ", where consumed record is {topic='t', partition=3, offset=7, timestamp=1234, "
        "timestampType=CreateTime}"
    )
    assert caplog.messages == [stage + (record if messages else "") + "."]
    assert "DataException" in caplog.text
    assert SECRET not in caplog.text


def test_without_the_log_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The default: a skipped record leaves no line."""
    with caplog.at_level(logging.DEBUG):
        assert convert(POISON, tolerance({"errors.tolerance": "all"})) == []
    assert caplog.messages == []


def test_the_trace_of_a_failed_task_says_which_record_it_was() -> None:
    """Topic, partition and offset, and nothing of its value."""
    with pytest.raises(ConnectException, match="Tolerance exceeded in error handler") as raised:
        convert(POISON, tolerance({}))
    assert str(raised.value) == "Tolerance exceeded in error handler"
    trace = format_trace(raised.value)
    assert (
        "Stage VALUE_CONVERTER of class pyconnect_agent.builtin.converters.json.JsonConverter "
        "failed for the record of topic 't', partition 3, offset 7\n"
    ) in trace
    assert SECRET not in trace


def test_failures_are_counted(queue: Queue) -> None:
    """Kafka's `task-error-metrics`."""
    assert convert(POISON, queue.tolerance) == []
    assert convert(FakeMessage(the_value=json.dumps("good").encode()), queue.tolerance) != []
    counts = queue.counts
    assert counts.last_error_ms > 0
    assert (counts.record_failures, counts.record_errors, counts.records_skipped) == (1, 1, 1)
    assert (counts.dead_letter_requests, counts.dead_letter_failures, counts.retries) == (1, 0, 0)
