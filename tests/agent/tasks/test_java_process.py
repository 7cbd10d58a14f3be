"""Classes, settings and MBeans of the process of a Java task."""

from typing import Any

from pyconnect_agent.core.metric_values import MBEANS, Metric
from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.process.exposition import prometheus_text
from pyconnect_agent.tasks.in_java.process import conversions, mbean_metrics, plugin_metrics
from pyconnect_agent.tasks.worker_view import WorkerView
from tests.support.agents.worker_properties import PROPERTIES
from tests.support.cases import cases

JSON = "org.apache.kafka.connect.json.JsonConverter"
HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
CONFIG = {
    "name": "c",
    "connector.class": "a.Source",
    "key.converter": JSON,
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
    "transforms": "t",
    "transforms.t.type": "a.Change",
    "transforms.t.field": "f",
    "transforms.t.predicate": "p",
    "transforms.t.negate": "true",
    "predicates": "p",
    "predicates.p.type": "a.IsThere",
    "predicates.p.pattern": "x",
}


def java(name: str, kind: PluginKind, version: str) -> PluginDesc:
    return PluginDesc(class_name=name, python_path="", kind=kind, version=version, is_java=True)


def job(**config: str) -> dict[str, Any]:
    plugins = (
        java(JSON, PluginKind.CONVERTER, "4.3.1"),
        java(HEADERS, PluginKind.HEADER_CONVERTER, "4.3.1"),
        java("a.Source", PluginKind.SOURCE, "1"),
        java("a.Change", PluginKind.TRANSFORMATION, "1.2"),
    )
    return conversions(WorkerView(PROPERTIES, plugins), {**CONFIG, **config}, ())[0]


def test_settings_of_plugins() -> None:
    """A plugin gets only its own settings, so a transformation has none of its predicate."""
    made = job()
    expected = {"schemas.enable": "false", "converter.type": "value"}
    assert made["converters"]["value"]["config"] == expected
    (stage,) = made["transforms"]
    assert stage["config"] == {"type": "a.Change", "field": "f"}
    assert stage["negate"] is True
    assert stage["predicate"]["config"] == {"type": "a.IsThere", "pattern": "x"}


def test_records_are_shown_only_where_they_are_logged() -> None:
    """A Java process sends a failed record's text only for the log: it may hold secrets."""
    include = {"errors.log.include.messages": "true"}
    assert job(**include)["showsRecords"] is False
    assert job(**include, **{"errors.log.enable": "true"})["showsRecords"] is True


def test_metrics_name_the_plugins_and_their_versions() -> None:
    """The version of a class that is in no list is `undefined`."""
    facts = {"isSource": True, "connectorVersion": "1", "class": "a.Task", "version": "2"}
    metrics = plugin_metrics(JavaClass("a.Source"), facts, job())
    found = {metric.name: metric.value for metric in metrics}
    assert (found["value-converter-class"], found["value-converter-version"]) == (JSON, "4.3.1")
    assert (found["transform-class"], found["transform-version"]) == ("a.Change", "1.2")
    assert (found["predicate-class"], found["predicate-version"]) == ("a.IsThere", "undefined")
    tags = [dict(metric.tags) for metric in metrics if metric.name.endswith("version")]
    assert {"transform": "t"} in tags
    assert {"predicate": "p"} in tags


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
    """A key that a task's metrics have as a label gets a prefix."""
    (metric,) = mbean_metrics([value])
    assert line in prometheus_text([metric]).decode().splitlines()


def test_beans_of_several_tasks_are_one_family() -> None:
    """Metrics of equal names are one family, distinguished by their labels."""
    metrics = [Metric(group=MBEANS, name="a_b", value=n, tags={"task": str(n)}) for n in (0, 1)]
    text = prometheus_text(metrics).decode()
    assert text.count("# TYPE a_b gauge") == 1
    assert 'a_b{task="1"} 1.0' in text
