"""Settings of both connectors: names, documentation and defaults, and their typed values.

Imports no library of the extra.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pyconnect_api import (
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Password,
    Range,
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

URL = "lake.url"
ACCESS_KEY = "aws.access.key.id"
SECRET_KEY = "aws.secret.access.key"  # noqa: S105  the name of a setting
FORMAT = "format.class"
PARTITIONER = "partitioner.class"
FIELDS = "partition.field.name"
PATH_FORMAT = "path.format"
EXTRACTOR = "timestamp.extractor"
NULLS = "behavior.on.null.values"
TABLE = "iceberg.tables"
AUTO_CREATE = "iceberg.tables.auto-create-enabled"
EVOLVE = "iceberg.tables.evolve-schema-enabled"
PARTITION_BY = "iceberg.tables.default-partition-by"
CATALOG = "iceberg.catalog"
CATALOG_URI = "iceberg.catalog.uri"
PATTERN = "file.pattern"
TASK_NUMBER = "task.number"
TASK_COUNT = "task.count"


class Format(StrEnum):
    """The format of a file, or `iceberg` for a table as the target."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    ICEBERG = "iceberg"


class Partitioning(StrEnum):
    """The way to choose a row's directory."""

    DEFAULT = "default"
    FIELD = "field"
    TIME = "time"


class Extractor(StrEnum):
    """The source of the time for the time partitioner and `rotate.interval.ms`."""

    RECORD = "Record"
    RECORD_FIELD = "RecordField"
    WALLCLOCK = "Wallclock"


class Compatibility(StrEnum):
    """The effect of a changed record schema on an open file."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"


class Order(StrEnum):
    """The order in which LakeSource reads files."""

    NAME = "name"
    TIME = "time"


_STORAGE = """
lake.url  STRING  HIGH  ~
    Directory of the lake: a local path, file:///path, s3://bucket/prefix, gs://bucket/prefix or
    az://container/prefix.
store.url  STRING  MEDIUM  ~
    Address of the storage service, for one that is not the provider's own.
s3.region  STRING  MEDIUM  ~
    Region of the S3 bucket.
aws.access.key.id  STRING  MEDIUM  ~
    Access key of S3; by default those of the worker's environment are used.
aws.secret.access.key  PASSWORD  MEDIUM  ~
    Secret key of S3; a config provider's ${provider:path:key} keeps it out of the config.
gcs.credentials.path  STRING  MEDIUM  ~
    File with the key of a Google service account.
azblob.account.name  STRING  MEDIUM  ~
    Storage account of Azure.
azblob.account.key  PASSWORD  MEDIUM  ~
    Key of the storage account.
"""
_SINK = """
format.class  STRING  HIGH  parquet
    parquet, json (one value a line) or csv: files below lake.url. iceberg: tables of a catalog.
delivery.guarantee  STRING  HIGH  exactly-once
    exactly-once: consumer offsets are kept beside the rows, and a file or snapshot is written once.
    at-least-once: they are kept in Kafka only, and rows may be written again after a failure.
behavior.on.null.values  STRING  MEDIUM  fail
    What happens to a record without value: it fails, or it is left out.
file.max.bytes  LONG  MEDIUM  67108864
    Size in bytes at which a file is finished, or a snapshot of Iceberg is committed before its
    time. A task holds that much in memory for each open file.
schema.compatibility  STRING  MEDIUM  NONE
    NONE: a record of another schema begins another file. BACKWARD: a record of an older version of
    the schema is projected to the newer one, as long as it loses nothing. A newer version begins
    another file, and so does a record with a further field or of another type. Formats json and
    iceberg do not need it.
topics.dir  STRING  MEDIUM  topics
    Directory below lake.url that holds a directory for each topic.
flush.size  INT  HIGH  10000
    Rows after which a file is finished. The other open files of the same Kafka partition are
    finished with it.
rotate.interval.ms  LONG  MEDIUM  -1
    Time in milliseconds between the first record of a file and the record that begins the next, by
    the records' own time. -1: no limit.
rotate.schedule.interval.ms  LONG  MEDIUM  -1
    Interval in milliseconds, by the worker's clock, at whose multiples all files are finished, also
    without a new record. -1: never.
