"""The order in which Java's HashMap has its entries.

Layer: core. Java: HashMap with the default capacity and load factor, filled by `put`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CAPACITY = 16
_MASK = 0xFFFFFFFF


def in_hash_order(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries as a HashMap has them that got them in their present order."""
    if len(values) < 2:
        return dict(values)
    capacity = _CAPACITY
    while len(values) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        code = 0
        units = name.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            code = (31 * code + (high << 8 | low)) & _MASK
        return (code ^ code >> 16) & (capacity - 1)

    return {name: values[name] for name in sorted(values, key=bucket)}
