"""The data that a connector reads or writes beside its topics, by its class. Pure.

`SOURCES` and `SINKS` name a function for each class: our classes by their last part, those of
other projects in full, because several have the same last part. The function makes the connector's
side of a compare from the configuration and the offsets that the worker reports. Classes without
an entry need --files or --table.

Sinks of other projects have their settings in words of ours:

- JDBC: Confluent's and Aiven's sinks, and Debezium's for records that are rows (no change events).
- S3: Confluent's sink (Avro, Parquet, JSON lines, lines of bytes) and Aiven's (values in Avro,
  Parquet, JSON lines with or without envelope, or CSV, in Base64 or not).
- Iceberg: Apache's sink, and that of Tabular, from which it comes.

A setting that changes rows in a way that a compare does not know is refused by its name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from pyconnect_cli.errors import Undecided, UsageError
from pyconnect_cli.reconcile.connectors import Audited, Config, Resolved, simple_class
from pyconnect_cli.reconcile.tables import (
    BY_HAND,
    CATALOG,
    FILES_BY_HAND,
    files_side,
    read_lake,
    read_table,
    single_table,
    written_lake,
    written_once,
    written_table,
)

JDBC = "jdbc:"
OF_TABLES = (
    *("connection.user", "connection.password", "db.timezone", "insert.mode", "delete.enabled"),
    *("pk.mode", "pk.fields"),
)
"""Settings of SqlSink, which Confluent's and Aiven's sinks call the same."""
OF_DEBEZIUM: Mapping[str, Sequence[str]] = {
    "connection.user": ("connection.username",),
    "db.timezone": ("use.time.zone", "database.time_zone"),
    "pk.mode": ("primary.key.mode",),
    "pk.fields": ("primary.key.fields",),
}
NO_WORD = re.compile(r"[^a-zA-Z0-9_]")
PLAIN = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
NOT_EXACTLY_ONCE = {"delivery.guarantee": "at-least-once"}
CONFLUENT_FORMATS = {
    "AvroFormat": "avro",
    "ParquetFormat": "parquet",
    "JsonFormat": "json",
    "ByteArrayFormat": "text",
}
AIVEN_FORMATS = {"avro": "avro", "parquet": "parquet", "jsonl": "json", "csv": "text"}
PACKED_OTHERWISE = {"snappy": ".snappy", "zstd": ".zst"}
"""File endings by which Spark recognises compression; gzip shows in a file's first bytes."""
EMPTY_LINES = (
    "records without a value, or with an empty one, are empty lines, which are not compared: a file"
    " whose last line is empty does not show it"
)
WALL_CLOCK = "Wallclock"
"""The extractor with which a record that is written again may be in another file."""
DEFAULT_INTERVAL_MS = "300000"


def written_by_jdbc(connector: Audited) -> Resolved:
    """Return the table of Confluent's or Aiven's JDBC sink."""
    config = connector.config
    _refuse(config, "fields.whitelist", "the columns that it names are all that the sink writes")
    if (config.get("quote.sql.identifiers") or "always").lower() != "always":
        raise _refusal("quote.sql.identifiers", "the database folds names without quotes")
    mapped = dict(
        pair.strip().split(":", 1)
        for pair in (config.get("topics.to.tables.mapping") or "").split(",")
        if ":" in pair
    )

    def table_of(topic: str) -> str:
        name = (config.get("table.name.format") or "${topic}").replace("${topic}", topic)
        if _is_true(config, "table.name.normalize"):
            name = NO_WORD.sub("_", name)
        return mapped.get(topic, "") if mapped else name

    table = single_table([table_of(topic) for topic in connector.topics], connector)
    return _table(connector, table)


def written_by_debezium(connector: Audited) -> Resolved:
    """Return the table of Debezium's JDBC sink, whose names the database may fold."""
    config = connector.config
    for name in ("field.include.list", "field.exclude.list"):
        _refuse(config, name, "the sink leaves fields of its records out")
    for name in ("table.naming.strategy", "collection.naming.strategy", "column.naming.strategy"):
        if not (config.get(name) or "Default").rpartition(".")[2].startswith("Default"):
            raise _refusal(name, "the class decides names of tables or columns")
    pattern = config.get("collection.name.format") or config.get("table.name.format") or "${topic}"
    if "${source." in pattern:
        raise _refusal("collection.name.format", "each record names its table")
    names = [pattern.replace("${topic}", topic.replace(".", "_")) for topic in connector.topics]
    table = single_table(names, connector)
    if not _is_true(config, "quote.identifiers") and _url(config).startswith("postgresql:"):
        # The sink quotes names that need it; PostgreSQL folds the others.
        parts = [name.lower() if PLAIN.fullmatch(name) else name for name in table.split(".")]
        table = ".".join(parts)
    return _table(connector, table, OF_DEBEZIUM)


