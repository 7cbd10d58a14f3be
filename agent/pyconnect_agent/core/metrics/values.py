"""A metric with its value, as it leaves the worker.

Layer: core. Kafka: MetricName without the description.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

MetricValue: TypeAlias = int | float | str

GroupValues: TypeAlias = Mapping[str, Mapping[str, MetricValue]]
"""Value by metric name by group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`tags`: `connector` and `task` where the group has them. A text is a state or a name."""

    group: str
    name: str
    value: MetricValue
    tags: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as a document; a number that is not finite is null."""
        value: MetricValue | None = self.value
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        return {"group": self.group, "name": self.name, "tags": dict(self.tags), "value": value}


def tagged(values: GroupValues, tags: Mapping[str, str]) -> tuple[Metric, ...]:
    """Return the metrics of one connector or task."""
    return tuple(
        Metric(group=group, name=name, value=value, tags=tags)
        for group, members in values.items()
        for name, value in members.items()
    )
