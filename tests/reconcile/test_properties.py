"""One properties file for Spark and for snapshots."""

from pathlib import Path

import pytest

from pyconnect_clients.security import PasswordLogin
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.properties import (
    client_properties,
    client_security,
    read_properties,
    spark_options,
)
from pyconnect_reconcile.values.extract import check_extraction, json_path, needs_headers

JAAS = 'org.example.PlainLoginModule required username="me" password="a\\"b";'
PROPERTIES = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": JAAS,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/ca.pem",
    "group.id": "mine",
    "max.poll.records": "5",
}


def test_spark_gets_java_s_names_and_none_that_it_sets_itself() -> None:
    """Options that Spark's Kafka source sets itself are left out, because it refuses them."""
    options = spark_options(PROPERTIES)
    assert options["kafka.sasl.jaas.config"] == JAAS
    assert "kafka.group.id" not in options


def test_store_types_are_recognised_by_content(tmp_path: Path) -> None:
    """PEM stores get their type by content, because Java expects JKS or PKCS#12 by default."""
    pem, other = tmp_path / "key", tmp_path / "key.p12"
    pem.write_text("-----BEGIN PRIVATE KEY-----\n")
    other.write_bytes(b"\x30\x82")
    assert spark_options({"ssl.keystore.location": str(pem)})["kafka.ssl.keystore.type"] == "PEM"
    assert "kafka.ssl.keystore.type" not in spark_options({"ssl.keystore.location": str(other)})
    text = {"ssl.truststore.certificates": "ca", "ssl.keystore.key": "k"}
    told = {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.keystore.type": "PEM"}
    assert told.items() <= spark_options(text).items()
    assert spark_options({**text, "ssl.keystore.type": "X"})["kafka.ssl.keystore.type"] == "X"


def test_snapshots_understand_sparks_properties(tmp_path: Path) -> None:
    """Snapshots read the same file with references resolved, and raise the errors of a run."""
    (tmp_path / "secret").write_text(JAAS)
    file = tmp_path / "client.properties"
    lines = {
        **PROPERTIES,
        "config.providers": "dir",
        "config.providers.dir.class": "org.apache.kafka.common.config.provider."
        "DirectoryConfigProvider",
        "sasl.jaas.config": f"${{dir:{tmp_path}:secret}}",
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    properties = client_properties(str(file))
    security = client_security(properties)
    assert security.sasl is not None
    assert security.sasl.login == PasswordLogin(username="me", password='a"b')
    assert spark_options(properties)["kafka.sasl.jaas.config"] == JAAS
    with pytest.raises(ReconcileError, match=r"sasl\.mechanism: X is not supported") as refused:
        client_security({**properties, "sasl.mechanism": "X"})
    assert "SCRAM-SHA-512" in (refused.value.hint or "")
    file.write_text("sasl.username=me\n")
    with pytest.raises(ReconcileError, match="librdkafka's name"):
        client_properties(str(file))


def test_a_properties_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A properties file that does not exist is an error that names it."""
    assert read_properties(None) == {}
    with pytest.raises(ReconcileError, match="cannot be read"):
        read_properties(str(tmp_path / "none"))


@pytest.mark.parametrize("text", ["", "header", "header:", "json:", "key:x", "column:x", "regex"])
def test_an_invalid_extraction_is_refused(text: str) -> None:
    """The error of an invalid extraction lists the valid forms."""
    with pytest.raises(ReconcileError, match="is not the place of a value"):
        check_extraction(text)


def test_extractions_know_whether_they_need_headers() -> None:
    """Only extractions from headers need headers."""
    for text in ("header:x", "json:$.a", "key", "key.json:a", "text", "regex:a:(b)", "timestamp"):
        check_extraction(text)
        assert needs_headers(text, None) == text.startswith("header:")
    assert (json_path("a.b"), json_path("$.a")) == ("$.a.b", "$.a")
