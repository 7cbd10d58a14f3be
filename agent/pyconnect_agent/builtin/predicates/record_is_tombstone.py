"""`org.apache.kafka.connect.transforms.predicates.RecordIsTombstone`.

Layer: builtin.
"""

from __future__ import annotations

from pyconnect_agent.builtin.predicates.base import ShippedPredicate
from pyconnect_api import ConfigDef, ConnectRecord


class RecordIsTombstone(ShippedPredicate):
    """True for records without a value, whatever their schema."""

    CONFIG_DEF = ConfigDef()

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None
