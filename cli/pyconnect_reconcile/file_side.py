"""Files as a side of a compare, and where those are that no local path leads to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_reconcile.document import Members, one_of
from pyconnect_reconcile.errors import ReconcileError

AVRO, ICEBERG = "avro", "iceberg"
FILE_FORMATS = ("text", "json", "csv", "parquet", "orc", AVRO, ICEBERG)
LINE_FORMATS = frozenset({"text", "json"})
VALUE_FORMS = ("bytes", "text", "json", "connect-json")
SQL, REST = "sql", "rest"
PLAIN, BASE64, ENVELOPE = "plain", "base64", "envelope"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An S3 service; None: the one that the environment of the AWS tools names."""

    endpoint: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCatalog:
    """An Iceberg catalog: a database by its JDBC URL, where `name` is a column, or a REST service.

    `warehouse` is the name that a REST service knows several of.
    """

    kind: str = one_of((SQL, REST))
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

    `lines` says what lines a sink writes: PLAIN and BASE64 values are an empty line for none, where
    FileStreamSink writes `null`; ENVELOPE is JSON, `{"value":…}`.
    """

    paths: tuple[str, ...]
    format: str = one_of(FILE_FORMATS)
    options: Mapping[str, str] = field(default_factory=dict)
    limit_bytes: int | None = None
    value: str = one_of(VALUE_FORMS, "text")
    lines: str = one_of((PLAIN, BASE64, ENVELOPE, ""), "")
    complete: bool = False
    read: tuple[str, ...] | None = None
    store: Store | None = None
    catalog: IcebergCatalog | None = None
    properties: str | None = None

    @property
    def place(self) -> str:
        """What is read: the same paths may be in two stores or catalogs."""
        parts = (self.catalog, self.store, self.properties, self.read, self.limit_bytes)
        return repr((self.paths, *parts))


def read_file_side(members: Members, where: str) -> FileSide:
    """Read the members of a side of kind `files`."""
    side = members.fill(FileSide)
    if not side.paths:
        raise ReconcileError(f"{where}: `paths` is missing")
    if side.lines and (side.format == "json") != (side.lines == ENVELOPE):
        raise ReconcileError(f"{where}: `lines` is {side.lines} of text, {ENVELOPE} of json only")
    if (side.format == ICEBERG) != (side.catalog is not None):
        raise ReconcileError(f"{where}: format iceberg and `catalog` go together")
    return side
