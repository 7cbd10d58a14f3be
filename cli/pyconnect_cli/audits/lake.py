"""The files of LakeSource and LakeSink as sides of a compare. Pure.

What these settings mean is described in docs/reference/connectors-lake.md. Files never change, so
those that are there when a run begins are read, while the connector goes on.
"""

from __future__ import annotations

import posixpath
from urllib.parse import urlsplit

from pyconnect_cli.audits.audited import Audited, Config, Document, Resolved
from pyconnect_cli.errors import UsageError

BY_HAND = "name the files yourself: --files with --format and --column"
OPTIONS = {
    "csv": {"multiLine": "true", "escape": '"'},
    "parquet": {"mergeSchema": "true"},
}


def written_lake(connector: Audited) -> Resolved:
    """Return the directory of the topic's files."""
    config = connector.config
    written = config.get("format.class") or "parquet"
    if written not in {"parquet", "json"}:
        raise UsageError(f"files of format.class={written} are not audited", hint=BY_HAND)
    if len(connector.topics) != 1:
        raise UsageError(
            f"{connector.name} has {len(connector.topics)} topics, and a run compares one",
            hint="name it: --topic " + (connector.topics[0] if connector.topics else "TOPIC"),
        )
    (topic,) = connector.topics
    topics_dir = config.get("topics.dir")
    path = posixpath.join(_directory(config), "topics" if topics_dir is None else topics_dir, topic)
    side: Document = {"kind": "files", "paths": [path], "format": written, "complete": True}
    exactly_once = (config.get("delivery.guarantee") or "exactly-once") == "exactly-once"
    return _resolved(config, side, {"mode": "append", "duplicates_allowed": not exactly_once})


def read_lake(connector: Audited) -> Resolved:
    """Return the directory of the files, and those that were read to their end."""
    config = connector.config
    if config.get("file.pattern"):
        raise UsageError("file.pattern chooses files, which an audit does not", hint=BY_HAND)
    read = config.get("format.class") or "parquet"
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
    side: Document = {
        "kind": "files",
        "paths": [posixpath.join(root, (config.get("prefix") or "").strip("/")).rstrip("/")],
        "format": read,
        "complete": True,
        "read": sorted(posixpath.join(root, file) for file in done),
    }
    return _resolved(config, side, {"mode": "append"})


def _resolved(config: Config, side: Document, members: Document) -> Resolved:
    if config.get("transforms"):
        raise UsageError(
            "the connector's transformations change records: rows cannot be found from the config",
            hint=BY_HAND,
        )
    plain = (config.get("value.converter.schemas.enable") or "true").lower() == "false"
    # Directories of partitions are no columns of the rows.
    options = {"recursiveFileLookup": "true"}
    side["options"] = options | OPTIONS.get(str(side["format"]), {})
    if side["format"] == "json":
        if not plain:
            raise UsageError(
                "JSON files have no schemas, but the topic's values have",
                hint=BY_HAND,
            )
        side["value"] = "json"
        return Resolved(side=side, topic={"value": "json"}, members=members)
    form = (config.get("value.converter.decimal.format") or "base64").lower()
    decimals = "numeric" if form == "numeric" else "base64"
    return Resolved(
        side=side, topic={"row": {"of": "value", "decimals": decimals}}, members=members
    )


def _directory(config: Config) -> str:
    url = config.get("lake.url") or ""
    parts = urlsplit(url)
    if "${" in url or parts.scheme not in {"", "file"} or not parts.path.startswith("/"):
        raise UsageError("lake.url is not a local path, which this audit reads", hint=BY_HAND)
    return parts.path if parts.scheme else url
