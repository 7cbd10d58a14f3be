"""A connector under test.

See the package for how it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_api.connector import Connector, SourceConnector
from pyconnect_api.storage import SourceOffset, SourcePartition
from pyconnect_api.task import SinkTask, SourceTask, TopicPartition
from pyconnect_api.testing.contexts import FakeConnectorContext, MemoryOffsets, RecordingReporter
from pyconnect_api.testing.sink import DEFAULT_PARTITION, SinkHarness
from pyconnect_api.testing.source import SourceHarness


class ConnectorHarness:
    """Validates a config, starts a connector with it, makes its tasks."""

    def __init__(
        self,
        connector_class: type[Connector],
        props: Mapping[str, str],
        *,
        offsets: Sequence[tuple[SourcePartition, SourceOffset | None]] = (),
    ) -> None:
        self.props = dict(props)
        self.offsets = MemoryOffsets(offsets)
        self.connector = connector_class()
        self.context = FakeConnectorContext(self.offsets)
        self.connector.initialize(self.context)

    def errors(self) -> dict[str, list[str]]:
        """Return what validation says is wrong, by setting; empty when nothing is."""
        config = self.connector.validate(self.props)
        return {
            value.name: list(value.error_messages)
            for value in config.config_values
            if value.error_messages
        }

    def start(self) -> Connector:
        """Start the connector; AssertionError when its config is not valid."""
        wrong = self.errors()
        assert not wrong, f"The config is not valid: {wrong}"
        self.connector.start(self.props)
        return self.connector

    def task_configs(self, max_tasks: int = 1) -> list[dict[str, str]]:
        """Return the configs of the tasks; AssertionError when they are too many or no text."""
        configs = [dict(config) for config in self.connector.task_configs(max_tasks)]
        assert len(configs) <= max_tasks, f"{len(configs)} task configs for tasks.max={max_tasks}"
        for config in configs:
            for name, value in config.items():
                assert isinstance(name, str), f"The name {name!r} in a task config is no text"
                assert isinstance(value, str), f"The value of {name} in a task config is no text"
        return configs

    def source(self, number: int = 0, max_tasks: int = 1) -> SourceHarness:
        """Return a task of a source connector, not started; offsets are those given here."""
        assert isinstance(self.connector, SourceConnector)
        task_class = self.connector.task_class()
        assert issubclass(task_class, SourceTask)
        config = self.task_configs(max_tasks)[number]
        return SourceHarness(task_class, config, offsets=self.offsets.all())

    def sink(
        self,
        number: int = 0,
        max_tasks: int = 1,
        *,
        partitions: Sequence[TopicPartition] = (DEFAULT_PARTITION,),
        reporter: RecordingReporter | None = None,
    ) -> SinkHarness:
        """Return a task of a sink connector, not started; without `reporter` it has none."""
        task_class = self.connector.task_class()
        assert issubclass(task_class, SinkTask)
        config = self.task_configs(max_tasks)[number]
        return SinkHarness(task_class, config, partitions=partitions, reporter=reporter)

    def stop(self) -> None:
        """Stop the connector."""
        self.connector.stop()
