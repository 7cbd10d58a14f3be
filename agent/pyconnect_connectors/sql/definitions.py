"""Names, values and documentation of the settings. Imports no database library."""

from __future__ import annotations

from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyconnect_api import (
    ConfigDef,
    ConfigException,
    ConfigType,
    Importance,
    LambdaValidator,
    NonEmptyString,
    Range,
    ValidString,
)

URL = "connection.url"
USER = "connection.user"
PASSWORD = "connection.password"  # noqa: S105  the name of a setting
ZONE = "db.timezone"
RETRIES = "max.retries"
BACKOFF_MS = "retry.backoff.ms"
MODE = "mode"
INCREMENTING = "incrementing.column.name"
TIMESTAMP = "timestamp.column.name"
DELAY_MS = "timestamp.delay.interval.ms"
QUERY = "query"
SCHEMA = "schema.pattern"
WHITELIST = "table.whitelist"
BLACKLIST = "table.blacklist"
INCLUDE = "table.include.list"
EXCLUDE = "table.exclude.list"
TABLE_POLL_MS = "table.poll.interval.ms"
PREFIX = "topic.prefix"
POLL_MS = "poll.interval.ms"
BATCH_ROWS = "batch.max.rows"
TABLES = "tables"
INSERT_MODE = "insert.mode"
PK_MODE = "pk.mode"
PK_FIELDS = "pk.fields"
AUTO_CREATE = "auto.create"
AUTO_EVOLVE = "auto.evolve"
DELETES = "delete.enabled"
TABLE_FORMAT = "table.name.format"
GUARANTEE = "delivery.guarantee"
OFFSETS_TABLE = "offsets.table.name"


class Mode(StrEnum):
    """How SqlSource finds rows that are new."""

    BULK = "bulk"
    TIMESTAMP = "timestamp"
    INCREMENTING = "incrementing"
    TIMESTAMP_INCREMENTING = "timestamp+incrementing"

    @property
    def has_timestamp(self) -> bool:
        return self in (Mode.TIMESTAMP, Mode.TIMESTAMP_INCREMENTING)

    @property
    def has_total_order(self) -> bool:
        """Whether the position after each row is known, which exactly-once delivery needs."""
        return self in (Mode.INCREMENTING, Mode.TIMESTAMP_INCREMENTING)


class InsertMode(StrEnum):
    """What SqlSink does with a record that has a value."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class PrimaryKeyMode(StrEnum):
    """Where the columns of a row's primary key come from."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


