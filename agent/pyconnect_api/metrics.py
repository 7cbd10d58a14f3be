"""Metrics of one task, exposed together with the worker's metrics.

Kafka: ``PluginMetrics`` (KIP-877), with numbers in place of sensors. Reached as
``context.metrics``. A counter or gauge is changed by one thread at a time; the worker reads it from
another.
"""

import re
from collections.abc import Mapping
from typing import TypeVar

from pyconnect_api.errors import ConnectException

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TAG = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_RESERVED = frozenset({"connector", "task"})


class Counter:
    """A number that starts at 0 and only grows while the task runs."""

    def __init__(self) -> None:
        self.value: float = 0

    def increment(self, amount: float = 1) -> None:
        """Add an amount, which is not negative."""
        if amount < 0:
            raise ValueError(f"A counter cannot grow by {amount}")
        self.value += amount


class Gauge:
    """A number that the task sets."""

    def __init__(self) -> None:
        self.value: float = 0

    def set(self, value: float) -> None:
        """Replace the number."""
        self.value = value


Kind = TypeVar("Kind", Counter, Gauge)


class PluginMetrics:
    """The metrics of a task; the same name and tags return the same object."""

    def __init__(self) -> None:
        self._metrics: dict[tuple[str, tuple[tuple[str, str], ...]], Counter | Gauge] = {}

    def counter(self, name: str, tags: Mapping[str, str] | None = None) -> Counter:
        """Return the counter ``<name>-total``.

        ``name`` is lower-case words with dashes. ``tags`` become labels beside ``connector`` and
        ``task``. Raises ConnectException for names that are not valid, or taken by a gauge.
        """
        return self._metric(Counter, f"{name}-total", tags or {})

    def gauge(self, name: str, tags: Mapping[str, str] | None = None) -> Gauge:
        """Return the gauge of this name; as for `counter`."""
        return self._metric(Gauge, name, tags or {})

    def values(self) -> list[tuple[str, Mapping[str, str], float]]:
        """Return name, tags and number of each metric."""
        return [(name, dict(tags), each.value) for (name, tags), each in [*self._metrics.items()]]

    def _metric(self, kind: type[Kind], name: str, tags: Mapping[str, str]) -> Kind:
        wrong = [tag for tag in tags if not _TAG.fullmatch(tag) or tag in _RESERVED]
        if wrong or not _NAME.fullmatch(name):
            raise ConnectException(f"{wrong[0] if wrong else name} is not a valid name in metrics")
        metric = self._metrics.setdefault((name, tuple(sorted(tags.items()))), kind())
        if not isinstance(metric, kind):
            raise ConnectException(f"The metric {name} is a {type(metric).__name__.lower()}")
        return metric
