"""Records that a sink task in a Java process has consumed."""

import gc
import weakref

from pyconnect_agent.tasks.in_java.sink_task import JavaSinkRecords
from pyconnect_agent.tasks.sink.pipeline import MessageRun
from tests.support.fakes.fake_clients import FakeMessage


class Message(FakeMessage):
    """One that can be referred to weakly."""


def test_records_end_with_their_last_use() -> None:
    """Else all that was consumed stays in memory until cycles are looked for."""
    message = Message("t", 0, 1, b"v")
    end = weakref.ref(message)
    run = MessageRun.of([message])
    assert run is not None
    records = JavaSinkRecords(run)
    assert records[0].kafka_offset == 1
    gc.disable()
    try:
        del message, run, records
        assert end() is None
    finally:
        gc.enable()