class Guarantee(StrEnum):
    """Whether SqlSink keeps consumer offsets in the database."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


def _connection_config_def() -> ConfigDef:
    return (
        ConfigDef()
        .define(
            URL,
            ConfigType.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            documentation="SQLAlchemy URL of the database, such as sqlite:////var/lib/orders.db or "
            "postgresql+psycopg://host:5432/orders. Put no password here.",
        )
        .define(
            USER,
            ConfigType.STRING,
            default=None,
            importance=Importance.HIGH,
            documentation="User of the database.",
        )
        .define(
            PASSWORD,
            ConfigType.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            documentation="Password of the user; a config provider's ${provider:path:key} keeps it "
            "out of the config.",
        )
        .define(
            ZONE,
            ConfigType.STRING,
            default="UTC",
            validator=LambdaValidator(_check_zone, "a name of the IANA time zone database"),
            documentation="Time zone of the database's timestamps that have none.",
        )
        .define(
            RETRIES,
            ConfigType.INT,
            default=10,
            validator=Range.at_least(0),
            documentation="Attempts after a failure that may pass, such as a lost connection, "
            "before the task fails.",
        )
        .define(
            BACKOFF_MS,
            ConfigType.INT,
            default=3000,
            validator=Range.at_least(0),
            documentation="Time between two attempts in milliseconds.",
        )
    )


def source_config_def() -> ConfigDef:
    """Return the settings of SqlSource."""
    definition = (
        _connection_config_def()
        .define(
            MODE,
            ConfigType.STRING,
            validator=ValidString.one_of(*Mode),
            importance=Importance.HIGH,
            documentation="How new rows are found. bulk: the whole table each time. incrementing: "
            "by a column that only grows. timestamp: by the time of the last change. "
            "timestamp+incrementing: by both. Exactly-once delivery is supported with incrementing "
            "and timestamp+incrementing, whose order is total: each row has a position of its own. "
            "It is not supported with bulk, which has no position, nor with timestamp, where rows "
            "of equal time share one.",
        )
        .define(
            INCREMENTING,
            ConfigType.STRING,
            default=None,
            documentation="Column that grows with each row; unique and never null.",
        )
        .define(
            TIMESTAMP,
            ConfigType.LIST,
            default=[],
            documentation="Columns with the time of the last change; the first that is not null "
            "counts. Rows without any time are not read.",
        )
        .define(
            DELAY_MS,
            ConfigType.LONG,
            default=0,
            validator=Range.at_least(0),
            documentation="Age in milliseconds that a row must have to be read. Set it to more "
            "than the longest transaction that writes the table: a row that becomes visible after "
            "a later one was read is never found.",
        )
    )
    return _define_tables(definition)


def _define_tables(definition: ConfigDef) -> ConfigDef:
    definition.define(
        QUERY,
        ConfigType.STRING,
        default=None,
        documentation="A SELECT whose rows are read in place of tables, to the topic named by "
        "topic.prefix. The user needs the right to create temporary views.",
    ).define(
        SCHEMA,
        ConfigType.STRING,
        default=None,
        documentation="Schema of the tables; by default that of the connection.",
    )
    lists = (
        (WHITELIST, "Names of the tables to read; by default all."),
        (BLACKLIST, "Names of tables not to read."),
        (INCLUDE, "Regular expressions; a table is read when one matches its whole name."),
        (EXCLUDE, "Regular expressions; a table is not read when one matches its whole name."),
    )
    for name, documentation in lists:
        definition.define(name, ConfigType.LIST, default=[], documentation=documentation)
    numbers = (
        (TABLE_POLL_MS, 60_000, "Time between two looks for new or dropped tables."),
        (POLL_MS, 5_000, "Time between two queries of a table that has no new rows."),
    )
    for name, default, documentation in numbers:
        definition.define(
            name,
            ConfigType.INT,
            default=default,
            validator=Range.at_least(1),
            documentation=f"{documentation} In milliseconds.",
        )
    return (
        definition.define(
            PREFIX,
            ConfigType.STRING,
            default="",
            importance=Importance.HIGH,
            documentation="Topic of a query; text before a table's name that makes its topic.",
        )
        .define(
            BATCH_ROWS,
            ConfigType.INT,
            default=1000,
            validator=Range.at_least(1),
            documentation="Rows that are read at once; no more are in memory.",
        )
        .define(TABLES, ConfigType.LIST, default=[], internal=True, importance=Importance.LOW)
    )


def sink_config_def() -> ConfigDef:
    """Return the settings of SqlSink."""
    definition = (
        _connection_config_def()
        .define(
            INSERT_MODE,
            ConfigType.STRING,
            default=InsertMode.INSERT.value,
            validator=ValidString.one_of(*InsertMode),
            importance=Importance.HIGH,
            documentation="insert: add a row. upsert: add it or replace that of the same key. "
            "update: change the row of the same key, if there is one.",
        )
        .define(
            PK_MODE,
            ConfigType.STRING,
            default=PrimaryKeyMode.NONE.value,
            validator=ValidString.one_of(*PrimaryKeyMode),
            importance=Importance.HIGH,
            documentation="Origin of the primary key. none: there is none. kafka: topic, partition "
            "and offset. record_key: fields of the key. record_value: fields of the value.",
        )
        .define(
            PK_FIELDS,
            ConfigType.LIST,
            default=[],
            documentation="Fields of the primary key, and its columns. By default all fields of "
            "the key, or __connect_topic, __connect_partition and __connect_offset.",
        )
        .define(
            TABLE_FORMAT,
            ConfigType.STRING,
            default="${topic}",
            validator=NonEmptyString(),
            documentation="Name of the table of a topic, whose name replaces ${topic}; a point "
            "separates a schema from it.",
        )
        .define(
            GUARANTEE,
            ConfigType.STRING,
            default=Guarantee.EXACTLY_ONCE.value,
            validator=ValidString.one_of(*Guarantee),
            importance=Importance.HIGH,
            documentation="exactly-once: consumer offsets are kept in a table of the database and "
            "change in the transaction of the rows. at-least-once: they are kept in Kafka only, "
            "and rows may be written again after a failure.",
        )
        .define(
            OFFSETS_TABLE,
            ConfigType.STRING,
            default="pyconnect_offsets",
            validator=NonEmptyString(),
            documentation="Table of the consumer offsets; the connector creates it.",
        )
    )
    flags = (
        (AUTO_CREATE, "Whether tables that are missing are created from the records' schemas."),
        (AUTO_EVOLVE, "Whether columns that are missing are added; their fields must be optional."),
        (DELETES, "Whether a record without value deletes the row of its key. Otherwise it fails."),
    )
    for name, documentation in flags:
        definition.define(name, ConfigType.BOOLEAN, default=False, documentation=documentation)
    return definition


def _check_zone(name: str, value: object) -> None:
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ConfigException(
            f"Invalid value {value} for configuration {name}: Unknown time zone"
        ) from error
