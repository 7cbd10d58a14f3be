"""One properties file for three clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.extract import check_extraction, json_path, needs_headers
from pyconnect_reconcile.properties import (
    kafka_python_settings,
    librdkafka_settings,
    read_properties,
    spark_options,
)

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
    """Spark refuses a group id and an isolation level that it did not choose."""
    options = spark_options(PROPERTIES)
    assert options["kafka.sasl.jaas.config"] == JAAS
    assert "kafka.group.id" not in options


def test_librdkafka_gets_its_own_names() -> None:
    """Settings of Java's consumer are no concern of its."""
    assert librdkafka_settings(PROPERTIES) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.ca.location": "/ca.pem",
    }
    with pytest.raises(ReconcileError, match=r"ssl\.keystore\.type=JKS is not supported"):
        librdkafka_settings({"ssl.keystore.type": "JKS"})


def test_kafka_python_gets_arguments() -> None:
    """Only for the names of producers with open transactions."""
    assert kafka_python_settings(PROPERTIES) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": 'a"b',
        "ssl_cafile": "/ca.pem",
    }
    assert kafka_python_settings({}) == {"security_protocol": "PLAINTEXT"}


def test_a_properties_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Nothing is read without one."""
    assert read_properties(None) == {}
    with pytest.raises(ReconcileError, match="cannot be read"):
        read_properties(str(tmp_path / "none"))


@pytest.mark.parametrize("text", ["", "header", "header:", "json:", "key:x", "column:x", "regex"])
def test_what_is_no_extraction_is_refused(text: str) -> None:
    """The message lists the ways to write one."""
    with pytest.raises(ReconcileError, match="does not say where a value is"):
        check_extraction(text)


def test_extractions_know_what_they_need() -> None:
    """Headers are read only when something is in them."""
    for text in ("header:x", "json:$.a", "key", "key.json:a", "text", "regex:a:(b)", "timestamp"):
        check_extraction(text)
        assert needs_headers(text, None) == text.startswith("header:")
    assert (json_path("a.b"), json_path("$.a")) == ("$.a.b", "$.a")
