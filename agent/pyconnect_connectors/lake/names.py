"""Names of the settings, and the values of those that have few."""

from __future__ import annotations

from enum import StrEnum

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
CATALOG_WAREHOUSE = "iceberg.catalog.warehouse"
PATTERN = "file.pattern"
TASK_NUMBER = "task.number"
TASK_COUNT = "task.count"


class Format(StrEnum):
    """The format of a file, or that the target is an Iceberg table."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    ICEBERG = "iceberg"


FILE_FORMATS = (Format.PARQUET, Format.JSON, Format.CSV)


class Partitioning(StrEnum):
    """The choice of the directory of a row."""

    DEFAULT = "default"
    FIELD = "field"
    TIME = "time"


class Extractor(StrEnum):
    """Origin of the time that the time partitioner and `rotate.interval.ms` look at."""

    RECORD = "Record"
    RECORD_FIELD = "RecordField"
    WALLCLOCK = "Wallclock"


class Compatibility(StrEnum):
    """The effect of a changed schema of the records on an open file."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"


class Order(StrEnum):
    """The order in which LakeSource reads files."""

    NAME = "name"
    TIME = "time"
