"""The secrets of connectors: by the names of keys, and of keys that classes define as passwords.

Layer: rest. A child process describes each class once. Until it has, keys are secrets by name only.
A class that cannot be described, as one that only a Java worker has, is asked about twice a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from pyconnect_agent.core.config.effective import literal_secrets
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.herder.port import Herder
from pyconnect_api.errors import ConnectException

LOG = logging.getLogger(__name__)

DESCRIBED_WITHIN_S = 10.0
ASKED_AGAIN_AFTER_S = 30.0


class PasswordKeys:
    """One for all requests."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._known: dict[str, frozenset[str]] = {}
        self._unknown_until_s: dict[str, float] = {}
        self._one_at_a_time = asyncio.Lock()
        self._secrets: Mapping[str, str] = {}
        self._secrets_of: Mapping[str, ConnectorConfig] = {}
        self._secrets_without: set[str] = set()

    async def secrets(self, herder: Herder) -> Mapping[str, str]:
        """Return `literal_secrets` of all connectors.

        They are kept until a config changes, or a class that was not described may be.
        """
        async with self._one_at_a_time:
            configs = herder.connector_configs()
            # Configs that have not changed are the same objects: this compares pointers.
            if configs == self._secrets_of and all(map(self._is_unknown, self._secrets_without)):
                return self._secrets
            secrets: dict[str, str] = {}
            without: set[str] = set()
            for config in configs.values():
                secrets |= literal_secrets(config, await self.of(herder, config))
                connector_class = config.get("connector.class")
                if connector_class and connector_class not in self._known:
                    without.add(connector_class)
            self._secrets, self._secrets_of, self._secrets_without = secrets, configs, without
            return secrets

    async def of(self, herder: Herder, config: ConnectorConfig) -> frozenset[str]:
        """Return the keys that the connector's class defines as passwords."""
        connector_class = config.get("connector.class")
        if not connector_class or self._is_unknown(connector_class):
            return frozenset()
        if connector_class not in self._known:
            try:
                async with asyncio.timeout(DESCRIBED_WITHIN_S):
                    keys = await herder.plugin_config(connector_class, None)
            except (AgentError, ConnectException, TimeoutError) as error:
                LOG.warning(
                    "keys of a connector are not known; its secrets are hidden by their names only",
                    extra={"class": connector_class, "reason": str(error) or "no answer in time"},
                )
                now_s = self._now_s()
                # Those of deleted connectors go with their time.
                waiting = {c: at for c, at in self._unknown_until_s.items() if now_s < at}
                waiting[connector_class] = now_s + ASKED_AGAIN_AFTER_S
                self._unknown_until_s = waiting
                return frozenset()
            self._unknown_until_s.pop(connector_class, None)
            self._known[connector_class] = frozenset(
                str(key["name"]) for key in keys if key["type"] == "PASSWORD"
            )
        return self._known[connector_class]

    def _is_unknown(self, connector_class: str) -> bool:
        """Return whether a class could not be described and is not asked about yet."""
        return self._now_s() < self._unknown_until_s.get(connector_class, 0.0)
