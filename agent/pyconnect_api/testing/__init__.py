"""Runs connectors and tasks as a worker does, without a worker and without Kafka.

Layer: api; for the tests of connector authors. A harness makes a worker's calls in its order and
checks the plugin's side of the contract: if a worker would refuse a value, the harness raises
AssertionError. No threads, no clock: a wait of the task returns at once and is recorded.

    def test_numbers_continue_after_a_restart():
        source = SourceHarness(NumberTask, {"topic": "numbers"})
        source.start()
        source.run(3)
        source.commit()
        source.restart()
        assert source.poll()[0].value == 3

    def test_a_buffer_is_finished_before_its_partition_goes():
        sink = SinkHarness(FileTask, {"file": path})
        sink.start()
        sink.send("a")
        sink.deliver()
        sink.revoke()
        assert sink.committed == {TopicPartition("topic", 0): 1}
"""

from pyconnect_api.testing.contexts import (
    FakeConnectorContext,
    FakeSinkTaskContext,
    FakeSourceTaskContext,
    FakeTransactionContext,
    ManualStop,
    MemoryOffsets,
    RecordingReporter,
)
from pyconnect_api.testing.harnesses import ConnectorHarness, SinkHarness, SourceHarness

__all__ = [
    "ConnectorHarness",
    "FakeConnectorContext",
    "FakeSinkTaskContext",
    "FakeSourceTaskContext",
    "FakeTransactionContext",
    "ManualStop",
    "MemoryOffsets",
    "RecordingReporter",
    "SinkHarness",
    "SourceHarness",
]
