"""Answers the offset readers of Java connectors and tasks.

Layer: tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_api import OffsetStorageReader


def read_offsets(
    reader: OffsetStorageReader, asked: Mapping[str, Any]
) -> list[Mapping[str, object] | None]:
    """Return the offset of each partition in the question, in its order.

    None also stands for an offset that cannot be decoded: the reader leaves it out.
    """
    partitions = asked["partitions"]
    found = {id(partition): offset for partition, offset in reader.offsets(partitions)}
    return [found.get(id(partition)) for partition in partitions]
