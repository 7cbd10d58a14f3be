"""The status of a running task names the call that it retries, until the call succeeds."""

import pytest

from pyconnect_api import RetriableException
from tests.agent.tasks.sink.sink_loop import P0, P1, Sink, message
from tests.agent.tasks.source.source_loop import Source


def test_a_poll_that_is_repeated_is_shown_once_for_each_error() -> None:
    """Each new error is reported once, and a success removes the text."""
    source = Source()
    source.task.polls = [
        RetriableException("no database"),
        RetriableException("no database"),
        RetriableException("no table"),
        [],
        [],
    ]
    for _ in range(5):
        source.loop.step()
    first, second, over = source.retries
    assert first is not None
    assert first.startswith("pyconnect_api.errors.RetriableException: no database\n")
    assert second is not None
    assert "no table" in second
    assert over is None


def test_a_put_that_is_repeated_is_shown() -> None:
    """The status has the error until the same batch is taken."""
    sink = Sink()
    sink.assign({P0: 0})
    sink.task.put_errors = [RetriableException("no database")]
    sink.deliver(message(0))
    sink.deliver()
    shown, over = sink.retries
    assert shown is not None
    assert "no database" in shown
    assert over is None


def test_an_open_that_is_repeated_is_shown() -> None:
    """The task consumes no record and closes no partition until it has opened the partition."""
    sink = Sink()
    errors = [RetriableException("no database") for _ in range(3)]

    def fail() -> None:
        if errors:
            raise errors.pop()

    sink.task.on_open = fail
    sink.assign({P0: 0, P1: 0})
    (shown,) = sink.retries
    assert shown is not None
    assert "no database" in shown
    assert sink.consumer.paused == {P0, P1}
    sink.deliver()
    sink.next_commit()
    sink.revoke(P1)
    assert sink.consumer.paused >= {P0}
    assert {call for call, _, _ in sink.task.calls} <= {"open", "pre_commit"}
    sink.task.calls.clear()
    sink.deliver()
    assert sink.retries[1:] == [None]
    assert P0 not in sink.consumer.paused
    sink.deliver(message(0))
    assert sink.task.calls[0] == ("open", {P0}, False)
    assert sink.task.puts() == [[], ["v0"]]


def test_an_open_that_keeps_failing_ends_the_task() -> None:
    """An error of `open` other than a RetriableException ends the task, also at a retry."""
    sink = Sink()
    errors: list[Exception] = [ValueError("no table"), RetriableException("no database")]

    def fail() -> None:
        raise errors.pop()

    sink.task.on_open = fail
    sink.assign({P0: 0})
    with pytest.raises(ValueError, match="no table"):
        sink.deliver()