def written_by_confluent_s3(connector: Audited) -> Resolved:
    """Return the topic's directory of Confluent's S3 sink."""
    config = connector.config
    written = _format(config, "format.class", CONFLUENT_FORMATS)
    for name in ("store.kafka.keys", "store.kafka.headers"):
        if _is_true(config, name):
            raise _refusal(name, "keys and headers are in files beside those of values")
    if config.get("behavior.on.null.values") == "write":
        raise _refusal("behavior.on.null.values", "tombstones are in files of their own")
    root = config.get("topics.dir")
    topic = single_table(list(connector.topics), connector)
    path = topic if root == "" else f"{root or 'topics'}/{topic}"
    words = {
        "store.url": config.get("store.url"),
        "s3.region": config.get("s3.region") or "us-west-2",
    }
    url = f"s3://{config.get('s3.bucket.name')}/{path}"
    partitioner = (config.get("partitioner.class") or "DefaultPartitioner").rpartition(".")[2]
    by_time = partitioner in {"TimeBasedPartitioner", "HourlyPartitioner", "DailyPartitioner"}
    extractor = config.get("timestamp.extractor") or WALL_CLOCK
    # Records that are written again are then in the same files again.
    deterministic = config.get("rotate.schedule.interval.ms", "-1") == "-1" and not (
        by_time and extractor == WALL_CLOCK
    )
    return _files(connector, written, url, words, exactly_once=deterministic)


def written_by_aiven_s3(connector: Audited) -> Resolved:
    """Return the directory of Aiven's S3 sink, if it holds files of this topic only."""
    config = connector.config
    written = _format(config, "format.output.type", AIVEN_FORMATS, default="csv")
    if (config.get("format.output.fields") or "value") != "value":
        raise _refusal("format.output.fields", "rows have more than the value")
    lines = None
    if written == "text":
        is_plain = config.get("format.output.fields.value.encoding") == "none"
        lines = "plain" if is_plain else "base64"
    elif (config.get("format.output.envelope") or "true") != "false":
        lines = "envelope"
        if written != "json":
            raise _refusal("format.output.envelope", "each value is within a record of its own")
    topic = single_table(list(connector.topics), connector)
    # Names by a template have no prefix.
    prefix = config.get("aws.s3.prefix") or config.get("aws_s3_prefix") or ""
    given = config.get("file.name.template")
    template = given or f"{prefix}{{{{topic}}}}-{{{{partition}}}}-{{{{start_offset}}}}"
    packed = config.get("file.compression.type") or config.get("output_compression") or "gzip"
    ending = PACKED_OTHERWISE.get(packed.lower())
    if written in {"json", "text"} and ending and given and not given.endswith(ending):
        raise _refusal("file.name.template", f"names of {packed} files do not end with {ending}")
    place = template.replace("{{topic}}", topic).replace("{{ topic }}", topic)
    path = place.partition("{{")[0].rpartition("/")[0].strip("/")
    only_topic = connector.config.get("topics") == topic
    if not path or (topic not in path.split("/") and not only_topic):
        raise _refusal(
            "file.name.template", "the files of the topic have no directory of their own"
        )
    words = {
        "store.url": config.get("aws.s3.endpoint"),
        "s3.region": config.get("aws.s3.region") or "us-east-1",
    }
    url = f"s3://{config.get('aws.s3.bucket.name')}/{path}"
    found = _files(connector, written, url, words, exactly_once=False)
    if lines is None:
        return found
    notes = [EMPTY_LINES] if written == "text" else []
    members = {**found.members, "notes": notes}
    return replace(found, side={**found.side, "lines": lines}, members=members)


def written_by_iceberg(connector: Audited) -> Resolved:
    """Return the table of Apache's Iceberg sink.

    The group's offsets are committed with the data files, the table at the next interval.
    """
    config = connector.config
    for name in (
        "iceberg.tables.route-field",
        "iceberg.tables.route-regex",
        "iceberg.tables.cdc-field",
        "iceberg.tables.default-commit-branch",
    ):
        _refuse(config, name, "records are not simply appended to one table")
    for name in ("iceberg.tables.dynamic-enabled", "iceberg.tables.upsert-mode-enabled"):
        if _is_true(config, name):
            raise _refusal(name, "records are not simply appended to one table")
    tables = [name.strip() for name in (config.get("iceberg.tables") or "").split(",")]
    table = single_table([name for name in tables if name], connector)
    kind = config.get(f"{CATALOG}.type") or ""
    if kind not in {"rest", "jdbc"}:
        raise _refusal(f"{CATALOG}.type", f"a catalog of type {kind or 'none'} is not read")
    words: dict[str, str | None] = {
        "format.class": "iceberg",
        "iceberg.tables": table,
        "iceberg.catalog.s3.region": config.get(f"{CATALOG}.client.region"),
    }
    if kind == "jdbc":
        words |= {
            f"{CATALOG}.type": "sql",
            f"{CATALOG}.uri": _without_jdbc(config.get(f"{CATALOG}.uri") or ""),
        }
    found = written_lake(replace(connector, config={**config, **words}))
    interval_ms = config.get("iceberg.control.commit.interval-ms") or DEFAULT_INTERVAL_MS
    note = (
        f"rows that were written in the last {interval_ms} ms may not be in the table yet, because"
        " the sink commits its offsets before the table"
    )
    return replace(found, members={**found.members, "notes": [note]})


