"""Files of client properties, and their references."""

from pathlib import Path

import pytest

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.properties_file import read_client_properties, with_references
from tests.support.cases import cases

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "config.providers": "file,dir,env",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
}
KEY = "ssl.key.password"


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same secret in a properties file, as a file, and in the environment."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "all.properties").write_text("key=hunter2\n")
    (tmp_path / "secrets" / "key").write_text("hunter2")
    monkeypatch.setenv("PYCONNECT_TEST_SECRET", "hunter2")
    return tmp_path / "secrets"


@cases(
    "reference", "${file:%s/all.properties:key}", "${dir:%s:key}", "${env:PYCONNECT_TEST_SECRET}"
)
def test_references_are_read_as_kafka_does(secrets: Path, tmp_path: Path, reference: str) -> None:
    """References are read anywhere in a value, by the providers that the file names."""
    text = reference.replace("%s", str(secrets))
    lines = {**PROVIDERS, KEY: f"<{text}>", "other": text}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    read = read_client_properties(str(file))
    assert read[KEY] == "<hunter2>"
    # The key is not of the client's security, and its provider may be elsewhere.
    assert read["other"] == text


def test_files_and_providers_are_named_or_absent(tmp_path: Path) -> None:
    """A missing file has the system's reason, and without providers no text is a reference."""
    properties = {KEY: "${file:/nowhere:key}"}
    assert with_references(properties) == properties
    other = {**PROVIDERS, KEY: "${vault:/nowhere:key}"}
    assert with_references(other) == other
    with pytest.raises(ClientPropertyError, match="none: cannot be read: No such file"):
        read_client_properties(str(tmp_path / "none"))


@cases(
    "change, reference, text",
    ({}, "${file:/nowhere:key}", "/nowhere"),
    ({}, "${file:%s/all.properties:no}", "no is not"),
    ({}, "${dir:%s:no}", "no is not"),
    ({}, "${env:PYCONNECT_TEST_NOTHING}", "NOTHING is not"),
    ({"config.providers.file.class": "com.Vault"}, "${file:%s/all.properties:key}", "Vault"),
    ({"config.providers.file.class": ""}, "${file:%s/all.properties:key}", "nothing"),
    (
        {"config.providers.dir.param.allowed.paths": "/proc"},
        "${dir:%s:key}",
        "is not allowed; add it to config.providers.dir.param.allowed.paths",
    ),
    (
        {"config.providers.file.param.allowed.paths": "/proc"},
        "${file:%s/all.properties:key}",
        "is not allowed; add it to config.providers.file.param.allowed.paths",
    ),
    (
        {"config.providers.env.param.allowlist.pattern": "OTHER_.*"},
        "${env:PYCONNECT_TEST_SECRET}",
        "SECRET is not",
    ),
)
def test_a_reference_to_nothing_is_refused(
    secrets: Path, change: dict[str, str], reference: str, text: str
) -> None:
    """A client would use the text of the reference as its login."""
    properties = {**PROVIDERS, **change, KEY: reference.replace("%s", str(secrets))}
    with pytest.raises(ClientPropertyError, match=text) as refused:
        with_references(properties)
    assert "hunter2" not in str(refused.value)
