"""Settings of both connectors, parsed once into typed values. Imports no database library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote
from zoneinfo import ZoneInfo

from pyconnect_api import Password, SinkTask
from pyconnect_connectors.connectors import RetrySettings
from pyconnect_connectors.odd_values import OUT_OF_RANGE, OddValues, tolerates_errors
from pyconnect_connectors.settings import GUARANTEE, Guarantee, bound, refuse, setting
from pyconnect_connectors.sql.definitions import (
    EXCLUDE,
    FOLDING_KEYS,
    INCLUDE,
    INCREMENTING,
    PK_FIELDS,
    PK_MODE,
    PREFIX,
    QUERY,
    SCHEMA,
    TIMESTAMP,
    WHITELIST,
    FoldingKeys,
    InsertMode,
    Mode,
    PrimaryKeyMode,
    sink_config_def,
    source_config_def,
)


def as_entry(name: str) -> str:
    """Return a table's name as an entry of `tables`, where commas and outer spaces are escaped."""
    return re.sub(r"[%,]|^\s+|\s+$", lambda found: quote(found[0]), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(RetrySettings):
    """The access to the database; `zone` is that of its timestamps without one."""

    url: str = setting("connection.url")
    user: str | None = setting("connection.user")
    password: Password | None = setting("connection.password")
    zone: ZoneInfo = setting("db.timezone")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """`tables` are those of one task, as `as_entry` has them; a connector has none."""

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
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
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
        """Return rules across settings that are broken, as pairs of a setting and a text."""
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
    """`name` is the connector's, under which it keeps its offsets in the database.

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
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
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
        """Whether rows are found by their keys."""
        return self.deletes or self.insert_mode is not InsertMode.INSERT

    def problems(self) -> list[tuple[str, str]]:
        """Return rules across settings that are broken, as pairs of a setting and a text."""
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
