"""Files that a user names; UsageError names a file that cannot be read, and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyconnect_cli.errors import UsageError
from pyconnect_cli.render.streams import read_stdin
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import with_stores_read
from pyconnect_clients.properties_file import read_client_properties
from pyconnect_clients.security import Security, parse_security, refuse_other_names


def read_given(place: str) -> tuple[str, str]:
    """Return a file's text and its name for messages; `-` is stdin."""
    shown = "stdin" if place == "-" else place
    try:
        if place == "-":
            return read_stdin(), shown
        return Path(place).expanduser().read_text("utf-8-sig"), shown
    except OSError as exc:
        raise UsageError(f"{shown}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"{shown}: is not UTF-8 text: {exc.reason}") from exc


def yaml_documents(text: str, place: str) -> list[object]:
    """Return the documents of a YAML text, empty ones left out."""
    import yaml

    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise UsageError(f"{place}: is not YAML: {' '.join(str(exc).split())}") from exc


def parse_properties(text: str, place: str) -> dict[str, str]:
    import javaproperties

    try:
        return dict(javaproperties.loads(text))
    except ValueError as exc:
        raise UsageError(f"{place}: is not a properties file: {exc}") from exc


def worker_properties(path: str) -> dict[str, str]:
    """Read a worker's properties file."""
    text, shown = read_given(path)
    return parse_properties(text, shown)


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
