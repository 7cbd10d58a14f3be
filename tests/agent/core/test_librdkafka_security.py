"""Logins and TLS of Java's client settings in librdkafka's words."""

from __future__ import annotations

import pytest

from pyconnect_agent.core.client_keys import ClientKind
from pyconnect_agent.core.librdkafka_config import translate
from pyconnect_api import ConfigException

ADMIN = ClientKind.ADMIN

PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="a" password="b c;\\"";'
)


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN},
            {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": 'b c;"'},
        ),
        (
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": "o.ScramLoginModule required username=u password='p w';",
            },
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p w"},
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
                "sasl.jaas.config": (
                    'o.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="r" '
                    'extension_cluster="c";'
                ),
            },
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "r",
                "sasl.oauthbearer.extensions": "cluster=c",
            },
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": (
                    'o.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
                ),
            },
            {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": "principal=alice",
            },
        ),
    ],
)
def test_logins_are_read_from_jaas_entries(
    java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    """Quotes and escapes are those of JAAS files."""
    built = translate(java | {"security.protocol": "SASL_PLAINTEXT"}, ADMIN)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka
    assert "sasl.jaas.config" not in built.properties


@pytest.mark.parametrize(
    "text", ["", "Module required", "Module maybe a=b;", "Module required a=;", 'M required a="b;']
)
def test_broken_jaas_entries_are_refused_without_showing_them(text: str) -> None:
    """The text says what is wrong, not what was written."""
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": text or ";",
    }
    with pytest.raises(ConfigException, match="hidden") as refused:
        translate(java, ADMIN)
    assert "Module maybe" not in str(refused.value)


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        (
            {"ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"},
            {"ssl.ca.location": "/ca"},
        ),
        ({"ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
        (
            {
                "ssl.keystore.key": "K",
                "ssl.keystore.certificate.chain": "C",
                "ssl.key.password": "p",
            },
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C", "ssl.key.password": "p"},
        ),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"},
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
    ],
)
def test_tls_settings_are_translated(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    """PEM and PKCS#12, as files or texts."""
    built = translate(java | {"security.protocol": "SSL"}, ADMIN)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_jks_files_are_refused_with_the_way_out(store: str) -> None:
    """librdkafka cannot read them; silence would end in an obscure handshake error."""
    with pytest.raises(ConfigException, match="keytool"):
        translate({"security.protocol": "SSL", f"ssl.{store}.location": "/s.jks"}, ADMIN)
