"""MBeans of Java plugins as metrics."""

from pyconnect_agent.core.metric_values import MBEANS, Metric
from pyconnect_agent.process.exposition import prometheus_text
from pyconnect_agent.tasks.in_java.process import mbean_metrics
from tests.support.cases import cases

STREAMING = {"type": "connector-metrics", "context": "streaming", "server": "shop", "task": "0"}
LABELS = '{context="streaming",mbean_task="0",server="shop"}'


@cases(
    "value, line",
    (
        ["debezium.sql_server", STREAMING, "MilliSecondsBehindSource", {}, 17],
        f"debezium_sql_server_connector_metrics_MilliSecondsBehindSource{LABELS} 17.0",
    ),
    (
        ["debezium", {"type": "m"}, "RowsScanned", {"key": "a.b"}, 3],
        'debezium_m_RowsScanned{key="a.b"} 3.0',
    ),
    (["9x", {"__k": "v", "client-id": "c"}, "a-total", {}, 1], '_9x_v_a_total{client_id="c"} 1.0'),
)
def test_names_are_those_of_the_jmx_exporter(value: list[object], line: str) -> None:
    """Keys that a metric of a task has itself get a prefix."""
    (metric,) = mbean_metrics([value])
    assert line in prometheus_text([metric]).decode().splitlines()


def test_beans_of_several_tasks_are_one_family() -> None:
    """The worker adds connector and task."""
    metrics = [Metric(group=MBEANS, name="a_b", value=n, tags={"task": str(n)}) for n in (0, 1)]
    text = prometheus_text(metrics).decode()
    assert text.count("# TYPE a_b gauge") == 1
    assert 'a_b{task="1"} 1.0' in text
