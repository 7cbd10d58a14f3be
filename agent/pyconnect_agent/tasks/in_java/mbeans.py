"""The MBeans of a Java task's plugins as metrics, such as Debezium's.

Layer: tasks. Java's own way to them is a port for each process. Names are those that Prometheus'
JMX exporter gives without rules: the domain, the value of the name's first key, the attribute; the
other keys are labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyconnect_agent.core.metrics.catalog import MBEANS
from pyconnect_agent.core.metrics.values import Metric

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]+")
_RESERVED = frozenset({"connector", "task"})
"""Labels of all metrics of a task."""


def mbean_metrics(values: Sequence[Sequence[Any]]) -> tuple[Metric, ...]:
    """`values`: see `MBeans.java`. The metrics lack connector and task."""
    return tuple(_metric(*value) for value in values)


def _metric(
    domain: str, keys: Mapping[str, str], attribute: str, labels: Mapping[str, str], number: float
) -> Metric:
    (_, kind), *others = keys.items()
    return Metric(
        group=MBEANS,
        name=_name(f"{domain}_{kind}_{attribute}"),
        value=number,
        tags={_label(key): value for key, value in (*others, *labels.items())},
    )


def _name(text: str) -> str:
    name = _NOT_IN_NAMES.sub("_", text)
    return f"_{name}" if name[0].isdigit() else name


def _label(key: str) -> str:
    # Prometheus reserves two underscores at the beginning.
    name = re.sub("^__+", "_", _name(key))
    return f"mbean_{name}" if name in _RESERVED else name
