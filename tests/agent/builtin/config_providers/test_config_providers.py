"""The config providers that ship with the worker, by themselves and in a worker."""

from pathlib import Path

import pytest

from pyconnect_agent.builtin.config_providers import (
    DirectoryConfigProvider,
    EnvVarConfigProvider,
    FileConfigProvider,
)
from pyconnect_agent.plugins.resolve_worker import VariableResolver
from pyconnect_agent.plugins.scan import installed_catalog
from pyconnect_api import ConfigException
from tests.support.cases import cases


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A directory with a properties file, beside a directory that is not allowed."""
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "db.properties").write_text("user=alice\npass = s3 cret\n")
    (tmp_path / "outside.properties").write_text("user=mallory\n")
    (tmp_path / "allowed" / "link.properties").symlink_to(tmp_path / "outside.properties")
    return tmp_path / "allowed"


def test_the_file_provider_reads_properties(secrets: Path) -> None:
    """The provider returns all or the requested properties; errors name an unreadable file."""
    provider = FileConfigProvider()
    provider.configure({})
    path = str(secrets / "db.properties")
    assert provider.get(path).data == {"user": "alice", "pass": "s3 cret"}
    assert provider.get(path, ["user", "missing"]).data == {"user": "alice"}
    assert provider.get("").data == {}
    with pytest.raises(ConfigException, match="Could not read properties from file /no/such"):
        FileConfigProvider().get("/no/such", ["k"])


@cases("path", "../outside.properties", "link.properties")
def test_paths_outside_the_allowed_ones_give_nothing(
    secrets: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither `..` nor a symbolic link leads out of the allowed paths; the log names the key."""
    provider = FileConfigProvider()
    provider.configure({"allowed.paths": str(secrets)})
    assert provider.get(str(secrets / path)).data == {}
    assert "add it to config.providers.<name>.param.allowed.paths" in caplog.text
    assert provider.get(str(secrets / "db.properties")).data


@cases("setting, message", ("relative", "is not absolute"), ("/no/such/path", "does not exist"))
def test_allowed_paths_must_be_absolute_and_exist(setting: str, message: str) -> None:
    """A mistyped path is refused, because it would otherwise open or close everything."""
    with pytest.raises(ConfigException, match=message):
        DirectoryConfigProvider().configure({"allowed.paths": f"/tmp, {setting}"})


def test_the_directory_provider_reads_whole_files(secrets: Path) -> None:
    """The provider returns whole files, untrimmed; a file that is not text is an error."""
    (secrets / "token").write_text(" abc\n")
    (secrets / "nested").mkdir()
    provider = DirectoryConfigProvider()
    provider.configure({"allowed.paths": str(secrets)})
    expected = {"token": " abc\n"}
    assert provider.get(str(secrets), ["token", "nested", "link.properties"]).data == expected
    assert set(provider.get(str(secrets)).data) == {"token", "db.properties"}
    assert provider.get(str(secrets.parent)).data == {}
    (secrets / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigException, match="binary for property binary"):
        DirectoryConfigProvider().get(str(secrets), ["binary"])


def test_the_environment_provider_takes_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is refused with Kafka's text."""
    monkeypatch.setenv("PYCONNECT_TEST_A", "1")
    monkeypatch.setenv("PYCONNECT_TEST_B", "2")
    provider = EnvVarConfigProvider()
    provider.configure({"allowlist.pattern": "PYCONNECT_TEST_A"})
    expected = {"PYCONNECT_TEST_A": "1"}
    assert provider.get("", ["PYCONNECT_TEST_A", "PYCONNECT_TEST_B"]).data == expected
    assert provider.get("").data == {"PYCONNECT_TEST_A": "1"}
    with pytest.raises(ConfigException) as refused:
        provider.get("p", ["PYCONNECT_TEST_A"])
    expected = "Path is not supported for EnvVarConfigProvider, invalid value 'p'"
    assert str(refused.value) == expected
    with pytest.raises(ConfigException, match=r"allowlist\.pattern"):
        provider.configure({"allowlist.pattern": "("})


def test_names_match_the_allowlist_with_javas_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The allowlist's pattern matches whole names, in Java's syntax."""
    for name in ("PYCONNECT_TEST_A", "PYCONNECT_TEST_1"):
        monkeypatch.setenv(name, "x")
    provider = EnvVarConfigProvider()
    provider.configure({"allowlist.pattern": r"PYCONNECT_TEST_\p{Upper}"})
    assert provider.get("").data == {"PYCONNECT_TEST_A": "x"}


def test_providers_of_a_worker_resolve_its_connectors(secrets: Path) -> None:
    """Providers have Java class names or aliases, and serve the worker's own properties too."""
    properties = {
        "config.providers": "file, env",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
        "config.providers.file.param.allowed.paths": str(secrets),
        "config.providers.env.class": "EnvVar",
        "ssl.key.password": f"${{file:{secrets}/db.properties:pass}}",
        "plugin.path": "${env:HOME}",
        "agent.java.home": "${env:HOME}",
    }
    with VariableResolver(properties, installed_catalog()) as resolver:
        resolved = resolver.resolve({"u": f"${{file:{secrets}/db.properties:user}}", "n": None})
        worker = resolver.resolve_worker_properties(properties)
    assert resolved.values == {"u": "alice", "n": None}
    assert worker["ssl.key.password"] == "s3 cret"
    assert worker["plugin.path"] == worker["agent.java.home"] == "${env:HOME}"


@cases(
    "properties, message",
    ({}, r'Missing required configuration "config\.providers\.f\.class"'),
    ({"config.providers.f.class": "no.Such"}, r"Class no\.Such could not be found"),
    ({"config.providers.f.class": "JsonConverter"}, "could not be found"),
)
def test_a_provider_that_fails_stops_the_worker(properties: dict[str, str], message: str) -> None:
    """The worker stops with an error that names the key."""
    with pytest.raises(ConfigException, match=message):
        VariableResolver({"config.providers": "f"} | properties, installed_catalog())
