"""The data that a connector reads or writes beside its topics, by its class. Pure.

`SOURCES` and `SINKS` name a function for each class: our classes by their last part, those of
other projects in full, because several have the same last part. The function makes the connector's
side of a compare from the configuration and the offsets that the worker reports. Classes without
an entry need --files or --table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyconnect_cli.errors import Undecided, UsageError
from pyconnect_cli.reconcile.audited import Audited, Config, Resolved
from pyconnect_cli.reconcile.connectors import simple_class
from pyconnect_cli.reconcile.lake import read_lake, written_lake
from pyconnect_cli.reconcile.other_sinks import (
    written_by_aiven_s3,
    written_by_confluent_s3,
    written_by_debezium,
    written_by_iceberg,
    written_by_jdbc,
)
from pyconnect_cli.reconcile.tables import read_table, written_table


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
    "FileStreamSourceConnector": read_file,
    "LakeSource": read_lake,
    "LakeSourceConnector": read_lake,
    "SqlSource": read_table,
    "SqlSourceConnector": read_table,
}
SINKS: Mapping[str, Resolve] = {
    "FileStreamSink": written_file,
    "FileStreamSinkConnector": written_file,
    "LakeSink": written_lake,
    "LakeSinkConnector": written_lake,
    "SqlSink": written_table,
    "SqlSinkConnector": written_table,
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
