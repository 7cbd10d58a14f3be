"""Findings of `pyconnect agent readiness` in a Java cluster."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_cli.agents.readiness import PROVIDERS, PYTHON_CONNECTORS, PYTHON_PARTS, readiness
from pyconnect_cli.rest.answers import Plugin
from pyconnect_cli.rest.model import ConnectorInfo
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.plugins.java_jars import SOURCE_CONNECTOR, class_file, make_jar

DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
AVRO = "io.confluent.connect.avro.AvroConverter"
PLUGINS = [
    Plugin(class_name=DEBEZIUM, type="source"),
    Plugin(class_name=FILE, type="source"),
    Plugin(class_name=UNWRAP, type="transformation"),
    Plugin(class_name=HOIST, type="transformation"),
    Plugin(class_name=AVRO, type="converter"),
]
WORKER = {"plugin.path": "/plugins", "bootstrap.servers": "b:1"}
ASSIGNORS = "org.apache.kafka.clients.consumer.RangeAssignor, StickyAssignor"
POLICIES = "org.apache.kafka.connect.connector.policy"


def connector(name: str, **config: str) -> ConnectorInfo:
    whole = {key.replace("__", "."): value for key, value in config.items()}
    return ConnectorInfo(name=name, config=whole, tasks=(), type="source")


def found(
    *connectors: ConnectorInfo, worker: Mapping[str, str] | None = WORKER
) -> dict[str, tuple[str, str]]:
    """Return status and detail by name; all names of a test differ."""
    return {
        each.name: (each.status, each.detail) for each in readiness(PLUGINS, connectors, worker)
    }


def test_a_cluster_of_jars_and_policies_by_class_is_ready() -> None:
    """Plugins in jars and policies of Kafka's own classes are ready."""
    findings = found(connector("c", connector__class=DEBEZIUM, transforms="u"))
    expected = {DEBEZIUM: "ok", FILE: "ok", UNWRAP: "ok", AVRO: "ok", "c": "ok"}
    assert {name: status for name, (status, _) in findings.items()} == expected
    assert "runs in Java" in findings[DEBEZIUM][1]
    assert "runs in Python" in findings[FILE][1]
    assert "with a Java connector it runs in Java" in findings[AVRO][1]
    key, suffix = "connector.client.config.override.policy", "ConnectorClientConfigOverridePolicy"
    for policy in ("Principal", f"{POLICIES}.Principal{suffix}"):
        assert key not in found(worker=WORKER | {key: policy})


@cases(
    "config, status, text",
    ({"connector__class": "com.example.Gone"}, "warning", "has no com.example.Gone"),
    (
        {"connector__class": "FileStreamSource", "transforms": "h, u"}
        | {"transforms.h.type": HOIST, "transforms.u.type": UNWRAP},
        "warning",
        "transforms.u.type is io.debezium",
    ),
    ({"password": "${vault:secret/x:key}"}, "failed", "com.example.Vault is a Java class"),
    ({"password": "${file:/x:key}"}, "ok", "as it is"),
    (
        {"producer.override.interceptor.classes": "com.example.Audit"},
        "warning",
        "producer.override.interceptor.classes has no effect",
    ),
    (
        {"consumer.override.security.protocol": "SASL_SSL"}
        | {"consumer.override.sasl.mechanism": "NTLM"},
        "failed",
        "NTLM",
    ),
    (
        {"producer.override.security.protocol": "SASL_PLAINTEXT"}
        | {"producer.override.sasl.mechanism": "GSSAPI"},
        "warning",
        "built with Kerberos",
    ),
    (
        {"consumer.override.partition.assignment.strategy": "RangeAssignor, com.example.Own"},
        "warning",
        "consumer.override.partition.assignment.strategy has no effect",
    ),
    ({"consumer.override.partition.assignment.strategy": ASSIGNORS}, "ok", "as it is"),
)
def test_unsupported_parts_are_named(config: dict[str, str], status: str, text: str) -> None:
    """Classes, config providers and client settings that agents do not support are named."""
    worker = WORKER | {
        "config.providers": "file, vault",
        "config.providers.file.class": min(PROVIDERS, key=len),
        "config.providers.vault.class": "com.example.Vault",
    }
    one = connector("c", **({"connector__class": DEBEZIUM} | config))
    assert found(one, worker=worker)["c"][0] == status
    assert text in found(one, worker=worker)["c"][1]


