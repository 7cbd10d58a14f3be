"""What a running task repeats is in its status until it succeeds."""

from __future__ import annotations

from pyconnect_api import RetriableException
from tests.support.sink_loop import P0, Sink, message
from tests.support.source_loop import Source


def test_a_poll_that_is_repeated_is_shown_once_for_each_error() -> None:
    """The status says why nothing comes; a success takes the text away."""
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
    """Until the same batch was taken."""
    sink = Sink()
    sink.assign({P0: 0})
    sink.task.put_errors = [RetriableException("no database")]
    sink.deliver(message(0))
    sink.deliver()
    shown, over = sink.retries
    assert shown is not None
    assert "no database" in shown
    assert over is None
