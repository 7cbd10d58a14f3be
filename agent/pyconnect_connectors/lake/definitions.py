"""Documentation, defaults and rules of the settings. Imports no library of the extra."""

from __future__ import annotations

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
from pyconnect_connectors.lake.names import (
    ACCESS_KEY,
    AUTO_CREATE,
    AZURE_ACCOUNT,
    AZURE_KEY,
    BACKOFF_MS,
    BATCH_ROWS,
    CATALOG,
    CATALOG_CREDENTIAL,
    CATALOG_TOKEN,
    CATALOG_TYPE,
    CATALOG_URI,
    CATALOG_WAREHOUSE,
    CODEC,
    COMMIT_MS,
    COMPATIBILITY,
    COMPRESSION,
    DURATION_MS,
    ENDPOINT,
    EVOLVE,
    EXTRACTOR,
    FIELDS,
    FILE_FORMATS,
    FLUSH_SIZE,
    FORMAT,
    GCS_CREDENTIALS,
    GUARANTEE,
    MAX_BYTES,
    NULLS,
    ORDER,
    PAD_WIDTH,
    PARTITION_BY,
    PARTITIONER,
    PATH_FORMAT,
    PATTERN,
    POLL_MS,
    PREFIX,
    REGION,
    RETRIES,
    ROTATE_MS,
    SCHEDULE_MS,
    SECRET_KEY,
    TABLE,
    TASK_COUNT,
    TASK_NUMBER,
    TIMESTAMP_FIELD,
    TOPIC,
    TOPICS_DIR,
    URL,
    ZONE,
    Compatibility,
    Extractor,
    Format,
    Guarantee,
    Order,
    Partitioning,
)


def _storage_config_def() -> ConfigDef:
    definition = ConfigDef().define(
        URL,
        ConfigType.STRING,
        default=None,
        importance=Importance.HIGH,
        documentation="Directory of the lake: a local path, file:///path, s3://bucket/prefix, "
        "gs://bucket/prefix or az://container/prefix.",
    )
    texts = (
        (ENDPOINT, "Address of the storage service, for one that is not the provider's own."),
        (REGION, "Region of the S3 bucket."),
        (ACCESS_KEY, "Access key of S3; by default those of the worker's environment are used."),
    )
    for name, documentation in texts:
        definition.define(name, ConfigType.STRING, default=None, documentation=documentation)
    definition.define(
        SECRET_KEY,
        ConfigType.PASSWORD,
        default=None,
        documentation="Secret key of S3; a config provider's ${provider:path:key} keeps it out of "
        "the config.",
    ).define(
        GCS_CREDENTIALS,
        ConfigType.STRING,
        default=None,
        documentation="File with the key of a Google service account.",
    ).define(
        AZURE_ACCOUNT,
        ConfigType.STRING,
        default=None,
        documentation="Storage account of Azure.",
    ).define(
        AZURE_KEY,
        ConfigType.PASSWORD,
        default=None,
        documentation="Key of the storage account.",
    )
    return definition.define(
        RETRIES,
        ConfigType.INT,
        default=10,
        validator=Range.at_least(0),
        documentation="Attempts after a failure that may pass, such as a lost connection, before "
        "the task fails.",
    ).define(
        BACKOFF_MS,
        ConfigType.INT,
        default=3000,
        validator=Range.at_least(0),
        documentation="Time between two attempts in milliseconds.",
    )


