"""What the shipped predicates share: configuration.

Layer: builtin.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_api import ConfigDef, ConnectRecord, Predicate


class ShippedPredicate(Predicate[ConnectRecord]):
    """Parses its options by the definition in `CONFIG_DEF`."""

    CONFIG_DEF: ConfigDef

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the options; ConfigException for those the definition refuses."""
        self._configured(Options.parsed(self.CONFIG_DEF, configs))

    def _configured(self, options: Options) -> None:
        """Take the parsed options."""

    def config(self) -> ConfigDef:
        return self.CONFIG_DEF

    def version(self) -> str:
        return CONNECT_VERSION
