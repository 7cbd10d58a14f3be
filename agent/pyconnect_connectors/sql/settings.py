"""Settings of both connectors, parsed once into typed values. Imports no database library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from zoneinfo import ZoneInfo

from pyconnect_api import ConfigException, Password
from pyconnect_connectors.settings import (
    BACKOFF_MS,
    GUARANTEE,
    RETRIES,
    Guarantee,
    number,
    text_or_none,
    texts,
)
from pyconnect_connectors.sql.definitions import (
    AUTO_CREATE,
    AUTO_EVOLVE,
    BATCH_ROWS,
    BLACKLIST,
    DELAY_MS,
    DELETES,
    EXCLUDE,
    INCLUDE,
    INCREMENTING,
    INSERT_MODE,
    MODE,
    OFFSETS_TABLE,
    PASSWORD,
    PK_FIELDS,
    PK_MODE,
    POLL_MS,
    PREFIX,
    QUERY,
    SCHEMA,
    TABLE_FORMAT,
    TABLE_POLL_MS,
    TABLES,
    TIMESTAMP,
    URL,
    USER,
    WHITELIST,
    ZONE,
    InsertMode,
    Mode,
    PrimaryKeyMode,
    sink_config_def,
    source_config_def,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach the database; `zone` is that of its timestamps without one."""

    url: str
    user: str | None
    password: Password | None
    zone: ZoneInfo
    max_retries: int
    backoff_ms: int

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Self:
        password = config[PASSWORD]
        return cls(
            url=str(config[URL]),
            user=text_or_none(config[USER]),
            password=password if isinstance(password, Password) else None,
            zone=ZoneInfo(str(config[ZONE])),
            max_retries=number(config[RETRIES]),
            backoff_ms=number(config[BACKOFF_MS]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """`tables` are those of one task; a connector has none."""

    connection: Connection
    mode: Mode
    incrementing: str | None
    timestamps: tuple[str, ...]
    delay_ms: int
    query: str | None
    schema: str | None
    whitelist: frozenset[str]
    blacklist: frozenset[str]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    table_poll_ms: int
    prefix: str
    poll_ms: int
    batch_rows: int
    tables: tuple[str, ...]

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
        config = source_config_def().parse(props)
        settings = cls(
            connection=Connection.of(config),
            mode=Mode(str(config[MODE])),
            incrementing=text_or_none(config[INCREMENTING]),
            timestamps=texts(config[TIMESTAMP]),
            delay_ms=number(config[DELAY_MS]),
            query=text_or_none(config[QUERY]),
            schema=text_or_none(config[SCHEMA]),
            whitelist=frozenset(texts(config[WHITELIST])),
            blacklist=frozenset(texts(config[BLACKLIST])),
            include=texts(config[INCLUDE]),
            exclude=texts(config[EXCLUDE]),
            table_poll_ms=number(config[TABLE_POLL_MS]),
            prefix=str(config[PREFIX]),
            poll_ms=number(config[POLL_MS]),
            batch_rows=number(config[BATCH_ROWS]),
            tables=texts(config[TABLES]),
        )
        for key, problem in settings.problems():
            raise ConfigException(f"{key}: {problem}")
        return settings

    def problems(self) -> list[tuple[str, str]]:
        """Return rules across settings that are broken, as pairs of a setting and a text."""
        wants_id = self.mode in (Mode.INCREMENTING, Mode.TIMESTAMP_INCREMENTING)
        lists = (self.whitelist, self.blacklist, self.include, self.exclude)
        found = []
        for key, patterns in ((INCLUDE, self.include), (EXCLUDE, self.exclude)):
            for pattern in patterns:
                try:
                    re.compile(pattern)
                except re.error as error:
                    found.append((key, f"{pattern} is not a regular expression: {error}"))
        if wants_id and self.incrementing is None:
            found.append((INCREMENTING, f"mode {self.mode} needs the name of a column"))
        if self.mode.has_timestamp and not self.timestamps:
            found.append((TIMESTAMP, f"mode {self.mode} needs the name of a column"))
        if self.query is not None and any(lists):
            found.append((QUERY, "a query cannot be combined with lists of tables"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """`name` is the connector's, under which it keeps its offsets in the database."""

    name: str
    connection: Connection
    insert_mode: InsertMode
    pk_mode: PrimaryKeyMode
    pk_fields: tuple[str, ...]
    auto_create: bool
    auto_evolve: bool
    deletes: bool
    table_format: str
    exactly_once: bool
    offsets_table: str

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
        config = sink_config_def().parse(props)
        settings = cls(
            name=str(props.get("name") or ""),
            connection=Connection.of(config),
            insert_mode=InsertMode(str(config[INSERT_MODE])),
            pk_mode=PrimaryKeyMode(str(config[PK_MODE])),
            pk_fields=texts(config[PK_FIELDS]),
            auto_create=config[AUTO_CREATE] is True,
            auto_evolve=config[AUTO_EVOLVE] is True,
            deletes=config[DELETES] is True,
            table_format=str(config[TABLE_FORMAT]),
            exactly_once=config[GUARANTEE] == Guarantee.EXACTLY_ONCE,
            offsets_table=str(config[OFFSETS_TABLE]),
        )
        for key, problem in settings.problems():
            raise ConfigException(f"{key}: {problem}")
        return settings

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
