"""Metrics in the text format of Prometheus.

`kafka_connect_<group>_<name>`, dashes as underscores, tags as labels. Metrics of MBeans have names
of their own. Texts such as states become a label of a metric whose value is 1. Import this module
only where it is used: the client library takes a tenth of a second.
"""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Metric as Family
from prometheus_client.registry import Collector

from pyconnect_agent.core.metric_values import DESCRIPTIONS, MBEANS, Metric

PREFIX = "kafka_connect"


def prometheus_text(metrics: Sequence[Metric]) -> bytes:
    """Return the metrics in version 0.0.4 of the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(metrics))
    return generate_latest(registry)


class _Given(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Family]:
        families: dict[tuple[str, str], Family] = {}
        for metric in self._metrics:
            family = families.get((metric.group, metric.name))
            if family is None:
                name = _name(metric)
                is_counter = name.endswith("_total") and metric.group != MBEANS
                kind = "counter" if is_counter else "gauge"
                meaning = DESCRIPTIONS.get(metric.group, {}).get(metric.name, "")
                family = families[metric.group, metric.name] = Family(
                    name.removesuffix("_total") if kind == "counter" else name, meaning, kind
                )
            labels, value = dict(metric.tags), metric.value
            if isinstance(value, str):
                # The label has the name of the metric's last word: status, type, class, version, …
                labels[metric.name.rpartition("-")[2]], value = value, 1.0
            family.add_sample(_name(metric), labels, value)
        return families.values()


def _name(metric: Metric) -> str:
    if metric.group == MBEANS:
        return metric.name
    return f"{PREFIX}_{metric.group}_{metric.name}".replace("-", "_")
