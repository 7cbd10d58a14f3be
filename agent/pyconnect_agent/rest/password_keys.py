"""The secrets of connectors: by the names of keys, and of keys that classes define as passwords.

Layer: rest. A child process describes each class once. Until it has, keys are secrets by name only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from pyconnect_agent.core.config.effective import literal_secrets
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.herder.port import Herder
from pyconnect_api.errors import ConnectException

LOG = logging.getLogger(__name__)

DESCRIBED_WITHIN_S = 10.0


class PasswordKeys:
    """One for all requests."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._secrets_of: Mapping[str, ConnectorConfig] = {}
        self._secrets: Mapping[str, str] = {}

    async def secrets(self, herder: Herder) -> Mapping[str, str]:
        """Return `literal_secrets` of all connectors; they are kept until a config changes.

        They are not kept while the password keys of a class are not known.
        """
        async with self._one_at_a_time:
            configs = herder.connector_configs()
            # Configs that have not changed are the same objects: this compares pointers.
            if configs == self._secrets_of:
                return self._secrets
            secrets: dict[str, str] = {}
            for config in configs.values():
                secrets |= literal_secrets(config, await self.of(herder, config))
            classes = {config.get("connector.class") or "" for config in configs.values()}
            if classes - {""} <= self._known.keys():
                self._secrets_of, self._secrets = configs, secrets
            return secrets

    async def of(self, herder: Herder, config: ConnectorConfig) -> frozenset[str]:
        """Return the keys that the connector's class defines as passwords."""
        connector_class = config.get("connector.class")
        if not connector_class:
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
                return frozenset()
            self._known[connector_class] = frozenset(
                str(key["name"]) for key in keys if key["type"] == "PASSWORD"
            )
        return self._known[connector_class]
