"""Connectors: they check a configuration and split the work into tasks.

Corresponds to Kafka Connect's ``Connector``, ``SourceConnector`` (KIP-618, KIP-875),
``SinkConnector`` and their contexts. Each connector has a process; the life-cycle calls of an
instance are made one after the other. ``validate``, ``alter_offsets``, ``exactly_once_support`` and
``can_define_transaction_boundaries`` may be called on an instance that was never initialized.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar, TypeAlias

from pyconnect_api.configdef import Config, ConfigDef
from pyconnect_api.task import (
    OffsetStorageReader,
    SinkTask,
    SourceOffset,
    SourcePartition,
    SourceTask,
    Task,
    TopicPartition,
    Versioned,
)
from pyconnect_api.typed_config import config_def

TaskConfig: TypeAlias = Mapping[str, str]
"""The settings of one task."""


class ExactlyOnceSupport(Enum):
    """Whether a source connector delivers exactly once with a given configuration."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorTransactionBoundaries(Enum):
    """Whether the tasks of a source connector can decide where transactions end."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorContext(ABC):
    """The worker's services for a connector."""

    @abstractmethod
    def request_task_reconfiguration(self) -> None:
        """Ask the worker to call ``task_configs`` again, now or soon.

        Tasks are restarted only if the new configurations differ. Raises ConnectException after
        the connector was shut down.
        """

    @abstractmethod
    def raise_error(self, error: Exception) -> None:
        """Report an error after which the connector cannot go on; its state becomes FAILED.

        The first failure counts. Raises ConnectException after the connector was shut down.
        """


class SourceConnectorContext(ConnectorContext):
    """The context of a source connector."""

    @property
    @abstractmethod
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The reader of this connector's committed source offsets."""


class SinkConnectorContext(ConnectorContext):
    """The context of a sink connector; it has nothing beyond `ConnectorContext`."""


class Connector(Versioned, ABC):
    """The common part of source and sink connectors; derive from one of those two.

    Life cycle: constructed without arguments, `initialize`, then `start` and
    `stop`. A connector that is resumed after a pause or stop gets `start` again on
    the same instance, without another `initialize`.

    A connector that only configures its tasks needs no more than two class attributes:
    ``task_type`` and ``config_class``.
    """

    context: ConnectorContext

    task_type: ClassVar[type[Task] | None] = None
    """The class that `task_class` returns."""

    config_class: ClassVar[type | None] = None
    """The dataclass of the settings that `config` defines (see `setting`)."""

    props: Mapping[str, str]
    """The configuration of the last `start`."""

    def initialize(self, context: ConnectorContext) -> None:
        """Keep the context; called once, before `start`."""
        self.context = context

    def start(self, props: Mapping[str, str]) -> None:
        """Start monitoring with the given configuration; an exception makes the connector FAILED.

        ``props`` are the texts of the configuration, with references to config providers resolved.
        The default keeps them as `props`.
        """
        self.props = props

    def reconfigure(self, props: Mapping[str, str]) -> None:
        """Take a changed configuration; the default stops and starts the connector."""
        self.stop()
        self.start(props)

    def task_class(self) -> type[Task]:
        """Return the class of this connector's tasks; by default `task_type`."""
        if self.task_type is None:
            raise NotImplementedError(f"{type(self).__qualname__} has no task_type")
        return self.task_type

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[TaskConfig]:
        """Return one configuration for each task to run, at most ``max_tasks``.

        Keys and values are texts. An empty sequence runs no task. After an exception the worker
        asks again, with waits of 0.25 s that double up to 60 s.
        """

    def stop(self) -> None:
        """Stop monitoring; tasks are stopped by the worker."""

    def config(self) -> ConfigDef:
        """Return the definition of this connector's settings; by default that of `config_class`."""
        if self.config_class is None:
            raise NotImplementedError(f"{type(self).__qualname__} has no config_class")
        return config_def(self.config_class)

    def validate(self, connector_configs: Mapping[str, str | None]) -> Config:
        """Check a configuration against `config`; override for rules about several settings.

        Problems are error messages of the returned values; nothing is raised for them.
        """
        return Config(config_values=self.config().validate(connector_configs))


class SourceConnector(Connector):
    """A connector that reads another system into Kafka."""

    def task_class(self) -> type[SourceTask]:
        """Return the class of this connector's tasks; by default `task_type`."""
        found = super().task_class()
        assert issubclass(found, SourceTask)
        return found

    def task_configs(self, max_tasks: int) -> Sequence[TaskConfig]:  # noqa: ARG002  for overrides
        """Return one configuration for each task to run, at most ``max_tasks``.

        By default one task gets the connector's: only a connector can split its own source.
        Keys and values are texts. An empty sequence runs no task. After an exception the worker
        asks again, with waits of 0.25 s that double up to 60 s.
        """
        return [self.props]

    def exactly_once_support(
        self,
        connector_configs: Mapping[str, str | None],  # noqa: ARG002  for overrides
    ) -> ExactlyOnceSupport | None:
        """Return whether this configuration allows exactly-once delivery.

        None (the default) means unknown; a connector with ``exactly.once.support=required`` is
        then refused.
        """
        return None

    def can_define_transaction_boundaries(
        self,
        connector_configs: Mapping[str, str | None],  # noqa: ARG002  for overrides
    ) -> ConnectorTransactionBoundaries:
        """Return whether ``transaction.boundary=connector`` may be used."""
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],  # noqa: ARG002  for overrides
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],  # noqa: ARG002  for overrides
    ) -> bool:
        """Prepare for a change of stored offsets through the REST API, or refuse it.

        ``offsets`` holds ``(partition, offset)`` pairs, because partitions are not hashable; each
        pair is made when it is read, because there may be very many. Offset None deletes the offset
        of the partition. Integers are 64-bit, as after reading them from the topic. May be called
        again with the same arguments. Returns True when the connector has checked the offsets;
        with False (the default) the worker answers that they were not checked. Raises
        ConnectException to refuse, NotImplementedError when offsets of this connector cannot be
        changed. Runs on an instance that is never started.
        """
        return False


class SinkConnector(Connector):
    """A connector that writes Kafka topics to another system."""

    TOPICS_CONFIG = "topics"
    TOPICS_REGEX_CONFIG = "topics.regex"

    def task_class(self) -> type[SinkTask]:
        """Return the class of this connector's tasks; by default `task_type`."""
        found = super().task_class()
        assert issubclass(found, SinkTask)
        return found

    def task_configs(self, max_tasks: int) -> Sequence[TaskConfig]:
        """Return the connector's configuration for each task: the worker assigns partitions."""
        return [self.props] * max_tasks

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],  # noqa: ARG002  for overrides
        offsets: Mapping[TopicPartition, int | None],  # noqa: ARG002  for overrides
    ) -> bool:
        """Prepare for a change of consumer offsets through the REST API, or refuse it.

        Offset None deletes the offset of the partition. Return and errors are as for
        `SourceConnector.alter_offsets`.
        """
        return False
