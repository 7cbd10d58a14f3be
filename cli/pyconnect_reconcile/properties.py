"""Kafka client properties of a run: for Spark in Java's names, for snapshots understood.

Spark hands them to Java's consumer. Snapshots ask librdkafka and kafka-python: what the properties
mean for those says `pyconnect_clients`, as it does for agents and the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyconnect_clients.config_values import find_variables
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import is_pem, with_stores_read
from pyconnect_clients.properties_file import PROVIDERS, load_properties, with_references
from pyconnect_clients.security import Security, parse_security, refuse_other_names
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import absolute

_PEM_TYPES = {
    "ssl.truststore.location": "ssl.truststore.type",
    "ssl.keystore.location": "ssl.keystore.type",
}
_PEM_TEXTS = {
    "ssl.truststore.certificates": "ssl.truststore.type",
    "ssl.keystore.key": "ssl.keystore.type",
}
STORE_SECRETS = ("access_key", "secret_key", "token")
# Spark's source sets these itself and refuses them.
_SPARK_OWN = frozenset(
    {"bootstrap.servers", "group.id", "auto.offset.reset", "key.deserializer", "enable.auto.commit",
     "value.deserializer", "interceptor.classes", "isolation.level"}
)  # fmt: skip


def read_properties(path: str | None) -> dict[str, str]:
    """Read a properties file as it is written; nothing without one."""
    if path is None:
        return {}
    with property_errors_translated():
        return load_properties(path)


def client_properties(path: str | None) -> dict[str, str]:
    """Read a file of client properties, references looked up; nothing without one."""
    properties = read_properties(path)
    with property_errors_translated():
        refuse_other_names(properties)
        return with_references(properties)


def table_properties(path: str | None) -> dict[str, str]:
    """Read a file of JDBC options, references of user and password looked up; nothing without one.

    The definitions of the config providers are no options, nor is the access to a store in which a
    catalog in a database has its tables.
    """
    found = _with_access(path, ("user", "password"), "the database", "--jdbc-properties FILE")
    return {name: value for name, value in found.items() if name not in STORE_SECRETS}


def store_properties(path: str | None) -> dict[str, str]:
    """Read a file of what a store or a catalog asks for, likewise."""
    return _with_access(path, STORE_SECRETS, "the lake", "--spec FILE")


def _with_access(
    path: str | None, secrets: tuple[str, ...], owner: str, option: str
) -> dict[str, str]:
    properties = read_properties(path)
    with property_errors_translated(f"{owner}'s properties"):
        resolved = with_references(properties, secrets)
    for key, value in resolved.items():
        if key in secrets and find_variables(value):
            raise ReconcileError(
                f"{key} of {owner} is a reference to a config provider that is not known here",
                hint=f"give {' and '.join(secrets[:2])} in a file: {option}",
            )
    return {key: value for key, value in resolved.items() if not key.startswith(PROVIDERS)}


def client_security(properties: Mapping[str, str]) -> Security:
    """Return what client properties mean, key stores read; ReconcileError says what is wrong."""
    with property_errors_translated():
        return with_stores_read(parse_security(properties))


@contextmanager
def property_errors_translated(of: str = "Kafka client properties") -> Iterator[None]:
    """Raise what is wrong with a property as ReconcileError."""
    try:
        yield
    except ClientPropertyError as exc:
        raise ReconcileError(f"{of}: {exc.statement}", hint=exc.way_out) from exc


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that give Spark's Kafka source these properties.

    Java takes a store for its own format by default; PEM is recognised by its content.
    """
    types = {
        name: "PEM"
        for location, name in _PEM_TYPES.items()
        if name not in properties and is_pem(properties.get(location, ""))
    }
    types |= {
        name: "PEM"
        for text, name in _PEM_TEXTS.items()
        if name not in properties and text in properties
    }
    given = {**properties, **types}
    for location in _PEM_TYPES.keys() & given.keys():
        # A store that executors are sent (`spark-submit --files`) is not here, but beside them.
        if Path(given[location]).is_file() and not submitted():
            given[location] = absolute(given[location])
    return {f"kafka.{key}": value for key, value in given.items() if key not in _SPARK_OWN}


def submitted() -> bool:
    """Return whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