def _table(
    connector: Audited, table: str, names: Mapping[str, Sequence[str]] | None = None
) -> Resolved:
    """Return the table of a sink; `names`: this sink's names of SqlSink's settings."""
    config, url = connector.config, _url(connector.config)
    given = dict(parse_qsl(urlsplit(url).query))
    if "." not in table and (schema := given.get("currentSchema")):
        table = f"{schema}.{table}"
    found = {
        name: next(filter(None, map(config.get, (names or {}).get(name, (name,)))), None)
        for name in OF_TABLES
    }
    translated: Config = {
        **_converters(config),
        **found,
        **NOT_EXACTLY_ONCE,
        "connection.url": url,
        "connection.user": found["connection.user"] or given.get("user"),
        "connection.password": found["connection.password"] or given.get("password"),
        "table.name.format": table,
    }
    return written_table(replace(connector, config=translated))


def _files(
    connector: Audited,
    written: str,
    url: str,
    words: Mapping[str, str | None],
    *,
    exactly_once: bool,
) -> Resolved:
    config = connector.config
    translated: Config = {
        **_converters(config),
        **words,
        **({} if exactly_once else NOT_EXACTLY_ONCE),
        "aws.access.key.id": config.get("aws.access.key.id"),
        "aws.secret.access.key": config.get("aws.secret.access.key"),
    }
    members = written_once(translated)
    return files_side(translated, [url], written, members, payloads=True)


def _converters(config: Config) -> Config:
    """Return the settings of converters and transformations, which mean the same for each sink."""
    return {
        name: value
        for name, value in config.items()
        if name.startswith(("key.converter", "value.converter", "transforms"))
    }


def _url(config: Config) -> str:
    return _without_jdbc(config.get("connection.url") or "")


def _without_jdbc(url: str) -> str:
    """Return a URL of JDBC as SqlSink spells it."""
    found = url.removeprefix(JDBC)
    if found.startswith("sqlite:") and not found.startswith("sqlite://"):
        return f"sqlite:///{found.removeprefix('sqlite:')}"
    return found


def _format(
    config: Config, setting: str, formats: Mapping[str, str], default: str | None = None
) -> str:
    given = config.get(setting) or default or ""
    written = formats.get(given.rpartition(".")[2])
    if written is None:
        raise UsageError(
            f"files of {setting}={given} are not audited, only those of {', '.join(formats)}",
            hint=FILES_BY_HAND,
        )
    return written


def _is_true(config: Config, setting: str) -> bool:
    return (config.get(setting) or "").strip().lower() == "true"


def _refuse(config: Config, setting: str, reason: str) -> None:
    if config.get(setting):
        raise _refusal(setting, reason)


def _refusal(setting: str, reason: str) -> UsageError:
    return UsageError(
        f"{setting}: {reason}, so the rows cannot be found from the config",
        hint=BY_HAND if "s3" not in setting and "file" not in setting else FILES_BY_HAND,
    )


def read_file(connector: Audited) -> Resolved:
    """Return the file that a FileStreamSource reads, bounded by its committed offset."""
    file = connector.config.get("file")
    if not file:
        raise UsageError("the connector reads its worker's standard input: there is no file")
    positions = [
        int(str(entry.offset["position"]))
        for entry in connector.offsets
        if (entry.partition or {}).get("filename") == file and entry.offset is not None
    ]
    if not positions:
        raise Undecided(
            f"the connector has committed no offset of {file} yet, so nothing can be compared",
            hint="wait for offset.flush.interval.ms, then run it again",
        )
    side = {"kind": "files", "paths": [file], "format": "text", "limit_bytes": positions[0]}
    return Resolved(side=side)


def written_file(connector: Audited) -> Resolved:
    """Return the file that a FileStreamSink writes."""
    file = connector.config.get("file")
    if not file:
        raise UsageError("the connector writes to its worker's standard output: there is no file")
    return Resolved(side={"kind": "files", "paths": [file], "format": "text"})


Resolve: TypeAlias = Callable[[Audited], Resolved]

SOURCES: Mapping[str, Resolve] = {
    "FileStreamSource": read_file,
    "LakeSource": read_lake,
    "SqlSource": read_table,
}
SINKS: Mapping[str, Resolve] = {
    "FileStreamSink": written_file,
    "LakeSink": written_lake,
    "SqlSink": written_table,
    "io.confluent.connect.jdbc.JdbcSinkConnector": written_by_jdbc,
    "io.aiven.connect.jdbc.JdbcSinkConnector": written_by_jdbc,
    "io.debezium.connector.jdbc.JdbcSinkConnector": written_by_debezium,
    "io.confluent.connect.s3.S3SinkConnector": written_by_confluent_s3,
    "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector": written_by_aiven_s3,
    "org.apache.iceberg.connect.IcebergSinkConnector": written_by_iceberg,
    "io.tabular.iceberg.connect.IcebergSinkConnector": written_by_iceberg,
}


def resolver(config: Config, resolvers: Mapping[str, Resolve]) -> Resolve | None:
    """Return the function for the connector's class, None for a class that is not known."""
    whole = config.get("connector.class") or ""
    return resolvers.get(whole) or resolvers.get(simple_class(config))
