"""`org.apache.kafka.connect.transforms.Filter`: drops every record it is applied to.

Layer: builtin. Of use with a predicate only.
"""

from __future__ import annotations

from pyconnect_agent.builtin.transforms.base import ShippedTransformation
from pyconnect_api import ConfigDef, ConnectRecord


class Filter(ShippedTransformation):
    """Has no options."""

    CONFIG_DEF = ConfigDef()

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return None
