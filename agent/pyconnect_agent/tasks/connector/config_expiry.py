"""Asks for a restart of the connector when values of config providers have expired.

Layer: tasks. Kafka: WorkerConfigTransformer.scheduleReload. The connector's process asks,
because its worker is the one that can restart it; the restart reads the values again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.config.variables import ResolvedConfig
from pyconnect_agent.process import long_lived

LOG = logging.getLogger(__name__)


class ConfigExpiry:
    """`expired` is called on a thread of its own. Used by the connector's thread."""

    def __init__(self, expired: Callable[[], None]) -> None:
        self._expired = expired
        self._timers: dict[str, long_lived.TimerThread] = {}

    def watch(self, resolution: ResolvedConfig) -> None:
        """Replace the restarts scheduled for the paths of a connector's config.

        Nothing is scheduled with `config.action.reload=none`.
        """
        if not resolution.ttls_ms or not _restarts(resolution.values):
            return
        for path, ttl_ms in resolution.ttls_ms.items():
            LOG.info("connector restarts when its config expires", extra={"ttl_ms": ttl_ms})
            before = self._timers.get(path)
            if before is not None:
                before.cancel()
            timer = long_lived.TimerThread("config-expiry", ttl_ms / 1000, self._expire)
            self._timers[path] = timer
            timer.start()

    def _expire(self) -> None:
        # Without a worker process the request has no receiver, and this process ends soon.
        with contextlib.suppress(OSError):
            self._expired()


def _restarts(config: Mapping[str, str | None]) -> bool:
    return ConnectorSettings.parse(config).restart_on_reload
