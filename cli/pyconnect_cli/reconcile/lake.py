"""The files and tables of LakeSource and LakeSink as sides of a compare. Pure.

The settings are described in docs/reference/connectors-lake.md. Files never change, so a run reads
the files that exist at its beginning, while the connector continues. It reads the snapshot of an
Iceberg table that the catalog names at that time.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from urllib.parse import urlsplit

from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.connectors import (
    Audited,
    Config,
    Document,
    Resolved,
    value_form,
    with_providers,
)
from pyconnect_cli.reconcile.tables import database_access, database_side, decimals, hoisted_column

BY_HAND = "name the files yourself: --files with --format and --column"
FORMATS = ("parquet", "json", "csv", "iceberg")
# Directories of partitions are not columns of the rows.
RECURSIVE = {"recursiveFileLookup": "true"}
CATALOG = "iceberg.catalog"
STORE = {"endpoint": "store.url", "region": "s3.region"}
STORE_ACCESS = {"access_key": "aws.access.key.id", "secret_key": "aws.secret.access.key"}
TABLE_STORE = {"endpoint": f"{CATALOG}.s3.endpoint", "region": f"{CATALOG}.s3.region"}
TABLE_ACCESS = {
    "access_key": f"{CATALOG}.s3.access-key-id",
    "secret_key": f"{CATALOG}.s3.secret-access-key",
}


def written_lake(connector: Audited) -> Resolved:
    """Return the directory of the topic's files, or its table."""
    config = connector.config
    written = config.get("format.class") or "parquet"
    if written not in FORMATS:
        raise UsageError(f"files of format.class={written} are not audited", hint=BY_HAND)
    if len(connector.topics) != 1:
        raise UsageError(
            f"{connector.name} has {len(connector.topics)} topics, and a run compares one",
            hint="name it: --topic " + (connector.topics[0] if connector.topics else "TOPIC"),
        )
    (topic,) = connector.topics
    if written == "iceberg":
        return _written_table(config, topic, written_once(config))
    topics_dir = config.get("topics.dir")
    path = posixpath.join(_directory(config), "topics" if topics_dir is None else topics_dir, topic)
    return files_side(config, [path], written, written_once(config))


def written_once(config: Config) -> Document:
    """Return members for a comparison of rows that are never changed."""
    exactly_once = (config.get("delivery.guarantee") or "exactly-once") == "exactly-once"
    return {"mode": "append", "duplicates_allowed": not exactly_once}


def read_lake(connector: Audited) -> Resolved:
    """Return the directory, and the files that the connector has read to their end."""
    config = connector.config
    if config.get("file.pattern"):
        raise UsageError("file.pattern chooses files, which an audit does not", hint=BY_HAND)
    done = [
        str((entry.partition or {}).get("file"))
        for entry in connector.offsets
        if entry.offset is not None and entry.offset.get("done")
    ]
    if not done:
        raise UsageError(
            "the connector has not read a file to its end yet, so nothing can be compared",
            hint="wait for offset.flush.interval.ms, then run it again",
        )
    root = _directory(config)
    path = posixpath.join(root, (config.get("prefix") or "").strip("/")).rstrip("/")
    found = files_side(config, [path], config.get("format.class") or "parquet", {"mode": "append"})
    if found.side["format"] == "csv":
        # The connector reads an empty text as null, with quotes or without.
        found.side["options"] = {**RECURSIVE, "emptyValue": ""}
    found.side["read"] = sorted(posixpath.join(root, file) for file in done)
    return found


