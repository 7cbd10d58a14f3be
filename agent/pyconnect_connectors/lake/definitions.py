"""Documentation, defaults and rules of the settings. Imports no library of the extra."""

from __future__ import annotations

from pyconnect_api import ConfigDef, ConfigType, Importance, NonEmptyString, Range, ValidString
from pyconnect_api.configdef import define_table
from pyconnect_connectors.lake import names
from pyconnect_connectors.odd_values import define_odd_values
from pyconnect_connectors.settings import GUARANTEE, TIME_ZONE, Guarantee, define_retries

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
            names.FORMAT: ValidString.one_of(*names.Format),
            GUARANTEE: ValidString.one_of(*Guarantee),
            names.NULLS: ValidString.one_of("fail", "ignore"),
            "file.max.bytes": Range.at_least(1),
            "schema.compatibility": ValidString.one_of(*names.Compatibility),
            "flush.size": Range.at_least(1),
            "filename.offset.zero.pad.width": Range.at_least(0),
            "parquet.codec": ValidString.one_of("none", "snappy", "gzip", "zstd", "lz4"),
            "compression.type": ValidString.one_of("none", "gzip"),
            names.PARTITIONER: ValidString.one_of(*names.Partitioning),
            "partition.duration.ms": Range.at_least(1),
            "timezone": TIME_ZONE,
            names.EXTRACTOR: ValidString.one_of(*names.Extractor),
            names.TABLE: NonEmptyString(),
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
            names.FORMAT: ValidString.one_of(*names.FILE_FORMATS),
            "file.order": ValidString.one_of(*names.Order),
            "poll.interval.ms": Range.at_least(1),
            "batch.max.rows": Range.at_least(1),
        },
    )
    for name, default in ((names.TASK_NUMBER, 0), (names.TASK_COUNT, 1)):
        definition.define(
            name, ConfigType.INT, default=default, internal=True, importance=Importance.LOW
        )
    return definition