def sink_config_def() -> ConfigDef:
    """Return the settings of LakeSink."""
    definition = (
        _storage_config_def()
        .define(
            FORMAT,
            ConfigType.STRING,
            default=Format.PARQUET.value,
            validator=ValidString.one_of(*Format),
            importance=Importance.HIGH,
            documentation="parquet, json (one value a line) or csv: files below lake.url. iceberg: "
            "tables of a catalog.",
        )
        .define(
            GUARANTEE,
            ConfigType.STRING,
            default=Guarantee.EXACTLY_ONCE.value,
            validator=ValidString.one_of(*Guarantee),
            importance=Importance.HIGH,
            documentation="exactly-once: consumer offsets are kept beside the rows, and a file or "
            "snapshot is written once. at-least-once: they are kept in Kafka only, and rows may be "
            "written again after a failure.",
        )
        .define(
            NULLS,
            ConfigType.STRING,
            default="fail",
            validator=ValidString.one_of("fail", "ignore"),
            documentation="What happens to a record without value: it fails, or it is left out.",
        )
        .define(
            MAX_BYTES,
            ConfigType.LONG,
            default=64 * 1024 * 1024,
            validator=Range.at_least(1),
            documentation="Size in bytes at which a file is finished, or a snapshot of Iceberg is "
            "committed before its time. A task holds that much in memory for each open file.",
        )
        .define(
            COMPATIBILITY,
            ConfigType.STRING,
            default=Compatibility.NONE.value,
            validator=ValidString.one_of(*Compatibility),
            documentation="NONE: a record of another schema begins another file. BACKWARD: a "
            "record of an older version of the schema is projected to the newer one, and only a "
            "newer version begins another file. Formats json and iceberg do not need it.",
        )
    )
    _define_rotation(definition)
    _define_partitioner(definition)
    return _define_iceberg(definition)


def _define_rotation(definition: ConfigDef) -> None:
    definition.define(
        TOPICS_DIR,
        ConfigType.STRING,
        default="topics",
        documentation="Directory below lake.url that holds a directory for each topic.",
    ).define(
        FLUSH_SIZE,
        ConfigType.INT,
        default=10_000,
        validator=Range.at_least(1),
        importance=Importance.HIGH,
        documentation="Rows after which a file is finished. The other open files of the same Kafka "
        "partition are finished with it.",
    ).define(
        ROTATE_MS,
        ConfigType.LONG,
        default=-1,
        documentation="Time in milliseconds between the first record of a file and the record that "
        "begins the next, by the records' own time. -1: no limit.",
    ).define(
        SCHEDULE_MS,
        ConfigType.LONG,
        default=-1,
        documentation="Interval in milliseconds, by the worker's clock, at whose multiples all "
        "files are finished, also without a new record. -1: never.",
    ).define(
        PAD_WIDTH,
        ConfigType.INT,
        default=10,
        validator=Range.at_least(0),
        documentation="Digits of the offset in a file's name, zeros in front.",
    ).define(
        CODEC,
        ConfigType.STRING,
        default="snappy",
        validator=ValidString.one_of("none", "snappy", "gzip", "zstd", "lz4"),
        documentation="Compression of Parquet files.",
    ).define(
        COMPRESSION,
        ConfigType.STRING,
        default="none",
        validator=ValidString.one_of("none", "gzip"),
        documentation="Compression of JSON and CSV files.",
    )


def _define_partitioner(definition: ConfigDef) -> None:
    definition.define(
        PARTITIONER,
        ConfigType.STRING,
        default=Partitioning.DEFAULT.value,
        validator=ValidString.one_of(*Partitioning),
        documentation="Directory of a row below that of its topic. default: partition=<number of "
        "the Kafka partition>. field: <name>=<value> of fields. time: as path.format says.",
    ).define(
        FIELDS,
        ConfigType.LIST,
        default=[],
        documentation="Fields of the value that the field partitioner looks at.",
    ).define(
        PATH_FORMAT,
        ConfigType.STRING,
        default="'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
        documentation="Directory of the time partitioner: YYYY, MM, dd, HH, mm and ss are replaced "
        "by the time, text between single quotes is kept.",
    ).define(
        DURATION_MS,
        ConfigType.LONG,
        default=3_600_000,
        validator=Range.at_least(1),
        documentation="Milliseconds of time that share a directory.",
    ).define(
        ZONE,
        ConfigType.STRING,
        default="UTC",
        validator=LambdaValidator(_check_zone, "a name of the IANA time zone database"),
        documentation="Time zone of the directories.",
    ).define(
        EXTRACTOR,
        ConfigType.STRING,
        default=Extractor.RECORD.value,
        validator=ValidString.one_of(*Extractor),
        documentation="Record: the time is the record's timestamp. RecordField: it is a field of "
        "the value. Wallclock: it is the worker's clock, which exactly-once delivery does not "
        "allow, because a repeated row would get another directory.",
    ).define(
        TIMESTAMP_FIELD,
        ConfigType.STRING,
        default="timestamp",
        documentation="Field for timestamp.extractor=RecordField: a timestamp, milliseconds since "
        "1970, or ISO 8601 text.",
    )


