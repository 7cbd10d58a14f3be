"""The file of Kafka client properties of a command: its settings, and its errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyconnect_cli.errors import UsageError
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import with_stores_read
from pyconnect_clients.properties_file import read_client_properties
from pyconnect_clients.security import Security, parse_security, refuse_other_names


def read_security(path: str) -> Security:
    """Return the security settings of a file, with key stores read; UsageError names a fault."""
    with property_errors_translated():
        properties = read_client_properties(path)
        refuse_other_names(properties)
        return with_stores_read(parse_security(properties))


@contextmanager
def property_errors_translated() -> Iterator[None]:
    """Raise an error of a property as UsageError."""
    try:
        yield
    except ClientPropertyError as exc:
        raise UsageError(f"Kafka client properties: {exc.statement}", hint=exc.way_out) from exc
