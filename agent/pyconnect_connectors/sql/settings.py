"""Settings of both connectors: names, documentation and defaults, and their typed values.

Imports no database library.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from urllib.parse import quote
from zoneinfo import ZoneInfo

from pyconnect_api import (
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Password,
    Range,
    SinkTask,
    ValidString,
)
from pyconnect_api.configdef import define_table
from pyconnect_connectors.connectors import (
    GUARANTEE,
    TIME_ZONE,
    Guarantee,
    RetrySettings,
    bound,
    define_retries,
    refuse,
    setting,
)
from pyconnect_connectors.odd_values import (
    OUT_OF_RANGE,
    OddValues,
    define_odd_values,
    tolerates_errors,
)

URL = "connection.url"
ZONE = "db.timezone"
MODE = "mode"
INCREMENTING = "incrementing.column.name"
TIMESTAMP = "timestamp.column.name"
PREFIX = "topic.prefix"
QUERY = "query"
SCHEMA = "schema.pattern"
WHITELIST = "table.whitelist"
INCLUDE = "table.include.list"
EXCLUDE = "table.exclude.list"
TABLES = "tables"
PK_MODE = "pk.mode"
PK_FIELDS = "pk.fields"
AUTO_CREATE = "auto.create"
AUTO_EVOLVE = "auto.evolve"
DELETES = "delete.enabled"
FOLDING_KEYS = "pk.folding.keys"
TABLE_FORMAT = "table.name.format"
OFFSETS_TABLE = "offsets.table.name"


class Mode(StrEnum):
    """The way in which SqlSource finds new rows."""

    BULK = "bulk"
    TIMESTAMP = "timestamp"
    INCREMENTING = "incrementing"
    TIMESTAMP_INCREMENTING = "timestamp+incrementing"

    @property
    def has_timestamp(self) -> bool:
        return self in (Mode.TIMESTAMP, Mode.TIMESTAMP_INCREMENTING)

    @property
    def has_total_order(self) -> bool:
        """Whether each row has a position of its own, which exactly-once delivery needs."""
        return self in (Mode.INCREMENTING, Mode.TIMESTAMP_INCREMENTING)


class InsertMode(StrEnum):
    """The statement that SqlSink uses for a record with a value."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class FoldingKeys(StrEnum):
    """The policy for key columns that treat different texts as equal."""

    FAIL = "fail"
    ALLOW = "allow"


class PrimaryKeyMode(StrEnum):
    """The source of a row's primary key columns."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


_CONNECTION = """
connection.url  STRING  HIGH  !
    SQLAlchemy URL of the database, such as sqlite:////var/lib/orders.db or
    postgresql+psycopg://host:5432/orders. Put no password here.
connection.user  STRING  HIGH  ~
    User of the database.
connection.password  PASSWORD  HIGH  ~
    Password of the user; a config provider's ${provider:path:key} keeps it out of the config.
db.timezone  STRING  MEDIUM  UTC
    Time zone of the database's timestamps that have none.
"""
_SOURCE = """
mode  STRING  HIGH  !
    How new rows are found. bulk: the whole table each time. incrementing: by a column that only
    grows. timestamp: by the time of the last change. timestamp+incrementing: by both. Exactly-once
    delivery is supported with incrementing and timestamp+incrementing, whose order is total: each
    row has a position of its own. It is not supported with bulk, which has no position, nor with
    timestamp, where rows of equal time share one.
incrementing.column.name  STRING  MEDIUM  ~
    Column that grows with each row; unique and never null.
timestamp.column.name  LIST  MEDIUM  ""
    Columns with the time of the last change; the first that is not null counts. Rows without any
    time are not read.
timestamp.delay.interval.ms  LONG  MEDIUM  0
    Age in milliseconds that a row must have to be read. Set it to more than the longest transaction
    that writes the table: a row that becomes visible after a later one was read is never found.
query  STRING  MEDIUM  ~
    A SELECT whose rows are read in place of tables, to the topic named by topic.prefix. The user
    needs the right to create temporary views.
schema.pattern  STRING  MEDIUM  ~
    Schema of the tables; by default that of the connection.
table.whitelist  LIST  MEDIUM  ""
    Names of the tables to read; by default all but pyconnect_offsets, which is a SqlSink's. A view
    is read when it is named here, and schema.table is a table of another schema. A name that the
    database does not have is an error.
table.blacklist  LIST  MEDIUM  ""
    Names of tables not to read.