def _define_iceberg(definition: ConfigDef) -> ConfigDef:
    flags = (
        (AUTO_CREATE, "Whether a missing table and its namespace are created."),
        (EVOLVE, "Whether columns that are missing are added and types are widened."),
    )
    definition.define(
        TABLE,
        ConfigType.STRING,
        default="default.${topic}",
        validator=NonEmptyString(),
        documentation="Table of a topic, whose name replaces ${topic}; points separate namespaces "
        "from it.",
    )
    for name, documentation in flags:
        definition.define(name, ConfigType.BOOLEAN, default=False, documentation=documentation)
    definition.define(
        PARTITION_BY,
        ConfigType.LIST,
        default=[],
        documentation="Partitioning of tables that are created: fields, or year, month, day, hour "
        "of a field as in day(created).",
    ).define(
        COMMIT_MS,
        ConfigType.INT,
        default=300_000,
        validator=Range.at_least(1),
        documentation="Time between two snapshots in milliseconds.",
    )
    texts = (
        (CATALOG, "iceberg", "Name of the catalog."),
        (
            CATALOG_TYPE,
            "sql",
            (
                "rest, sql or another type that pyiceberg knows. Further settings of a catalog "
                "follow the prefix iceberg.catalog. with pyiceberg's names."
            ),
        ),
        (
            CATALOG_URI,
            None,
            (
                "Address of the catalog; for sql a SQLAlchemy URL. By default catalog.db, a "
                "SQLite file in a local lake.url."
            ),
        ),
        (CATALOG_WAREHOUSE, None, "Directory of new tables; by default lake.url."),
    )
    for name, default, documentation in texts:
        definition.define(name, ConfigType.STRING, default=default, documentation=documentation)
    secrets = (
        (CATALOG_CREDENTIAL, "Client id and secret of a REST catalog, with a colon between them."),
        (CATALOG_TOKEN, "Token of a REST catalog."),
    )
    for name, documentation in secrets:
        definition.define(name, ConfigType.PASSWORD, default=None, documentation=documentation)
    return definition


def source_config_def() -> ConfigDef:
    """Return the settings of LakeSource."""
    return (
        _storage_config_def()
        .define(
            TOPIC,
            ConfigType.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            documentation="Topic of the rows.",
        )
        .define(
            FORMAT,
            ConfigType.STRING,
            default=Format.PARQUET.value,
            validator=ValidString.one_of(*FILE_FORMATS),
            importance=Importance.HIGH,
            documentation="Format of the files: parquet, json (one value a line) or csv (names in "
            "the first line).",
        )
        .define(
            PREFIX,
            ConfigType.STRING,
            default="",
            importance=Importance.HIGH,
            documentation="Directory below lake.url whose files are read, those of its "
            "subdirectories included.",
        )
        .define(
            PATTERN,
            ConfigType.STRING,
            default=".*",
            documentation="Regular expression; a file is read when it matches the whole path "
            "behind prefix. Files and directories whose names begin with _ or a point are not "
            "read.",
        )
        .define(
            ORDER,
            ConfigType.STRING,
            default=Order.NAME.value,
            validator=ValidString.one_of(*Order),
            documentation="Order in which a task reads its files that are new: by name, or by time "
            "of the last change.",
        )
        .define(
            POLL_MS,
            ConfigType.INT,
            default=5_000,
            validator=Range.at_least(1),
            documentation="Time in milliseconds between two looks for new files.",
        )
        .define(
            BATCH_ROWS,
            ConfigType.INT,
            default=1000,
            validator=Range.at_least(1),
            documentation="Rows that are read at once.",
        )
        .define(TASK_NUMBER, ConfigType.INT, default=0, internal=True, importance=Importance.LOW)
        .define(TASK_COUNT, ConfigType.INT, default=1, internal=True, importance=Importance.LOW)
    )


def _check_zone(name: str, value: object) -> None:
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ConfigException(
            f"Invalid value {value} for configuration {name}: Unknown time zone"
        ) from error
