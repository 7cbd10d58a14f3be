"""The common base of test connectors: a version, no settings of their own, no work at stop."""

from collections.abc import Mapping, Sequence

from pyconnect_api import ConfigDef, SinkConnector, SinkTask, SourceConnector, SourceTask

VERSION = "1"


class _Plain:
    def version(self) -> str:
        return VERSION

    def stop(self) -> None:
        """Nothing to stop."""


class _PlainConnector(_Plain):
    """Each task has the connector's own config."""

    def start(self, props: Mapping[str, str]) -> None:
        self.props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props] * max_tasks

    def config(self) -> ConfigDef:
        return ConfigDef()


class PlainSource(_PlainConnector, SourceConnector):
    """A source connector without `task_class`."""


class PlainSink(_PlainConnector, SinkConnector):
    """A sink connector without `task_class`."""


class PlainSourceTask(_Plain, SourceTask):
    """A source task without `start` and `poll`."""


class PlainSinkTask(_Plain, SinkTask):
    """A sink task without `start` and `put`."""