table.include.list  LIST  MEDIUM  ""
    Regular expressions; a table is read when one matches its whole name.
table.exclude.list  LIST  MEDIUM  ""
    Regular expressions; a table is not read when one matches its whole name.
table.poll.interval.ms  INT  MEDIUM  60000
    Time between two looks for new or dropped tables. In milliseconds.
poll.interval.ms  INT  MEDIUM  5000
    Time between two queries of a table that has no new rows. In milliseconds.
topic.prefix  STRING  HIGH  ""
    Topic of a query; text before a table's name that makes its topic.
batch.max.rows  INT  MEDIUM  1000
    Rows that are read at once; no more are in memory.
"""
_SINK = """
insert.mode  STRING  HIGH  insert
    insert: add a row. upsert: add it or replace that of the same key. update: change the row of the
    same key, if there is one.
pk.mode  STRING  HIGH  none
    Origin of the primary key. none: there is none. kafka: topic, partition and offset. record_key:
    fields of the key. record_value: fields of the value.
pk.fields  LIST  MEDIUM  ""
    Fields of the primary key, and its columns. By default all fields of the key, or
    __connect_topic, __connect_partition and __connect_offset.
pk.folding.keys  STRING  MEDIUM  fail
    What happens when a key column of a table that exists takes different texts for equal, as it
    does with a collation that ignores case, accents or spaces at the end: upsert, update and delete
    would make one row of several keys. fail: the connector is refused, and its task fails. allow:
    such keys are one row.
table.name.format  STRING  MEDIUM  ${topic}
    Name of the table of a topic, whose name replaces ${topic}; a point separates a schema from it.
delivery.guarantee  STRING  HIGH  exactly-once
    exactly-once: consumer offsets are kept in a table of the database and change in the transaction
    of the rows. at-least-once: they are kept in Kafka only, and rows may be written again after a
    failure.
offsets.table.name  STRING  MEDIUM  pyconnect_offsets
    Table of the consumer offsets; the connector creates it.
auto.create  BOOLEAN  MEDIUM  false
    Whether tables that are missing are created from the records' schemas.
auto.evolve  BOOLEAN  MEDIUM  false
    Whether columns that are missing are added; their fields must be optional.
delete.enabled  BOOLEAN  MEDIUM  false
    Whether a record without value deletes the row of its key. Otherwise it fails.