def files_side(
    config: Config, paths: list[str], written: str, members: Document, *, payloads: bool = False
) -> Resolved:
    """Return files that never change, on local paths or in S3, and how records are rows of them.

    `payloads`: JSON files hold values as JsonConverter writes them, without their schemas.
    """
    whole = hoisted_column(config, BY_HAND)
    side: Document = {
        "kind": "files",
        "paths": paths,
        "format": written,
        "complete": True,
        "options": RECURSIVE,
    }
    secrets: Mapping[str, str] = {}
    if "://" in paths[0]:
        side["store"] = _given(STORE, config)
        secrets = with_providers(_given(STORE_ACCESS, config))
    form = value_form(config)
    if written == "json" and not whole:
        if payloads and form == "connect-json":
            side["value"] = "json"
            return Resolved(side=side, topic={"value": form}, members=members, secrets=secrets)
        schemas = (config.get("value.converter.schemas.enable") or "true").lower()
        if form != "json" and schemas != "false":
            raise UsageError(
                "JSON files have no schemas, but the topic's values have", hint=BY_HAND
            )
        side["value"] = "json"
        return Resolved(side=side, topic={"value": "json"}, members=members, secrets=secrets)
    if written == "text":
        return Resolved(side=side, topic={"value": "bytes"}, members=members, secrets=secrets)
    if written == "json":
        raise UsageError("hoisted values in JSON files are not audited", hint=BY_HAND)
    if written == "csv" and not whole and form not in {"connect-json", "json", None}:
        raise UsageError(
            "CSV files have no types: they are compared with values of JsonConverter only",
            hint=BY_HAND,
        )
    row = {"of": "value"} | decimals(config) | whole
    return Resolved(side=side, topic={"row": row}, members=members, secrets=secrets)


def _written_table(config: Config, topic: str, members: Document) -> Resolved:
    row = {"of": "value"} | decimals(config) | hoisted_column(config, BY_HAND)
    pattern = config.get("iceberg.tables") or "default.${topic}"
    table = pattern.replace("${topic}", topic.replace(".", "_"))
    kind, uri = config.get(f"{CATALOG}.type") or "sql", config.get(f"{CATALOG}.uri") or ""
    # The table's files may be in S3, which only its metadata says.
    access: Mapping[str, str | None] = _given(STORE_ACCESS, config) | _given(TABLE_ACCESS, config)
    catalog: Document = {"kind": kind}
    if kind == "sql":
        if not uri:
            uri = f"sqlite:///{posixpath.join(_directory(config), 'catalog.db')}"
        database: Config = {
            "connection.url": uri,
            "connection.user": config.get(f"{CATALOG}.jdbc.user"),
            "connection.password": config.get(f"{CATALOG}.jdbc.password"),
        }
        address = database_side(database)
        catalog |= {name: address[name] for name in ("url", "options") if name in address}
        catalog["name"] = config.get(CATALOG) or "iceberg"
        access = {**access, **database_access(database)}
    elif kind == "rest" and uri and "${" not in uri and not config.get(f"{CATALOG}.credential"):
        catalog |= {"url": uri} | _given({"warehouse": f"{CATALOG}.warehouse"}, config)
        access = {**access, **_given({"token": f"{CATALOG}.token"}, config)}
    else:
        raise UsageError(
            f"the catalog is not read: {CATALOG}.type must be sql, or rest with a URL and a token",
            hint=BY_HAND,
        )
    side: Document = {"kind": "files", "paths": [table], "format": "iceberg", "catalog": catalog}
    if store := _given(STORE, config) | _given(TABLE_STORE, config):
        side["store"] = store
    return Resolved(side=side, topic={"row": row}, members=members, secrets=with_providers(access))


def _given(names: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return the settings that have a value, by other names."""
    return {name: value for name, setting in names.items() if (value := config.get(setting))}


def _directory(config: Config) -> str:
    """Return the lake as a local path, or as a URL of S3."""
    url = config.get("lake.url") or ""
    parts = urlsplit(url)
    if "${" in url:
        raise UsageError("lake.url is a reference to a config provider", hint=BY_HAND)
    if parts.scheme in {"s3", "s3a"} and parts.netloc:
        return f"s3://{parts.netloc}{parts.path.rstrip('/')}"
    if parts.scheme not in {"", "file"} or not parts.path.startswith("/"):
        raise UsageError("lake.url is neither a local path nor in S3", hint=BY_HAND)
    return parts.path if parts.scheme else url
