"""Files and tables as sides of a compare, and how records become rows of a table. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_reconcile.document import Bounds, Members, one_of
from pyconnect_reconcile.errors import ReconcileError

MARK = "\x01"
"""The first character of each token that is not a text."""
TOKENS = "pyconnect_tokens"
"""A column of rows: by column, the tokens of values that the column's type would change."""
CORRUPT = "pyconnect_corrupt"
"""A column of rows of CSV: the whole row where it has more or fewer values than columns."""
HELD = "pyconnect_held"
"""A member of a column's metadata: the type of the database's column that Spark lacks."""
NUMERIC, TIME, DOCUMENT = "numeric", "time", "document"
"""Such types, whose values are texts: numbers of any length, times of day, JSON."""
DIRECTORY = "directory"
"""A value of HELD: the name of a directory of files, a text that may stand for a number."""
SQLITE = "jdbc:sqlite:"
VALUE, KEY, KAFKA = "value", "key", "kafka"
OFFSET_COLUMNS = ("connector", "topic", "kafka_partition", "next_offset")
AVRO, ICEBERG = "avro", "iceberg"
FILE_FORMATS = ("text", "json", "csv", "parquet", "orc", AVRO, ICEBERG)
LINE_FORMATS = frozenset({"text", "json"})
VALUE_FORMS = ("bytes", "text", "json", "connect-json")
SQL, REST = "sql", "rest"
PLAIN, BASE64, ENVELOPE = "plain", "base64", "envelope"
KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffsets:
    """The table in which a sink keeps its consumer offsets; its rows are those of `connector`."""

    table: str
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePosition:
    """The position of a source in a table.

    Rows are ordered by the first of `timestamps` that is not null, then by `incrementing`.
    `timestamp` and `number` are the position; None: no row was read yet in this order.
    """

    timestamps: tuple[str, ...] = ()
    incrementing: str | None = None
    timestamp: str | None = None
    number: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSide:
    """Rows of a table; `properties` names a file with user and password.

    Timestamps without a zone are in `zone`. `offsets` names the table of the sink's offsets beside
    the rows; `position` is the source's position.
    """

    url: str
    table: str
    properties: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    zone: str = "UTC"
    offsets: CommittedOffsets | None = None
    position: TablePosition | None = None

    @property
    def place(self) -> str:
        """The identity of the rows: user or session options may make one name two tables."""
        return repr((self.url, self.table, self.properties, self.options, self.offsets))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRule:
    """The form of a record as a row whose columns are the fields of its value.

    `of` is where the columns `keys` come from: the value, the record's key, or its place in Kafka
    (topic, partition, offset). Without names they are all fields of the key. `whole` is a column
    that has the whole value, as HoistField makes it. `decimals` is how JsonConverter wrote them.
    """

    of: str = one_of((VALUE, KEY, KAFKA), VALUE)
    keys: tuple[str, ...] = ()
    whole: str | None = None
    decimals: str = one_of((NUMERIC, BASE64), BASE64)


def read_table_side(members: Members, where: str) -> TableSide:
    """Read the members of a side of kind `table`."""
    side = members.fill(TableSide)
    position = side.position
    if position and not position.timestamps and position.incrementing is None:
        raise ReconcileError(f"{where}.position: `timestamps` or `incrementing` is missing")
    return side


def read_row_rule(document: object, where: str) -> RowRule | None:
    """Read the member `row` of a topic's side."""
    if document is None:
        return None
    rule = Members(document, where).fill(RowRule)
    if rule.of == KAFKA and len(rule.keys) not in (0, len(KAFKA_COLUMNS)):
        raise ReconcileError(f"{where}: `keys` are the names of three columns, or none")
    return rule


def committed_bounds(connector: str, rows: Iterable[Sequence[object]]) -> Bounds:
    """Return the offsets of one connector from rows of OFFSET_COLUMNS.

    A partition that a task has opened but not yet written has no offset.
    """
    bounds: dict[str, dict[int, int]] = {}
    for name, topic, partition, offset in rows:
        if name == connector and offset is not None:
            bounds.setdefault(str(topic), {})[int(str(partition))] = int(str(offset))
    return bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An S3 service; None: the environment of the AWS tools names it."""

    endpoint: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCatalog:
    """An Iceberg catalog: a database by its JDBC URL, where `name` is a column, or a REST service.

    `warehouse` names one of the warehouses of a REST service.
    """

    kind: str = one_of((SQL, REST))
    url: str
    name: str = ICEBERG
    warehouse: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSide:
    """Rows of files; `limit_bytes` reads only the beginning of one text file.

    With `complete` files never change and are read as they are listed. `read` names the files that
    a source has read to the end; rows of other files are optional on the right. A side with a
    `catalog` has one path, the name of a table, whose files may be in a `store`. A side with only a
    `store` has one path, a URL. `properties` names a file with their credentials.

    `lines` is the form of a sink's lines. With PLAIN and BASE64 a record without a value is an
    empty line, where FileStreamSink writes `null`; ENVELOPE is JSON, `{"value":…}`.
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
        """The identity of the files: the same paths may be in two stores or catalogs."""
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