filename.offset.zero.pad.width  INT  MEDIUM  10
    Digits of the offset in a file's name, zeros in front.
parquet.codec  STRING  MEDIUM  snappy
    Compression of Parquet files.
compression.type  STRING  MEDIUM  none
    Compression of JSON and CSV files.
partitioner.class  STRING  MEDIUM  default
    Directory of a row below that of its topic. default: partition=<number of the Kafka partition>.
    field: <name>=<value> of fields. time: as path.format says.
partition.field.name  LIST  MEDIUM  ""
    Fields of the value that the field partitioner looks at.
path.format  STRING  MEDIUM  'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH
    Directory of the time partitioner: YYYY, MM, dd, HH, mm and ss are replaced by the time, text
    between single quotes is kept.
partition.duration.ms  LONG  MEDIUM  3600000
    Milliseconds of local time that share a directory.
timezone  STRING  MEDIUM  UTC
    Time zone of the directories: days begin at its midnight.
timestamp.extractor  STRING  MEDIUM  Record
    Record: the time is the record's timestamp. RecordField: it is a field of the value. Wallclock:
    it is the worker's clock, which exactly-once delivery does not allow, because a repeated row
    would get another directory.
timestamp.field  STRING  MEDIUM  timestamp
    Field for timestamp.extractor=RecordField: a timestamp, milliseconds since 1970, or ISO 8601
    text, which is in UTC if it has no zone.
iceberg.tables  STRING  MEDIUM  default.${topic}
    Table of a topic: a namespace, a point and a name. The topic's name replaces ${topic}, with _ in
    place of its points.
iceberg.tables.auto-create-enabled  BOOLEAN  MEDIUM  false
    Whether a missing table and its namespace are created.
iceberg.tables.evolve-schema-enabled  BOOLEAN  MEDIUM  false
    Whether columns that are missing are added and types are widened.
iceberg.tables.default-partition-by  LIST  MEDIUM  ""
    Partitioning of tables that are created: fields, or year, month, day, hour of a field as in
    day(created).
iceberg.control.commit.interval-ms  INT  MEDIUM  300000
    Time between two snapshots in milliseconds.
iceberg.catalog  STRING  MEDIUM  iceberg
    Name of the catalog.
iceberg.catalog.type  STRING  MEDIUM  sql
    rest, sql or another type that pyiceberg knows. Further settings of a catalog follow the prefix
    iceberg.catalog. with pyiceberg's names.
iceberg.catalog.uri  STRING  MEDIUM  ~
    Address of the catalog; for sql a SQLAlchemy URL. By default catalog.db, a SQLite file in a
    local lake.url.
iceberg.catalog.warehouse  STRING  MEDIUM  ~
    Directory of new tables; by default lake.url.
iceberg.catalog.credential  PASSWORD  MEDIUM  ~
    Client id and secret of a REST catalog, with a colon between them.
iceberg.catalog.token  PASSWORD  MEDIUM  ~
    Token of a REST catalog.
"""
_SOURCE = """
topic  STRING  HIGH  !
    Topic of the rows.
format.class  STRING  HIGH  parquet
    Format of the files: parquet, json (one value a line) or csv (names in the first line).
prefix  STRING  HIGH  ""
    Directory below lake.url whose files are read, those of its subdirectories included.
file.pattern  STRING  MEDIUM  .*
    Regular expression; a file is read when it matches the whole path behind prefix. Files and
    directories whose names begin with _ or a point are not read.
file.order  STRING  MEDIUM  name
    Order in which a task reads its files that are new: by name, or by time of the last change.
poll.interval.ms  INT  MEDIUM  5000
    Time in milliseconds between two looks for new files.
batch.max.rows  INT  MEDIUM  1000
    Rows that are read at once.
