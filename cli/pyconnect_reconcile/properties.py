"""Kafka client properties of a run: Java's names for Spark, their meaning for snapshots.

Spark passes them to Java's consumer. Snapshots ask librdkafka and kafka-python: `pyconnect_clients`
translates the properties for those, as it does for agents and the command line.
"""

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
    """Read a properties file unchanged; empty for None."""
    if path is None:
        return {}
    with property_errors_translated():
        return load_properties(path)


def client_properties(path: str | None) -> dict[str, str]:
    """Read a file of client properties and resolve its references; empty for None."""
    properties = read_properties(path)
    with property_errors_translated():
        refuse_other_names(properties)
        return with_references(properties)


def table_properties(path: str | None) -> dict[str, str]:
    """Read a file of JDBC options and resolve references of user and password; empty for None.

    The result has neither the config providers nor the credentials of the store in which a catalog
    in a database has its tables.
    """
    found = _with_access(path, ("user", "password"), "the database", "--jdbc-properties FILE")
    return {name: value for name, value in found.items() if name not in STORE_SECRETS}


def store_properties(path: str | None) -> dict[str, str]:
    """Read a file of credentials for a store or a catalog, as `table_properties` does."""
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
    """Return the meaning of client properties with key stores read; ReconcileError if not valid."""
    with property_errors_translated():
        return with_stores_read(parse_security(properties))


@contextmanager
def property_errors_translated(of: str = "Kafka client properties") -> Iterator[None]:
    """Raise ReconcileError in place of an error of a property."""
    try:
        yield
    except ClientPropertyError as exc:
        raise ReconcileError(f"{of}: {exc.statement}", hint=exc.way_out) from exc


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that give Spark's Kafka source these properties.

    By default Java expects a store in its own format; PEM is recognised by its content.
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
        # A store that spark-submit sends to executors (`--files`) is beside them, not here.
        if Path(given[location]).is_file() and not submitted():
            given[location] = absolute(given[location])
    return {f"kafka.{key}": value for key, value in given.items() if key not in _SPARK_OWN}


def submitted() -> bool:
    """Return whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
