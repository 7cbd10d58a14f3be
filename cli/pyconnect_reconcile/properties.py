"""Kafka client properties in Java's names, translated for the other clients. Pure but for files.

Spark hands the properties to Java's consumer as they are. Snapshots ask librdkafka and
kafka-python, which call a few of them otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pyconnect_reconcile.errors import ReconcileError

_JAAS_MEMBER = re.compile(r"\b(username|password)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_RENAMED = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAVA_ONLY = frozenset({"ssl.truststore.type", "ssl.keystore.type"})
# What Spark's source sets itself and refuses to be given.
_SPARK_OWN = frozenset(
    {"bootstrap.servers", "group.id", "auto.offset.reset", "key.deserializer", "enable.auto.commit",
     "value.deserializer", "interceptor.classes", "isolation.level"}
)  # fmt: skip


def read_properties(path: str | None) -> dict[str, str]:
    """Read a client properties file; nothing without one."""
    if path is None:
        return {}
    import javaproperties

    try:
        return dict(javaproperties.loads(Path(path).expanduser().read_text("utf-8")))
    except (OSError, ValueError) as exc:
        raise ReconcileError(f"{path}: the Kafka client properties cannot be read: {exc}") from exc


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that give Spark's Kafka source these properties."""
    return {f"kafka.{key}": value for key, value in properties.items() if key not in _SPARK_OWN}


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties under librdkafka's names; trust and key stores must be PEM."""
    settings: dict[str, str] = {}
    for key, value in properties.items():
        if key == "sasl.jaas.config":
            settings |= {f"sasl.{name}": text for name, text in jaas_members(value).items()}
        elif key == "ssl.endpoint.identification.algorithm":
            # Java turns the check of host names off with an empty text.
            settings[key] = value or "none"
        elif key == "ssl.keystore.location":
            settings |= {"ssl.certificate.location": value, "ssl.key.location": value}
        elif key.endswith("store.type") and value.upper() != "PEM":
            raise ReconcileError(
                f"Kafka client properties: {key}={value} is not supported",
                hint="give the certificates as PEM",
            )
        elif key.startswith(("ssl.", "sasl.", "security.", "bootstrap.")) and key not in _JAVA_ONLY:
            settings[_RENAMED.get(key, key)] = value
    return settings


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, object]:
    """Return the properties as arguments of kafka-python's clients."""
    settings: dict[str, object] = {
        "security_protocol": properties.get("security.protocol", "PLAINTEXT").upper()
    }
    if mechanism := properties.get("sasl.mechanism"):
        settings["sasl_mechanism"] = mechanism
    members = jaas_members(properties.get("sasl.jaas.config", ""))
    for member in ("username", "password"):
        if text := members.get(member) or properties.get(f"sasl.{member}"):
            settings[f"sasl_plain_{member}"] = text
    for argument, names in {
        "ssl_cafile": ("ssl.truststore.location", "ssl.ca.location"),
        "ssl_certfile": ("ssl.keystore.location", "ssl.certificate.location"),
        "ssl_keyfile": ("ssl.keystore.location", "ssl.key.location"),
        "ssl_password": ("ssl.key.password",),
    }.items():
        found = next((properties[name] for name in names if name in properties), None)
        if found:
            settings[argument] = found
    if properties.get("ssl.endpoint.identification.algorithm", "https") in {"", "none"}:
        settings["ssl_check_hostname"] = False
    return settings


def jaas_members(text: str) -> dict[str, str]:
    """Return user name and password of a JAAS line."""
    return {
        name: quoted.replace('\\"', '"') or single
        for name, quoted, single in _JAAS_MEMBER.findall(text)
    }