"""


def _storage_config_def() -> ConfigDef:
    return define_retries(define_table(ConfigDef(), _STORAGE))


def sink_config_def() -> ConfigDef:
    """Return the settings of LakeSink."""
    return define_table(
        define_odd_values(_storage_config_def(), texts=False),
        _SINK,
        {
            FORMAT: ValidString.one_of(*Format),
            GUARANTEE: ValidString.one_of(*Guarantee),
            NULLS: ValidString.one_of("fail", "ignore"),
            "file.max.bytes": Range.at_least(1),
            "schema.compatibility": ValidString.one_of(*Compatibility),
            "flush.size": Range.at_least(1),
            "filename.offset.zero.pad.width": Range.at_least(0),
            "parquet.codec": ValidString.one_of("none", "snappy", "gzip", "zstd", "lz4"),
            "compression.type": ValidString.one_of("none", "gzip"),
            PARTITIONER: ValidString.one_of(*Partitioning),
            "partition.duration.ms": Range.at_least(1),
            "timezone": TIME_ZONE,
            EXTRACTOR: ValidString.one_of(*Extractor),
            TABLE: NonEmptyString(),
            "iceberg.control.commit.interval-ms": Range.at_least(1),
        },
    )


def source_config_def() -> ConfigDef:
    """Return the settings of LakeSource."""
    definition = define_table(
        define_odd_values(_storage_config_def(), texts=True),
        _SOURCE,
        {
            "topic": NonEmptyString(),
            FORMAT: ValidString.one_of(Format.PARQUET, Format.JSON, Format.CSV),
            "file.order": ValidString.one_of(*Order),
            "poll.interval.ms": Range.at_least(1),
            "batch.max.rows": Range.at_least(1),
        },
    )
    for name, default in ((TASK_NUMBER, 0), (TASK_COUNT, 1)):
        definition.define(
            name, ConfigType.INT, default=default, internal=True, importance=Importance.LOW
        )
    return definition


LOCAL_SCHEMES = ("", "file")
SCHEMES = (*LOCAL_SCHEMES, "s3", "s3a", "gs", "az", "abfs", "abfss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location(RetrySettings):
    """The address of the lake and the access to it."""

    url: str = setting(URL)
    endpoint: str | None = setting("store.url")
    region: str | None = setting("s3.region")
    access_key: str | None = setting(ACCESS_KEY)
    secret_key: Password | None = setting(SECRET_KEY)
    gcs_credentials: str | None = setting("gcs.credentials.path")
    azure_account: str | None = setting("azblob.account.name")
    azure_key: Password | None = setting("azblob.account.key")

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def local_path(self) -> PurePosixPath | None:
        """The directory of a lake on a local path, None for another lake."""
        if self.scheme not in LOCAL_SCHEMES:
            return None
        return PurePosixPath(urlsplit(self.url).path if self.scheme else self.url)

    def problems(self) -> list[tuple[str, str]]:
        """Return the broken rules as pairs of a setting and a text."""
        if not self.url:
            return [(URL, "it must name the directory of the lake")]
        if self.scheme not in SCHEMES:
            # The value is left out: a URL may hold a password.
            return [(URL, "it must begin with /, file://, s3://, gs://, az:// or abfss://")]
        path = self.local_path
        if path is not None and not path.is_absolute():
            return [(URL, "a local path must be absolute")]
        if (self.access_key is None) != (self.secret_key is None):
            return [(ACCESS_KEY, f"it goes with {SECRET_KEY}")]
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """Names, sizes and encoding of LakeSink's files; a limit of None does not apply."""

    topics_dir: str
    flush_size: int = setting("flush.size")
    rotate_ms: int | None = setting("rotate.interval.ms")
    schedule_ms: int | None = setting("rotate.schedule.interval.ms")
    partitioning: Partitioning = setting(PARTITIONER)
    fields: tuple[str, ...] = setting(FIELDS)
    path_format: str = setting("path.format")
    duration_ms: int = setting("partition.duration.ms")
    zone: ZoneInfo = setting("timezone")
    extractor: Extractor = setting(EXTRACTOR)
    timestamp_field: str = setting("timestamp.field")
    pad_width: int = setting("filename.offset.zero.pad.width")
    codec: str = setting("parquet.codec")
    compression: str = setting("compression.type")

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Self:
        return bound(cls, config, topics_dir=str(config["topics.dir"] or "").strip("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """The Iceberg catalog and tables that LakeSink writes; `properties` are pyiceberg's."""

    table: str = setting(TABLE)
    auto_create: bool = setting(AUTO_CREATE)
    evolve: bool = setting(EVOLVE)
    partition_by: tuple[str, ...] = setting(PARTITION_BY)
    commit_ms: int = setting("iceberg.control.commit.interval-ms")
    catalog: str
    properties: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, object], props: Mapping[str, object], lake: Location) -> Self:
        prefix = f"{CATALOG}."
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
        catalog = str(config[CATALOG] or "iceberg")
        return bound(cls, config, catalog=catalog, properties=properties)

    def table_of(self, topic: str) -> str:
        """Return the table of a topic; points in the topic's name do not separate namespaces."""
        return self.table.replace("${topic}", topic.replace(".", "_"))

    def problems(self) -> list[tuple[str, str]]:
        """Return the broken rules as pairs of a setting and a text."""
        found = []
        if "uri" not in self.properties and self.properties["type"] in ("rest", "sql"):
            found.append((CATALOG_URI, "the catalog needs an address"))
        if "warehouse" not in self.properties and self.properties["type"] == "sql":
            found.append(("iceberg.catalog.warehouse", f"set it or {URL}"))
        levels = self.table_of("topic").split(".")
        if len(levels) < 2 or not all(levels):
            found.append((TABLE, "it must be a namespace, a point and a name"))
        elif len(levels) > 2 and self.properties["type"] != "rest":
            kind = self.properties["type"]
            found.append((TABLE, f"a catalog of type {kind} has no nested namespaces"))
        found.extend(
            (PARTITION_BY, f"{field} is neither a field nor year, month, day, hour of one")
            for field in self.partition_by
            if not re.fullmatch(r"[^()]+|(year|month|day|hour)\([^()]+\)", field)
        )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """LakeSink's settings; offsets are kept under the connector's `name`; `tables` None: files."""

    name: str
    location: Location
    format: Format = setting(FORMAT)
    guarantee: Guarantee = setting(GUARANTEE)
    nulls: str = setting(NULLS)
    odd_values: OddValues = setting(OUT_OF_RANGE)
    max_bytes: int = setting("file.max.bytes")
    compatibility: Compatibility = setting("schema.compatibility")
    files: FileSettings
    tables: TableSettings | None
    changes_topics: bool
    """Whether transformations may give records of one partition several topics."""

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raise ConfigException for a value that is not valid, or does not fit another one."""
        config = sink_config_def().parse(props)
        location = bound(Location, config)
        to_tables = config[FORMAT] == Format.ICEBERG
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
        """Return the broken rules across settings as pairs of a setting and a text."""
        if self.tables is not None:
            given = self.location.problems() if self.location.url else []
            return [*given, *self.tables.problems()]
        found = self.location.problems()
        files = self.files
        if files.partitioning is Partitioning.FIELD and not files.fields:
            found.append((FIELDS, f"{PARTITIONER}=field needs names of fields"))
        wallclock = files.extractor is Extractor.WALLCLOCK
        if wallclock and files.partitioning is Partitioning.TIME and self.exactly_once:
            text = f"Wallclock needs {GUARANTEE}=at-least-once: a repeated row would get "
            found.append((EXTRACTOR, f"{text}another directory"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """LakeSource's settings; a task reads the files whose paths map to its number."""

    location: Location
    topic: str = setting("topic")
    format: Format = setting(FORMAT)
    prefix: str
    pattern: str = setting(PATTERN)
    order: Order = setting("file.order")
    poll_ms: int = setting("poll.interval.ms")
    batch_rows: int = setting("batch.max.rows")
    odd_values: OddValues = setting(OUT_OF_RANGE)
    tolerant: bool
    """Whether a row that cannot be read is left out (`errors.tolerance=all`)."""
    task_number: int = setting(TASK_NUMBER)
    task_count: int = setting(TASK_COUNT)

    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self:
        """Raise ConfigException for a value that is not valid, or does not fit another one."""
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
        """Return the broken rules across settings as pairs of a setting and a text."""
        found = self.location.problems()
        try:
            re.compile(self.pattern)
        except re.error as error:
            found.append((PATTERN, f"it is not a regular expression: {error}"))
        return found