@cases(
    "key, value, status",
    ("rest.extension.classes", "com.example.Auth", "failed"),
    ("rest.extension.classes", "BasicAuthSecurityRestExtension", "warning"),
    ("connector.client.config.override.policy", "com.example.Policy", "failed"),
    ("metric.reporters", "com.example.Reporter", "warning"),
    ("plugin.path", "", "warning"),
)
def test_worker_properties_are_examined(key: str, value: str, status: str) -> None:
    """Worker properties that an agent refuses are failed, those without effect are warnings."""
    assert found(worker=WORKER | {key: value})[key][0] == status


def test_gaps_of_the_workers_file_are_named() -> None:
    """A provider without a class fails; without the worker's file providers are unknown."""
    status, detail = found(worker=WORKER | {"config.providers": "vault"})[
        "config.providers.vault.class"
    ]
    assert (status, detail.partition(":")[0]) == ("failed", "missing")
    findings = found(connector("c", connector__class=DEBEZIUM, x="${vault:a}"), worker=None)
    assert findings["properties"][0] == "warning"
    assert "--worker-config" in findings["c"][1]


def test_the_commands_python_plugins_are_those_of_the_agent() -> None:
    """The command's list of Python plugins equals the agent's plugins."""
    from pyconnect_agent.plugins.loading import builtin_plugins

    java_names = [p for p in builtin_plugins() if p.class_name.startswith(("org.", "io."))]
    assert {p.class_name for p in java_names if p.kind.is_connector} == PYTHON_CONNECTORS
    parts = {p.class_name for p in java_names if not p.kind.is_connector} - PROVIDERS
    assert [name for name in parts if not PYTHON_PARTS.fullmatch(name)] == []
    assert {p.class_name for p in java_names if p.kind.value == "configprovider"} == PROVIDERS


@pytest.mark.wire
def test_the_command_fails_when_something_would_not_run(run: Run, tmp_path: Path) -> None:
    """A part that cannot run is exit 1, and a file that cannot be read is exit 2."""
    assert run("agent", "readiness").code == 0
    file = tmp_path / "worker.properties"
    file.write_text("rest.extension.classes=com.example.Auth\nplugin.path=/plugins\n")
    outcome = run("agent", "readiness", "--worker-config", str(file), "-o", "json", code=1)
    document = json.loads(outcome.out)
    expected = ["rest.extension.classes"]
    assert [each["name"] for each in document if each["status"] == "failed"] == expected
    assert run("agent", "readiness", "--worker-config", str(tmp_path / "none")).code == 2


@pytest.mark.wire
def test_the_jars_of_this_machine_are_read(run: Run, tmp_path: Path) -> None:
    """The jars on this machine are read to find the release of Kafka that each location needs."""
    sanitizer = "org.apache.kafka.common.utils.Sanitizer"
    old = class_file("a.Old", SOURCE_CONNECTOR, names=(sanitizer,))
    make_jar(tmp_path / "plugins" / "old" / "old.jar", {"a.Old": old})
    file = tmp_path / "worker.properties"
    file.write_text(f"plugin.path={tmp_path / 'plugins'}\n")
    outcome = run("agent", "readiness", "--worker-config", str(file), "-o", "json", code=0)
    [location] = [each for each in json.loads(outcome.out) if each["about"] == "location"]
    assert (location["name"], location["status"]) == ("old", "ok")
    assert location["detail"].startswith("Kafka 3.9 to 4.3: ")
