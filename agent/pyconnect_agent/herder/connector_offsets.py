"""The offsets of connectors, read from their stores (KIP-875).

Kafka: `Worker.connectorOffsets`. A source's offsets are in its own topic, if it has one, and in the
worker's offset store; a sink's offsets are those of its consumer group. Any worker can report them,
not only the leader.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.core.errors import InternalError, KafkaError, RequestTimedOutError
from pyconnect_agent.core.internal_topics import key_text
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.offsets.connector_offsets import (
    CommittedOffset,
    ConnectorOffset,
    each_source_offset,
    sink_offsets,
)
from pyconnect_agent.core.plugin_catalog import Catalog, PluginKind, PluginNotFoundError
from pyconnect_agent.stores.offset import OffsetStore

LOG = logging.getLogger(__name__)


class ConnectorOffsetReader:
    """A reader of connectors' offsets; on the event loop."""

    def __init__(
        self,
        store: OffsetStore,
        children: ChildProcesses,
        catalog: Catalog,
        may_have_own_topic: Callable[[ConnectorConfig], bool],
    ) -> None:
        """`may_have_own_topic`: whether a source with this raw config may name another topic."""
        self._may_have_own_topic = may_have_own_topic
        self._store = store
        self._children = children
        self._catalog = catalog

    async def read(
        self, connector: str, config: ConnectorConfig, timeout_ms: int
    ) -> Iterable[ConnectorOffset]:
        """Return an iterator over all partitions that have an offset. Raises InternalError."""
        kind: PluginKind | None = None  # None if only a child process may find the class
        with suppress(PluginNotFoundError):
            name, version = config.get("connector.class"), config.get("connector.plugin.version")
            kind = self._catalog.connector(name or "", version_range=version).kind
        if kind is not PluginKind.SOURCE:
            committed = await self._committed(connector, config, kind, timeout_ms)
            if committed is not None:
                return sink_offsets(committed)
        return await self._read_source(connector, config, timeout_ms)

    async def _committed(
        self, connector: str, config: ConnectorConfig, kind: PluginKind | None, timeout_ms: int
    ) -> tuple[CommittedOffset, ...] | None:
        """Return the committed offsets of a sink's group, None for a source."""
        try:
            return await self._children.jobs.consumer_offsets(connector, config, timeout_ms)
        except (InternalError, RequestTimedOutError) as error:
            if kind is None:
                raise
            LOG.error(
                "consumer group offsets could not be read",
                extra={"connector": connector, "reason": error.message},
            )
            raise InternalError(
                f"Failed to retrieve consumer group offsets for sink connector {connector}"
            ) from error

    async def _read_source(
        self, connector: str, config: ConnectorConfig, timeout_ms: int
    ) -> Iterable[ConnectorOffset]:
        try:
            own: Mapping[bytes, bytes] = {}
            if self._may_have_own_topic(config):
                own = await self._children.jobs.own_offsets(connector, config, timeout_ms)
            # Read to the end first. Apache's worker does not, and may miss offsets that were just
            # written.
            await asyncio.to_thread(self._store.read, (), timeout_ms)
            stored = await asyncio.to_thread(self._store.connector_entries, connector)
            return each_source_offset(
                (own, stored),
                lambda key: LOG.error("stored offset cannot be read", extra={"key": key_text(key)}),
            )
        except (KafkaError, InternalError, RequestTimedOutError) as error:
            LOG.error(
                "source offsets could not be read",
                extra={"connector": connector, "reason": error.message},
            )
            raise InternalError(
                f"Failed to retrieve offsets for source connector {connector}"
            ) from error
