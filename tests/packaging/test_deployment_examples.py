"""The examples of a deployment: keys, metrics and paths in them exist."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import javaproperties
import kubernetes_validate
import pytest
import yaml

from pyconnect_agent.core.metric_values import DESCRIPTIONS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "deployment"
KUBERNETES = "1.37"
HOW_TO = (ROOT / "docs" / "how-to" / "deploy.md").read_text("utf-8")
METRIC = re.compile(r"\bkafka_connect_\w+")
METRICS = {
    f"kafka_connect_{group}_{name}".replace("-", "_")
    for group, names in DESCRIPTIONS.items()
    for name in names
}
PROVIDER_SETTING = re.compile(r"config\.providers\.\w+\.(class|param\..+)")


def test_keys_of_the_example_are_known() -> None:
    """Each key of the example is in the reference, which is generated from the definitions."""
    reference = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    known = set(re.findall(r"`([^`]+)`", reference))
    keys = javaproperties.loads((EXAMPLES / "worker.properties").read_text("utf-8"))
    unknown = {
        key
        for key in keys
        if key.removeprefix("producer.").removeprefix("consumer.") not in known
        and not PROVIDER_SETTING.fullmatch(key)
    }
    assert unknown == set()


def test_clients_of_connectors_have_the_workers_security() -> None:
    keys = javaproperties.loads((EXAMPLES / "worker.properties").read_text("utf-8"))
    security = {key: keys[key] for key in keys if key.startswith(("security.", "sasl."))}
    assert security
    for prefix in ("producer.", "consumer."):
        assert {key: keys.get(f"{prefix}{key}") for key in security} == security


@pytest.mark.parametrize("name", ["rules.yaml", "rules-test.yaml", "dashboard.json"])
def test_metrics_of_the_examples_exist(name: str) -> None:
    used = set(METRIC.findall((EXAMPLES / "monitoring" / name).read_text("utf-8")))
    assert used
    assert used - METRICS == set()


@pytest.mark.wire
def test_alert_rules_fire_when_they_should() -> None:
    subprocess.run(
        ["promtool", "test", "rules", "rules-test.yaml"],
        cwd=EXAMPLES / "monitoring",
        check=True,
        timeout=400,
    )


def test_a_dashboard_has_a_query_in_each_panel() -> None:
    dashboard = json.loads((EXAMPLES / "monitoring" / "dashboard.json").read_text("utf-8"))
    assert all(panel["targets"][0]["expr"] for panel in dashboard["panels"])


def test_manifests_have_the_fields_of_kubernetes() -> None:
    """A field that Kubernetes' schemas do not have fails at any depth."""
    manifests = documents("pyconnect.yaml")
    assert manifests
    for manifest in manifests:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    (workers,) = (each for each in manifests if each["kind"] == "StatefulSet")
    workers["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(workers, KUBERNETES, strict=True)


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((EXAMPLES / "kubernetes" / name).read_text("utf-8")))


def test_the_monitor_finds_the_port_of_the_metrics() -> None:
    """The monitor selects the service by labels and port; Prometheus may reach only that port."""
    monitor, policy = documents("monitor.yaml")
    kubernetes_validate.validate(policy, KUBERNETES, strict=True)
    (endpoint,) = monitor["spec"]["endpoints"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = (
        each
        for each in documents("pyconnect.yaml")
        if each["kind"] == "Service" and wanted <= each["metadata"]["labels"].items()
    )
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": ports[endpoint["port"]]}]


@pytest.mark.wire
def test_prometheus_accepts_its_part_of_the_configuration() -> None:
    subprocess.run(
        ["promtool", "check", "config", "prometheus.yaml"],
        cwd=EXAMPLES / "monitoring",
        check=True,
        timeout=400,
    )


def test_variables_of_the_example_are_allowed_and_given() -> None:
    """The allowlist, the systemd environment file and the manifest have each variable."""
    text = (EXAMPLES / "worker.properties").read_text("utf-8")
    used = set(re.findall(r"\$\{env:(\w+)\}", text))
    allowed = javaproperties.loads(text)["config.providers.env.param.allowlist.pattern"]
    assert used == set(allowed.split("|"))
    assert used <= set(javaproperties.loads((EXAMPLES / "systemd" / "1.env").read_text("utf-8")))
    (workers,) = (each for each in documents("pyconnect.yaml") if each["kind"] == "StatefulSet")
    (container,) = workers["spec"]["template"]["spec"]["containers"]
    assert used <= {variable["name"] for variable in container["env"]}


def test_an_image_is_built_of_files_that_exist() -> None:
    """Each source, extra and Java that the Containerfile names exists."""
    text = (EXAMPLES / "container" / "Containerfile").read_text("utf-8")
    sources = re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE)
    assert [name for line in sources for name in line.split() if not (ROOT / name).exists()] == []
    (extras,) = re.findall(r'--build-arg EXTRAS="([^"]+)"', text)
    names = ["build", "runtime", *extras.split()]
    assert [name for name in names if not (ROOT / "requirements" / f"{name}.txt").exists()] == []
    for java in {"none", *re.findall(r"JAVA=(\w+)", text)}:
        for stage in ("base", "build"):
            assert f" AS {stage}-{java}\n" in text


def test_pods_have_more_time_than_drain_and_stop_need() -> None:
    (workers,) = (each for each in documents("pyconnect.yaml") if each["kind"] == "StatefulSet")
    pod = workers["spec"]["template"]["spec"]
    command = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    drain_s = int(command[command.index("--timeout") + 1].removesuffix("s"))
    keys = javaproperties.loads((EXAMPLES / "worker.properties").read_text("utf-8"))
    stop_s = int(keys["task.shutdown.graceful.timeout.ms"]) / 1_000
    assert pod["terminationGracePeriodSeconds"] > drain_s + stop_s


def test_files_that_the_page_names_exist() -> None:
    named = re.findall(r"`(examples/deployment/[^`]+)`", HOW_TO)
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).exists()] == []
