"""Files as a side of a compare, and where those are that no local path leads to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_reconcile.document import Members
from pyconnect_reconcile.errors import ReconcileError

ICEBERG = "iceberg"
FILE_FORMATS = ("text", "json", "csv", "parquet", "orc", ICEBERG)
VALUE_FORMS = ("bytes", "text", "json", "connect-json")
SQL, REST = "sql", "rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An S3 service; None: the one that the environment of the AWS tools names."""

    endpoint: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """An Iceberg catalog: a database by its JDBC URL, where `name` is a column, or a REST service.

    `warehouse` is the name that a REST service knows several of.
    """

    kind: str
    url: str
    name: str = ICEBERG
    warehouse: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSide:
    """Rows of files; `limit_bytes` reads only the beginning of one text file.

    With `complete` files never change and are read as they are listed. `read` are those of them
    that a source has read to the end; rows of others may be on the right or not. A side with a
    `catalog` has one path, the name of a table, whose files may be in a `store`. A side with only a
    `store` has one path, a URL. `properties` names a file with access to them.
    """

    paths: tuple[str, ...]
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    limit_bytes: int | None = None
    value: str = "text"
    complete: bool = False
    read: tuple[str, ...] | None = None
    store: Store | None = None
    catalog: Catalog | None = None
    properties: str | None = None


def read_file_side(members: Members, where: str) -> FileSide:
    """Read the members of a side of kind `files`."""
    side = FileSide(
        paths=members.texts("paths"),
        format=members.choice("format", FILE_FORMATS),
        options=members.text_map("options"),
        limit_bytes=members.optional_number("limit_bytes"),
        value=members.choice("value", VALUE_FORMS, "text"),
        complete=members.switch("complete"),
        read=members.texts("read") or None,
        store=_store(members.take("store"), f"{where}.store"),
        catalog=_catalog(members.take("catalog"), f"{where}.catalog"),
        properties=members.optional_text("properties"),
    )
    if not side.paths:
        raise ReconcileError(f"{where}: `paths` is missing")
    if (side.format == ICEBERG) != (side.catalog is not None):
        raise ReconcileError(f"{where}: format iceberg and `catalog` go together")
    return side


def _store(document: object, where: str) -> Store | None:
    """Read the member `store` of a side of files."""
    if document is None:
        return None
    members = Members(document, where)
    store = Store(
        endpoint=members.optional_text("endpoint"), region=members.optional_text("region")
    )
    members.done()
    return store


def _catalog(document: object, where: str) -> Catalog | None:
    """Read the member `catalog` of a side of files."""
    if document is None:
        return None
    members = Members(document, where)
    catalog = Catalog(
        kind=members.choice("kind", (SQL, REST)),
        url=members.text("url"),
        name=members.text("name", ICEBERG),
        warehouse=members.optional_text("warehouse"),
        options=members.text_map("options"),
    )
    members.done()
    return catalog
