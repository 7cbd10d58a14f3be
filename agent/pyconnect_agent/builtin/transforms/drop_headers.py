"""`org.apache.kafka.connect.transforms.DropHeaders`: removes headers by their keys.

Layer: builtin.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import ShippedTransformation, with_headers
from pyconnect_agent.builtin.transforms.definitions import NON_EMPTY_UNIQUE_LIST
from pyconnect_api import ConfigDef, ConfigType, ConnectRecord, Importance

HEADERS = "headers"


class DropHeaders(ShippedTransformation):
    """Removes all headers that have one of the configured keys."""

    CONFIG_DEF = ConfigDef().define(
        HEADERS,
        ConfigType.LIST,
        validator=NON_EMPTY_UNIQUE_LIST,
        importance=Importance.HIGH,
        documentation="Keys of the headers to remove.",
    )

    _keys: frozenset[str]

    def _configured(self, options: Options) -> None:
        self._keys = frozenset(options.texts(HEADERS))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if not record.has_headers:
            return record
        keys = self._keys
        return with_headers(record, [item for item in record.headers if item.key not in keys])
