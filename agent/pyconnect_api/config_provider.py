"""Sources of configuration values that are referenced as ``${provider:[path:]key}``.

Corresponds to Kafka's ``ConfigProvider`` and ``ConfigData`` (KIP-297, KIP-421). A provider may be
used from several threads at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigData:
    """The values of a provider.

    ``data`` maps key to value. ``ttl_ms`` is the time in milliseconds after which the values
    should be read again, None when they do not expire; with ``config.action.reload=restart`` the
    worker restarts the connector after it.
    """

    data: Mapping[str, str]
    ttl_ms: int | None = None


class ConfigProvider(ABC):
    """Resolves the variables that name the provider.

    Life cycle: constructed without arguments, `configure`, any number of `get`,
    `close`.
    """

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take the settings below ``config.providers.<name>.param.``, prefix removed."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the values found under ``path``.

        ``path`` is empty when the variable has none. ``keys`` None asks for everything under the
        path. A key that is not found is left out: its variable then stays in the text as it is.
        Raises ConfigException when the path cannot be read.
        """

    def version(self) -> str | None:
        """Return the version of the provider, or None when undefined."""
        return None

    def close(self) -> None:
        """Release all resources; no further calls follow."""
