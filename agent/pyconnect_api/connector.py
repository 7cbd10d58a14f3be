"""Connectors: they check a configuration and split the work into tasks.

Layer: api. Corresponds to Kafka Connect's ``Connector``, ``SourceConnector`` (KIP-618, KIP-875),
``SinkConnector`` and their contexts. One process per connector; all life-cycle calls of an
instance are made one after the other. ``validate``, ``alter_offsets``, ``exactly_once_support``
and ``can_define_transaction_boundaries`` may be called on an instance that was never initialized.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from pyconnect_api.configdef import Config

if TYPE_CHECKING:
    from pyconnect_api.configdef import ConfigDef
    from pyconnect_api.storage import OffsetStorageReader, SourceOffset, SourcePartition
    from pyconnect_api.task import SinkTask, SourceTask, Task, TopicPartition

TaskConfig: TypeAlias = Mapping[str, str]
"""The settings one task is started with."""


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
        """Report an error the connector cannot recover from; its state becomes FAILED.

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


class Connector(ABC):
    """The common part of source and sink connectors; derive from one of those two.

    Life cycle: constructed without arguments, `initialize`, then `start` and
    `stop`. A connector that is resumed after a pause or stop gets `start` again on
    the same instance, without another `initialize`.
    """

    context: ConnectorContext

    def initialize(self, context: ConnectorContext) -> None:
        """Keep the context; called once, before `start`."""
        self.context = context

    @abstractmethod
    def start(self, props: Mapping[str, str]) -> None:
        """Start monitoring with the given configuration; an exception makes it FAILED.

        ``props`` are the texts of the configuration, with references to config providers resolved.
        """

    def reconfigure(self, props: Mapping[str, str]) -> None:
        """Take a changed configuration; the default stops and starts the connector."""
        self.stop()
        self.start(props)

    @abstractmethod
    def task_class(self) -> type[Task]:
        """Return the class of this connector's tasks."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[TaskConfig]:
        """Return one configuration for each task to run, at most ``max_tasks``.

        Keys and values are texts. An empty sequence runs no task. After an exception the worker
        asks again, with waits of 0.25 s that double up to 60 s.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop monitoring; tasks are stopped by the worker."""

    @abstractmethod
    def config(self) -> ConfigDef:
        """Return the definition of this connector's own settings, never None."""

    def validate(self, connector_configs: Mapping[str, str | None]) -> Config:
        """Check a configuration against `config`; override for rules across settings.

        Reports problems as error messages of the returned values, not by raising.
        """
        return Config(config_values=self.config().validate(connector_configs))

    @abstractmethod
    def version(self) -> str:
        """Return the version of this connector, as the REST API shows it."""


class SourceConnector(Connector):
    """A connector that reads another system into Kafka."""

    @abstractmethod
    def task_class(self) -> type[SourceTask]:
        """Return the class of this connector's tasks."""

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
        """Prepare for or refuse a change of stored offsets made through the REST API.

        ``offsets`` holds ``(partition, offset)`` pairs, because partitions are not hashable; each
        is made when it is asked for, as there may be very many. Offset None means the partition
        is to be forgotten. Integers are 64-bit, as they would be
        after reading them from the topic. May be called again with the same arguments. Returns
        True when the connector has checked the offsets, False (the default) when the worker
        should say that it could not. Raises ConnectException to refuse, NotImplementedError when
        its offsets cannot be changed from outside. Runs on an instance that is never started.
        """
        return False


class SinkConnector(Connector):
    """A connector that writes Kafka topics to another system."""

    TOPICS_CONFIG = "topics"
    TOPICS_REGEX_CONFIG = "topics.regex"

    @abstractmethod
    def task_class(self) -> type[SinkTask]:
        """Return the class of this connector's tasks."""

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],  # noqa: ARG002  for overrides
        offsets: Mapping[TopicPartition, int | None],  # noqa: ARG002  for overrides
    ) -> bool:
        """Prepare for or refuse a change of consumer offsets made through the REST API.

        Offset None means the partition's offset is to be deleted. Return and errors are as for
        `SourceConnector.alter_offsets`.
        """
        return False
