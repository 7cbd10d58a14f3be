"""`org.apache.kafka.connect.transforms.predicates.HasHeaderKey`.

Layer: builtin.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.predicates.base import ShippedPredicate
from pyconnect_api import ConfigDef, ConfigType, ConnectRecord, Importance, NonEmptyString

NAME = "name"


class HasHeaderKey(ShippedPredicate):
    """True for records with at least one header of the configured key."""

    CONFIG_DEF = ConfigDef().define(
        NAME,
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.MEDIUM,
        documentation="Key of the header.",
    )

    _name: str

    def _configured(self, options: Options) -> None:
        self._name = options.text(NAME)

    def test(self, record: ConnectRecord) -> bool:
        return record.has_headers and record.headers.last_with_name(self._name) is not None
