"""A metric with its value, as it leaves the worker.

Layer: core. Kafka: MetricName without the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

MetricValue: TypeAlias = float | str

GroupValues: TypeAlias = Mapping[str, Mapping[str, MetricValue]]
"""Value by metric name by group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`tags`: `connector` and `task` where the group has them. A text is a state or a name."""

    group: str
    name: str
    value: MetricValue
    tags: Mapping[str, str] = field(default_factory=dict)


def tagged(values: GroupValues, tags: Mapping[str, str]) -> tuple[Metric, ...]:
    """Return the metrics of one connector or task."""
    return tuple(
        Metric(group=group, name=name, value=value, tags=tags)
        for group, members in values.items()
        for name, value in members.items()
    )
