"""Parts of tasks over fakes, one iteration at a time."""

from collections.abc import Iterator

import pytest

from tests.agent.tasks.sink.dead_letters import Queue
from tests.agent.tasks.sink.sink_loop import Sink, assigned_sink
from tests.agent.tasks.source.source_loop import Source


@pytest.fixture
def source() -> Source:
    """The at-least-once loop of a source task."""
    return Source()


@pytest.fixture
def queue() -> Iterator[Queue]:
    """A dead letter queue of a task that tolerates failures."""
    made = Queue(context_headers=True)
    yield made
    made.queue.close(0)


@pytest.fixture
def strict_queue() -> Iterator[Queue]:
    """A dead letter queue of a task that does not tolerate failures."""
    made = Queue(tolerate_all=False)
    yield made
    made.queue.close(0)


@pytest.fixture
def sink() -> Sink:
    """The loop of a sink task that has P0 and P1."""
    return assigned_sink()
