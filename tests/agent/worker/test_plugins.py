"""A worker's own properties and the plugins in them, found before the worker starts."""

import os
from pathlib import Path

import pytest

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION
from pyconnect_agent.worker.plugins import (
    check_converters,
    check_rest_extensions,
    find_plugins,
    resolve_properties,
)
from pyconnect_api.errors import ConfigException
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases
from tests.support.plugins import plugin_directories
from tests.support.plugins.java_jars import SOURCE_CONNECTOR, make_jar
from tests.support.plugins.plugin_directories import (
    EXPIRING_PROVIDER,
    VAULT_PROVIDER,
    make_provider_plugin,
)


def with_provider(class_name: str, **properties: str) -> dict[str, str]:
    """Return a worker's properties whose `ssl.key.password` is a reference to `secret`."""
    return {
        "config.providers": "p",
        "config.providers.p.class": class_name,
        "config.providers.p.param.ttl.ms": "1000",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }


def with_bare_directory(root: Path, discovery: str) -> dict[str, str]:
    """Return a worker's properties and a plugin directory with one module without entry points."""
    directory = root / "plugins" / "bare"
    directory.mkdir(parents=True)
    (directory / "bare_plugin.py").write_text(Path(plugin_directories.__file__).read_text())
    return {"plugin.path": str(root / "plugins"), "plugin.discovery": discovery}


@cases("name", VAULT_PROVIDER, "Vault", "VaultProvider")
def test_providers_of_directories_resolve_a_workers_properties(name: str, tmp_path: Path) -> None:
    """A provider is named by class or alias, and its code never runs in the worker's process."""
    imports = make_provider_plugin(tmp_path / "plugins")
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    properties = with_provider(
        name, plugin_path=str(tmp_path / "plugins"), ssl_key_password=f"${{p:{secret}:value}}"
    )
    resolved = resolve_properties(properties, find_plugins(properties))
    assert resolved == properties | {"ssl.key.password": "hidden"}
    assert str(os.getpid()) not in imports.read_text().split()


def test_a_provider_may_be_a_class_path_that_no_plugin_lists(tmp_path: Path) -> None:
    """Any importable class may be a provider, as any class of the class path for a Java worker."""
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    properties = with_provider(EXPIRING_PROVIDER, ssl_key_password=f"${{p:{secret}:value}}")
    resolved = resolve_properties(properties, find_plugins(properties))
    assert resolved["ssl.key.password"] == "hidden"


@cases(
    "class_name, message",
    ("no.Such", r"config\.providers\.p\.class: Class no\.Such could not be found"),
    ("JsonConverter", "JsonConverter could not be found"),
    ("tests.support.audits.sinks.FailingSink", "could not be found"),
    ("pyconnect_api.Struct", "Struct does not implement the ConfigProvider interface"),
    (EXPIRING_PROVIDER, "No such file or directory"),
)
def test_a_provider_that_cannot_be_used_stops_the_worker(class_name: str, message: str) -> None:
    """The error is one line with the reason."""
    properties = with_provider(class_name, ssl_key_password="${p:/no/such/file:value}")
    with pytest.raises(WorkerConfigError, match=message) as raised:
        resolve_properties(properties, find_plugins(properties))
    assert "\n" not in raised.value.message


def test_plugins_are_found_without_being_imported() -> None:
    """Without references no process starts, and an unknown default converter is an error."""
    properties = {"ssl.key.password": "${p:/secret:value}"}
    assert resolve_properties(properties, find_plugins(properties)) == properties
    catalog = find_plugins({})
    check_converters(catalog, distributed(key_converter="tests.support.no_such.Converter"))
    with pytest.raises(ConfigException, match=r"header\.converter: Class NoSuch could not be"):
        check_converters(catalog, distributed(header_converter="NoSuch"))


def test_rest_extensions_are_refused_but_for_apaches_users_and_passwords() -> None:
    """A REST extension may be the only access control, so unknown ones are refused."""
    name = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
    for known in ("", name, name.rpartition(".")[2]):
        check_rest_extensions(distributed(rest_extension_classes=known))
    for other in ("com.example.Auth", f"{name},com.example.Auth"):
        with pytest.raises(ConfigException, match=r"Class com\.example\.Auth could not be found"):
            check_rest_extensions(distributed(rest_extension_classes=other))


@cases("discovery, found", ("service_load", False), ("only_scan", True), ("HYBRID_WARN", True))
def test_discovery_may_search_modules(discovery: str, found: bool, tmp_path: Path) -> None:
    """Plugins without entry points are found only by a discovery mode that scans modules."""
    catalog = find_plugins(with_bare_directory(tmp_path, discovery))
    assert bool(catalog.find("bare_plugin.ExpiringProvider")) is found


def test_hybrid_fail_refuses_plugins_without_entry_points(tmp_path: Path) -> None:
    """The error has the class, and the worker does not start."""
    properties = with_bare_directory(tmp_path, "hybrid_fail")
    with pytest.raises(WorkerConfigError, match=r"bare_plugin\.ExpiringProvider"):
        find_plugins(properties)


def test_without_java_no_java_plugins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One error line has the reason, and Python plugins are still found."""
    make_jar(tmp_path / "plugins" / "a.jar")
    properties = {"plugin.path": str(tmp_path / "plugins"), "agent.java.home": str(tmp_path)}
    catalog = find_plugins(properties)
    assert catalog.find("FileStreamSource")
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage() == "Java plugins cannot be used"
    assert catalog.problems == (f"Java plugins cannot be used: {vars(record)['reason']}",)
    assert "agent.java.home does not name a Java that runs" in str(vars(record)["reason"])


def test_jars_of_another_kafka_are_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Failures of Java only affect Java plugins, and a difference of releases is a warning."""
    host = make_jar(tmp_path / "host.jar")
    monkeypatch.setattr("pyconnect_agent.java_processes.installation.built_host_jar", lambda: host)
    for name in ("java_processes.installation.java_cache", "worker.plugins.java_cache"):
        monkeypatch.setattr(f"pyconnect_agent.{name}", lambda: tmp_path / "cache")
    for name in ("connect-api", "connect-json", "connect-runtime", "connect-transforms"):
        make_jar(tmp_path / "kafka" / f"{name}-3.9.0.jar")
    make_jar(tmp_path / "kafka" / "kafka-clients-3.9.0.jar")
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"\n')
    make_jar(tmp_path / "plugins" / "a.jar", services={SOURCE_CONNECTOR: ["a.Source"]})
    properties = {
        "plugin.path": str(tmp_path / "plugins"),
        "agent.java.home": str(tmp_path / "java"),
        "agent.java.kafka.home": str(tmp_path / "kafka"),
    }
    assert find_plugins(properties).find("FileStreamSource")
    other, problem = (vars(each) for each in caplog.records if each.levelname == "WARNING")
    assert (other["jars"], other["worker"]) == ("3.9.0", CONNECT_VERSION)
    assert "a.jar could not be described" in problem["reason"]
    assert "exit code 1" in problem["reason"]
