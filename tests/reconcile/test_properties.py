"""One properties file for three clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.extract import check_extraction, json_path, needs_headers
from pyconnect_reconcile.key_stores import with_pem_stores
from pyconnect_reconcile.properties import (
    jaas_members,
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
    """Settings of Java's consumer, its algorithms and passwords of its stores are none of it."""
    java = {"ssl.truststore.password": "x", "ssl.protocol": "TLSv1.3", "ssl.keystore.type": "JKS"}
    assert librdkafka_settings({**PROPERTIES, **java}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.ca.location": "/ca.pem",
    }


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER"])
def test_mechanisms_without_a_password_are_refused(mechanism: str) -> None:
    """At once: librdkafka would wait for a token that nobody brings."""
    with pytest.raises(ReconcileError, match=f"sasl.mechanism={mechanism} is not supported"):
        librdkafka_settings({"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism})
    assert "sasl.mechanism" in librdkafka_settings({"sasl.mechanism": mechanism})


def test_key_stores_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    """PEM holds key and chain; everything else is PKCS#12 by now, with its password."""
    pem, other = tmp_path / "key.pem", tmp_path / "key.p12"
    pem.write_text("-----BEGIN PRIVATE KEY-----\n")
    other.write_bytes(b"\x30\x82")
    location = {"ssl.key.password": "k", "ssl.keystore.location": str(pem)}
    assert librdkafka_settings(location) == {
        "ssl.key.password": "k",
        "ssl.certificate.location": str(pem),
        "ssl.key.location": str(pem),
    }
    assert spark_options(location)["kafka.ssl.keystore.type"] == "PEM"
    store = {"ssl.keystore.location": str(other), "ssl.keystore.password": "s"}
    assert librdkafka_settings(store) == store
    assert "kafka.ssl.keystore.type" not in spark_options(store)


def test_inline_certificates_become_files_of_the_caller_s(tmp_path: Path) -> None:
    """Readable by nobody else; what was PEM in a file stays where it is (KIP-651)."""
    given = {
        "ssl.truststore.certificates": "ca",
        "ssl.keystore.certificate.chain": "chain",
        "ssl.keystore.key": "key",
    }
    converted = with_pem_stores(given, tmp_path)
    trusted, known = tmp_path / "trusted.pem", tmp_path / "key.pem"
    assert converted == {
        "ssl.truststore.location": str(trusted),
        "ssl.keystore.location": str(known),
    }
    assert (trusted.read_text(), known.read_text()) == ("ca", "chain\nkey\n")
    assert {path.stat().st_mode & 0o777 for path in (trusted, known)} == {0o600}
    pem = tmp_path / "ca.pem"
    pem.write_text("-----BEGIN CERTIFICATE-----\n")
    assert with_pem_stores({"ssl.truststore.location": str(pem)}, tmp_path) == {
        "ssl.truststore.location": str(pem)
    }


def test_a_key_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Before any client is made."""
    with pytest.raises(ReconcileError, match="none cannot be read: No such file"):
        with_pem_stores({"ssl.keystore.location": str(tmp_path / "none")}, tmp_path)


@pytest.mark.parametrize(
    ("line", "password"),
    [
        ('password="a\\\\b\\"c" username="u";', 'a\\b"c'),
        ("username='u' password='it is \"mine\"';", 'it is "mine"'),
    ],
)
def test_jaas_texts_are_unescaped_as_java_does(line: str, password: str) -> None:
    """A backslash takes the next character as it is, in either kind of quotes."""
    assert jaas_members(f"x required {line}") == {"username": "u", "password": password}


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
