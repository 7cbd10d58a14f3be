"""A config provider whose values expire: `${expiring:<file>:value}` is the text of a file."""

from collections.abc import Collection, Mapping
from pathlib import Path

from pyconnect_api import ConfigData, ConfigProvider

EXPIRING_PROVIDER = f"{__name__}.ExpiringProvider"


class ExpiringProvider(ConfigProvider):
    """Parameter `ttl.ms`: after which time its values are to be read again."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self._ttl_ms = int(configs["ttl.ms"])

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        return ConfigData(data={"value": Path(path).read_text()}, ttl_ms=self._ttl_ms)
