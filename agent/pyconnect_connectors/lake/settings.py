"""Settings of both connectors, parsed once into typed values. Imports no library of the extra."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pyconnect_api import Password
from pyconnect_connectors.connectors import RetrySettings
from pyconnect_connectors.lake import names
from pyconnect_connectors.lake.definitions import sink_config_def, source_config_def
from pyconnect_connectors.lake.names import Compatibility, Extractor, Format, Order, Partitioning
from pyconnect_connectors.odd_values import OUT_OF_RANGE, OddValues, tolerates_errors
from pyconnect_connectors.settings import GUARANTEE, Guarantee, bound, refuse, setting

LOCAL_SCHEMES = ("", "file")
SCHEMES = (*LOCAL_SCHEMES, "s3", "s3a", "gs", "az", "abfs", "abfss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location(RetrySettings):
    """The address of the lake and the access to it."""

    url: str = setting(names.URL)
    endpoint: str | None = setting("store.url")
    region: str | None = setting("s3.region")
    access_key: str | None = setting(names.ACCESS_KEY)
    secret_key: Password | None = setting(names.SECRET_KEY)
    gcs_credentials: str | None = setting("gcs.credentials.path")
    azure_account: str | None = setting("azblob.account.name")
    azure_key: Password | None = setting("azblob.account.key")

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
    """Names, sizes and encoding of LakeSink's files; None: there is no limit."""

    topics_dir: str
    flush_size: int = setting("flush.size")
    rotate_ms: int | None = setting("rotate.interval.ms")
    schedule_ms: int | None = setting("rotate.schedule.interval.ms")
    partitioning: Partitioning = setting(names.PARTITIONER)
    fields: tuple[str, ...] = setting(names.FIELDS)
    path_format: str = setting("path.format")
    duration_ms: int = setting("partition.duration.ms")
    zone: ZoneInfo = setting("timezone")
    extractor: Extractor = setting(names.EXTRACTOR)
    timestamp_field: str = setting("timestamp.field")
    pad_width: int = setting("filename.offset.zero.pad.width")
    codec: str = setting("parquet.codec")
    compression: str = setting("compression.type")

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Self:
        return bound(cls, config, topics_dir=str(config["topics.dir"] or "").strip("/"))

    @property
    def gzip(self) -> bool:
        return self.compression == "gzip"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Which tables of which Iceberg catalog LakeSink writes; `properties` are pyiceberg's."""

    table: str = setting(names.TABLE)
    auto_create: bool = setting(names.AUTO_CREATE)
    evolve: bool = setting(names.EVOLVE)
    partition_by: tuple[str, ...] = setting(names.PARTITION_BY)
    commit_ms: int = setting("iceberg.control.commit.interval-ms")
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
        properties["type"] = str(config["iceberg.catalog.type"])
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
        catalog = str(config[names.CATALOG] or "iceberg")
        return bound(cls, config, catalog=catalog, properties=properties)

    def table_of(self, topic: str) -> str:
        """Return the table of a topic; points of its name do not separate namespaces."""
        return self.table.replace("${topic}", topic.replace(".", "_"))

    def problems(self) -> list[tuple[str, str]]:
        """Return rules that are broken, as pairs of a setting and a text."""
        found = []
        if "uri" not in self.properties and self.properties["type"] in ("rest", "sql"):
            found.append((names.CATALOG_URI, "the catalog needs an address"))
        if "warehouse" not in self.properties and self.properties["type"] == "sql":
            found.append((names.CATALOG_WAREHOUSE, f"set it or {names.URL}"))
        levels = self.table_of("topic").split(".")
        if len(levels) < 2 or not all(levels):
            found.append((names.TABLE, "it must be a namespace, a point and a name"))
        elif len(levels) > 2 and self.properties["type"] != "rest":
            found.append(
                (
                    names.TABLE,
                    f"a catalog of type {self.properties['type']} has no nested namespaces",
                )
            )
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
    format: Format = setting(names.FORMAT)
    guarantee: Guarantee = setting(GUARANTEE)
    nulls: str = setting(names.NULLS)
    odd_values: OddValues = setting(OUT_OF_RANGE)
    max_bytes: int = setting("file.max.bytes")
    compatibility: Compatibility = setting("schema.compatibility")
    files: FileSettings
    tables: TableSettings | None
    changes_topics: bool
    """Whether transformations may give records of one partition several topics."""

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
        config = sink_config_def().parse(props)
        location = bound(Location, config)
        to_tables = config[names.FORMAT] == Format.ICEBERG
        settings = bound(
            cls,
            config,
            name=str(props.get("name") or ""),
            location=location,
            files=FileSettings.of(config),
            tables=TableSettings.of(config, props, location) if to_tables else None,
            changes_topics=bool(props.get("transforms")),
        )
        refuse(settings.problems())
        return settings

    @property
    def exactly_once(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def ignores_nulls(self) -> bool:
        return self.nulls == "ignore"

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
    topic: str = setting("topic")
    format: Format = setting(names.FORMAT)
    prefix: str
    pattern: str = setting(names.PATTERN)
    order: Order = setting("file.order")
    poll_ms: int = setting("poll.interval.ms")
    batch_rows: int = setting("batch.max.rows")
    odd_values: OddValues = setting(OUT_OF_RANGE)
    tolerant: bool
    """Whether a row that cannot be read is left out (`errors.tolerance=all`)."""
    task_number: int = setting(names.TASK_NUMBER)
    task_count: int = setting(names.TASK_COUNT)

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raises ConfigException for a value that is not valid, or does not fit another one."""
        config = source_config_def().parse(props)
        prefix = str(config["prefix"] or "").strip("/")
        settings = bound(
            cls,
            config,
            location=bound(Location, config),
            prefix=prefix,
            tolerant=tolerates_errors(props),
        )
        refuse(settings.problems())
        return settings

    def problems(self) -> list[tuple[str, str]]:
        """Return rules across settings that are broken, as pairs of a setting and a text."""
        found = self.location.problems()
        try:
            re.compile(self.pattern)
        except re.error as error:
            found.append((names.PATTERN, f"it is not a regular expression: {error}"))
        return found
