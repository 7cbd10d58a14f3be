"""Kafka client properties in Java's names, translated for the other clients. Pure but for files.

Spark hands the properties to Java's consumer as they are. Snapshots ask librdkafka and
kafka-python, which call a few of them otherwise and read PEM stores (see `key_stores`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import absolute
from pyconnect_reconcile.key_stores import is_pem
from pyconnect_reconcile.session import submitted

_JAAS_MEMBER = re.compile(
    r"\b(username|password)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')"
)
_ESCAPED = re.compile(r"\\(.)")
# Java's names that librdkafka knows too, and those that it calls otherwise. All others concern Java
# alone: its algorithms, callbacks and the passwords and types of its stores.
_LIBRDKAFKA_NAMES = {
    **{
        name: name
        for name in (
            *("security.protocol", "sasl.mechanism"),
            *("sasl.username", "sasl.password", "ssl.key.password"),
            *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"),
        )
    },
    "ssl.truststore.location": "ssl.ca.location",
}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PEM_TYPES = {
    "ssl.truststore.location": "ssl.truststore.type",
    "ssl.keystore.location": "ssl.keystore.type",
}
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
    """Return the options that give Spark's Kafka source these properties.

    Java takes a store for its own format unless it is told; a PEM file is told by its content.
    """
    types = {
        name: "PEM"
        for location, name in _PEM_TYPES.items()
        if name not in properties and is_pem(properties.get(location, ""))
    }
    given = {**properties, **types}
    for location in _PEM_TYPES.keys() & given.keys():
        # A store that executors are sent (`spark-submit --files`) is not here, but beside them.
        if Path(given[location]).is_file() and not submitted():
            given[location] = absolute(given[location])
    return {f"kafka.{key}": value for key, value in given.items() if key not in _SPARK_OWN}


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties whose stores `with_pem_stores` has converted, in librdkafka's names.

    Raises ReconcileError for a mechanism that needs more than a user and a password.
    """
    mechanism = properties.get("sasl.mechanism", _MECHANISMS[0])
    if "SASL" in properties.get("security.protocol", "").upper() and mechanism not in _MECHANISMS:
        raise ReconcileError(
            f"Kafka client properties: sasl.mechanism={mechanism} is not supported",
            hint=f"supported are {', '.join(_MECHANISMS)}, and client certificates",
        )
    settings = {
        _LIBRDKAFKA_NAMES[key]: value
        for key, value in properties.items()
        if key in _LIBRDKAFKA_NAMES
    }
    members = jaas_members(properties.get("sasl.jaas.config", ""))
    settings |= {f"sasl.{name}": text for name, text in members.items()}
    if (algorithm := properties.get("ssl.endpoint.identification.algorithm")) is not None:
        # Java turns the check of host names off with an empty text.
        settings["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    if store := properties.get("ssl.keystore.location"):
        if is_pem(store):
            settings |= {"ssl.certificate.location": store, "ssl.key.location": store}
        else:
            settings["ssl.keystore.location"] = store
            settings["ssl.keystore.password"] = properties.get("ssl.keystore.password", "")
    return settings


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, object]:
    """Return the properties as arguments of kafka-python's clients; they read PEM only."""
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
        name: _ESCAPED.sub(r"\1", quoted or single)
        for name, quoted, single in _JAAS_MEMBER.findall(text)
    }
