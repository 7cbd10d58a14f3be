"""Settings of both connectors, parsed once into typed values. Imports no library of the extra."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pyconnect_api import ConfigException, Password
from pyconnect_connectors.lake import names
from pyconnect_connectors.lake.definitions import sink_config_def, source_config_def
from pyconnect_connectors.lake.names import (
    Compatibility,
    Extractor,
    Format,
    Order,
    Partitioning,
)
from pyconnect_connectors.settings import (
    BACKOFF_MS,
    GUARANTEE,
    RETRIES,
    Guarantee,
    number,
    text_or_none,
    texts,
)

LOCAL_SCHEMES = ("", "file")
SCHEMES = (*LOCAL_SCHEMES, "s3", "s3a", "gs", "az", "abfs", "abfss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where the lake is and how to reach it."""

    url: str
    endpoint: str | None
    region: str | None
    access_key: str | None
    secret_key: Password | None
    gcs_credentials: str | None
    azure_account: str | None
    azure_key: Password | None
    max_retries: int
    backoff_ms: int

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Self:
        return cls(
            url=text_or_none(config[names.URL]) or "",
            endpoint=text_or_none(config[names.ENDPOINT]),
            region=text_or_none(config[names.REGION]),
            access_key=text_or_none(config[names.ACCESS_KEY]),
            secret_key=_secret(config[names.SECRET_KEY]),
            gcs_credentials=text_or_none(config[names.GCS_CREDENTIALS]),
            azure_account=text_or_none(config[names.AZURE_ACCOUNT]),
            azure_key=_secret(config[names.AZURE_KEY]),
            max_retries=number(config[RETRIES]),
            backoff_ms=number(config[BACKOFF_MS]),
        )

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def local_path(self) -> PurePosixPath | None:
        """The directory of a lake on a local path, None of another one."""
        if self.scheme not in LOCAL_SCHEMES:
            return None
        return PurePosixPath(urlsplit(self.url).path if self.scheme else self.url)

    def problems(self) -> list[tuple[str, str]]:
        """Return rules that are broken, as pairs of a setting and a text."""
        if not self.url:
            return [(names.URL, "it must name the directory of the lake")]
        if self.scheme not in SCHEMES:
            # Without the value: a URL may hold a password.
            return [(names.URL, "it must begin with /, file://, s3://, gs://, az:// or abfss://")]
        path = self.local_path
        if path is not None and not path.is_absolute():
            return [(names.URL, "a local path must be absolute")]
        if (self.access_key is None) != (self.secret_key is None):
            return [(names.ACCESS_KEY, f"it goes with {names.SECRET_KEY}")]
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """How LakeSink's files are named, divided and encoded."""

    topics_dir: str
    flush_size: int
    rotate_ms: int | None
    schedule_ms: int | None
    partitioning: Partitioning
    fields: tuple[str, ...]
    path_format: str
    duration_ms: int
    zone: ZoneInfo
    extractor: Extractor
    timestamp_field: str
    pad_width: int
    codec: str
    gzip: bool

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Self:
        return cls(
            topics_dir=str(config[names.TOPICS_DIR] or "").strip("/"),
            flush_size=number(config[names.FLUSH_SIZE]),
            rotate_ms=_limit(config[names.ROTATE_MS]),
            schedule_ms=_limit(config[names.SCHEDULE_MS]),
            partitioning=Partitioning(str(config[names.PARTITIONER])),
            fields=texts(config[names.FIELDS]),
            path_format=str(config[names.PATH_FORMAT]),
            duration_ms=number(config[names.DURATION_MS]),
            zone=ZoneInfo(str(config[names.ZONE])),
            extractor=Extractor(str(config[names.EXTRACTOR])),
            timestamp_field=str(config[names.TIMESTAMP_FIELD]),
            pad_width=number(config[names.PAD_WIDTH]),
            codec=str(config[names.CODEC]),
            gzip=config[names.COMPRESSION] == "gzip",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Which tables of which Iceberg catalog LakeSink writes; `properties` are pyiceberg's."""

    table: str
    auto_create: bool
    evolve: bool
    partition_by: tuple[str, ...]
    commit_ms: int
    catalog: str
    properties: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, object], props: Mapping[str, object], lake: Location) -> Self:
        prefix = f"{names.CATALOG}."
        properties = {
            key.removeprefix(prefix): str(value)
            for key, value in props.items()
            if key.startswith(prefix) and value is not None
        }
        properties["type"] = str(config[names.CATALOG_TYPE])
        path = lake.local_path
        if lake.url:
            properties.setdefault("warehouse", lake.url if path is None else f"file://{path}")
        if properties["type"] == "sql" and path is not None and lake.url:
            properties.setdefault("uri", f"sqlite:///{path / 'catalog.db'}")
        s3 = {
            "s3.endpoint": lake.endpoint,
            "s3.region": lake.region,
            "s3.access-key-id": lake.access_key,
            "s3.secret-access-key": None if lake.secret_key is None else lake.secret_key.value,
        }
        for key, value in s3.items():
            if value is not None:
                properties.setdefault(key, value)
        return cls(
            table=str(config[names.TABLE]),
            auto_create=config[names.AUTO_CREATE] is True,
            evolve=config[names.EVOLVE] is True,
            partition_by=texts(config[names.PARTITION_BY]),
            commit_ms=number(config[names.COMMIT_MS]),
            catalog=str(config[names.CATALOG] or "iceberg"),
            properties=properties,
        )

    def problems(self) -> list[tuple[str, str]]:
        """Return rules that are broken, as pairs of a setting and a text."""
        found = []
        if "uri" not in self.properties and self.properties["type"] in ("rest", "sql"):
            found.append((names.CATALOG_URI, "the catalog needs an address"))
        if "warehouse" not in self.properties and self.properties["type"] == "sql":
            found.append((names.CATALOG_WAREHOUSE, f"set it or {names.URL}"))
        if "." not in self.table:
            found.append((names.TABLE, "it must be a namespace, a point and a name"))
        found.extend(
            (names.PARTITION_BY, f"{field} is neither a field nor year, month, day, hour of one")
            for field in self.partition_by
            if not re.fullmatch(r"[^()]+|(year|month|day|hour)\([^()]+\)", field)
        )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """`name` is the connector's, under which it keeps its offsets; `tables` None means files."""

    name: str
    location: Location
    format: Format
    exactly_once: bool
    ignores_nulls: bool
    max_bytes: int
    compatibility: Compatibility
    files: FileSettings
    tables: TableSettings | None
    changes_topics: bool
    """Whether transformations may give records of one partition several topics."""

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
        config = sink_config_def().parse(props)
        location = Location.of(config)
        written = Format(str(config[names.FORMAT]))
        settings = cls(
            name=str(props.get("name") or ""),
            location=location,
            format=written,
            exactly_once=config[GUARANTEE] == Guarantee.EXACTLY_ONCE,
            ignores_nulls=config[names.NULLS] == "ignore",
            max_bytes=number(config[names.MAX_BYTES]),
            compatibility=Compatibility(str(config[names.COMPATIBILITY])),
            files=FileSettings.of(config),
            tables=(
                TableSettings.of(config, props, location) if written is Format.ICEBERG else None
            ),
            changes_topics=bool(props.get("transforms")),
        )
        for key, problem in settings.problems():
            raise ConfigException(f"{key}: {problem}")
        return settings

    def problems(self) -> list[tuple[str, str]]:
        """Return rules across settings that are broken, as pairs of a setting and a text."""
        if self.tables is not None:
            given = self.location.problems() if self.location.url else []
            return [*given, *self.tables.problems()]
        found = self.location.problems()
        files = self.files
        if files.partitioning is Partitioning.FIELD and not files.fields:
            found.append((names.FIELDS, f"{names.PARTITIONER}=field needs names of fields"))
        wallclock = files.extractor is Extractor.WALLCLOCK
        if wallclock and files.partitioning is Partitioning.TIME and self.exactly_once:
            text = f"Wallclock needs {GUARANTEE}=at-least-once: a repeated row would get "
            found.append((names.EXTRACTOR, f"{text}another directory"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A task reads the files whose paths give its number."""

    location: Location
    topic: str
    format: Format
    prefix: str
    pattern: str
    order: Order
    poll_ms: int
    batch_rows: int
    task_number: int
    task_count: int

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
        config = source_config_def().parse(props)
        settings = cls(
            location=Location.of(config),
            topic=str(config[names.TOPIC]),
            format=Format(str(config[names.FORMAT])),
            prefix=str(config[names.PREFIX] or "").strip("/"),
            pattern=str(config[names.PATTERN]),
            order=Order(str(config[names.ORDER])),
            poll_ms=number(config[names.POLL_MS]),
            batch_rows=number(config[names.BATCH_ROWS]),
            task_number=number(config[names.TASK_NUMBER]),
            task_count=number(config[names.TASK_COUNT]),
        )
        for key, problem in settings.problems():
            raise ConfigException(f"{key}: {problem}")
        return settings

    def problems(self) -> list[tuple[str, str]]:
        """Return rules across settings that are broken, as pairs of a setting and a text."""
        found = self.location.problems()
        try:
            re.compile(self.pattern)
        except re.error as error:
            found.append((names.PATTERN, f"it is not a regular expression: {error}"))
        return found


def _secret(value: object) -> Password | None:
    return value if isinstance(value, Password) and value.value else None


def _limit(value: object) -> int | None:
    limit = number(value)
    return limit if limit > 0 else None