"""


def _connection_config_def() -> ConfigDef:
    return define_retries(
        define_table(ConfigDef(), _CONNECTION, {URL: NonEmptyString(), ZONE: TIME_ZONE})
    )


def source_config_def() -> ConfigDef:
    """Return the settings of SqlSource."""
    return define_table(
        define_odd_values(_connection_config_def(), texts=True),
        _SOURCE,
        {
            MODE: ValidString.one_of(*Mode),
            "timestamp.delay.interval.ms": Range.at_least(0),
            "table.poll.interval.ms": Range.at_least(1),
            "poll.interval.ms": Range.at_least(1),
            "batch.max.rows": Range.at_least(1),
        },
    ).define(TABLES, ConfigType.LIST, default=[], internal=True, importance=Importance.LOW)


def sink_config_def() -> ConfigDef:
    """Return the settings of SqlSink."""
    return define_table(
        define_odd_values(_connection_config_def(), texts=False),
        _SINK,
        {
            "insert.mode": ValidString.one_of(*InsertMode),
            PK_MODE: ValidString.one_of(*PrimaryKeyMode),
            FOLDING_KEYS: ValidString.one_of(*FoldingKeys),
            TABLE_FORMAT: NonEmptyString(),
            GUARANTEE: ValidString.one_of(*Guarantee),
            OFFSETS_TABLE: NonEmptyString(),
        },
    )


def as_entry(name: str) -> str:
    """Return a table's name as an entry of `tables`, where commas and outer spaces are escaped."""
    return re.sub(r"[%,]|^\s+|\s+$", lambda found: quote(found[0]), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(RetrySettings):
    """Access to the database; `zone` applies to its timestamps without a zone."""

    url: str = setting("connection.url")
    user: str | None = setting("connection.user")
    password: Password | None = setting("connection.password")
    zone: ZoneInfo = setting("db.timezone")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """SqlSource's settings; `tables` are one task's, in the form of `as_entry`."""

    connection: Connection
    mode: Mode = setting("mode")
    incrementing: str | None = setting(INCREMENTING)
    timestamps: tuple[str, ...] = setting(TIMESTAMP)
    delay_ms: int = setting("timestamp.delay.interval.ms")
    query: str | None = setting(QUERY)
    schema: str | None = setting(SCHEMA)
    whitelist: frozenset[str] = setting(WHITELIST)
    blacklist: frozenset[str] = setting("table.blacklist")
    include: tuple[str, ...] = setting(INCLUDE)
    exclude: tuple[str, ...] = setting(EXCLUDE)
    table_poll_ms: int = setting("table.poll.interval.ms")
    prefix: str = setting(PREFIX)
    poll_ms: int = setting("poll.interval.ms")
    batch_rows: int = setting("batch.max.rows")
    tables: tuple[str, ...] = setting("tables")
    odd_values: OddValues = setting(OUT_OF_RANGE)
    tolerates_errors: bool = False

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raise ConfigException for a value that is not valid, or does not fit another one."""
        config = source_config_def().parse(props)
        settings = bound(
            cls,
            config,
            connection=bound(Connection, config),
            tolerates_errors=tolerates_errors(props),
        )
        refuse(settings.problems())
        return settings

    def problems(self) -> list[tuple[str, str]]:
        """Return the broken rules across settings as pairs of a setting and a text."""
        lists = (self.whitelist, self.blacklist, self.include, self.exclude)
        found = []
        for key, patterns in ((INCLUDE, self.include), (EXCLUDE, self.exclude)):
            for pattern in patterns:
                try:
                    re.compile(pattern)
                except re.error as error:
                    found.append((key, f"{pattern} is not a regular expression: {error}"))
        if self.mode.has_total_order and self.incrementing is None:
            found.append((INCREMENTING, f"mode {self.mode} needs the name of a column"))
        if self.mode.has_timestamp and not self.timestamps:
            found.append((TIMESTAMP, f"mode {self.mode} needs the name of a column"))
        if self.query is not None and any(lists):
            found.append((QUERY, "a query cannot be combined with lists of tables"))
        if self.query is not None and not self.prefix:
            found.append((PREFIX, "it is the topic of the query, which needs one"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """SqlSink's settings; the connector's `name` identifies its offsets in the database.

    `topics` are empty if a pattern chooses them.
    """

    name: str
    topics: tuple[str, ...]
    connection: Connection
    insert_mode: InsertMode = setting("insert.mode")
    pk_mode: PrimaryKeyMode = setting(PK_MODE)
    pk_fields: tuple[str, ...] = setting(PK_FIELDS)
    folding_keys: FoldingKeys = setting(FOLDING_KEYS)
    auto_create: bool = setting("auto.create")
    auto_evolve: bool = setting("auto.evolve")
    deletes: bool = setting("delete.enabled")
    table_format: str = setting("table.name.format")
    guarantee: Guarantee = setting(GUARANTEE)
    offsets_table: str = setting("offsets.table.name")
    odd_values: OddValues = setting(OUT_OF_RANGE)

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raise ConfigException for a value that is not valid, or does not fit another one."""
        config = sink_config_def().parse(props)
        name = str(props.get("name") or "")
        named = str(props.get(SinkTask.TOPICS_CONFIG) or "").split(",")
        topics = tuple(topic.strip() for topic in named if topic.strip())
        settings = bound(
            cls, config, name=name, topics=topics, connection=bound(Connection, config)
        )
        refuse(settings.problems())
        return settings

    @property
    def exactly_once(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def replaces_rows(self) -> bool:
        """Whether statements find existing rows by their keys."""
        return self.deletes or self.insert_mode is not InsertMode.INSERT

    def problems(self) -> list[tuple[str, str]]:
        """Return the broken rules across settings as pairs of a setting and a text."""
        found = []
        if self.insert_mode is not InsertMode.INSERT and self.pk_mode is PrimaryKeyMode.NONE:
            found.append((PK_MODE, f"insert.mode={self.insert_mode} needs a primary key"))
        if self.deletes and self.pk_mode is not PrimaryKeyMode.RECORD_KEY:
            found.append((PK_MODE, "delete.enabled=true needs pk.mode=record_key"))
        if self.pk_mode is PrimaryKeyMode.RECORD_VALUE and not self.pk_fields:
            found.append((PK_FIELDS, "pk.mode=record_value needs the names of the key's fields"))
        if self.pk_mode is PrimaryKeyMode.KAFKA and len(self.pk_fields) not in (0, 3):
            found.append((PK_FIELDS, "pk.mode=kafka needs three names or none"))
        return found
