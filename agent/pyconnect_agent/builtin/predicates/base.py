"""The class of the shipped predicates.

Layer: builtin.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Shipped
from pyconnect_api import ConnectRecord, Predicate


class ShippedPredicate(Shipped, Predicate[ConnectRecord]):
    """A predicate with the options of its `CONFIG_DEF`."""
