"""The tables and files of our connectors for databases and lakes as sides of a compare. Pure.

The settings are described in docs/reference/connectors-sql.md and connectors-lake.md. Spark reads a
table over JDBC; Python's own driver reads a table of SQLite. Files of a lake never change, so a run
reads those that exist at its beginning, while the connector continues. It reads the snapshot of an
Iceberg table that the catalog names at that time.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.connectors import (
    Audited,
    Config,
    Document,
    Resolved,
    value_form,
    with_providers,
)

BY_HAND = "name the data yourself: --table with --jdbc-url, --jdbc-properties and --column"
TLS_PARAMETERS = {"sslmode": "sslmode", "sslrootcert": "sslrootcert"}
PLACES = frozenset(
    {"host", "hostaddr", "port", "dbname", "database", "db", "service", "unix_socket"}
    | {"read_default_file", "read_default_group", "init_command"}
)
"""Parameters of drivers that override the rest of a URL, or change the session."""
HOIST_FIELD = "org.apache.kafka.connect.transforms.HoistField$Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Database:
    """Spark's names for a database; `quote` encloses names."""

    scheme: str
    driver: str
    port: int
    quote: str


_POSTGRESQL = _Database(scheme="postgresql", driver="org.postgresql.Driver", port=5432, quote='"')
# Spark knows MariaDB's quotes and types under MySQL's scheme only.
_MARIADB = _Database(scheme="mysql", driver="org.mariadb.jdbc.Driver", port=3306, quote="`")
_DATABASES = {"postgresql": _POSTGRESQL, "mysql": _MARIADB, "mariadb": _MARIADB}


def read_table(connector: Audited) -> Resolved:
    """Return the table that a SqlSource reads, with its committed offset."""
    config = connector.config
    _refuse_transformations(config)
    mode = config.get("mode") or ""
    if mode not in {"incrementing", "timestamp", "timestamp+incrementing"}:
        raise UsageError(
            f"mode={mode} has no offset: it is not known which rows were read",
            hint=f"stop the connector and {BY_HAND}",
        )
    query = config.get("query")
    prefix, tables = config.get("topic.prefix") or "", ["query"]
    if not query:
        tables = [topic.removeprefix(prefix) for topic in connector.topics]
    table = single_table(tables, connector)
    partition = "query" if query else "table"
    offsets = [
        entry.offset
        for entry in connector.offsets
        if (entry.partition or {}).get(partition) == table and entry.offset is not None
    ]
    if not offsets:
        raise UsageError(
            f"the connector has committed no offset of {table} yet, so nothing can be compared",
            hint="wait for offset.flush.interval.ms, then run it again",
        )
    side = database_side(config)
    side["table"] = (
        f"({query}) pyconnect_query"
        if query
        else _quoted(config, config.get("schema.pattern"), table)
    )
    position: Document = {}
    if mode != "incrementing":
        listed = config.get("timestamp.column.name") or ""
        position["timestamps"] = [name.strip() for name in listed.split(",") if name.strip()]
        position["timestamp"] = offsets[0].get("timestamp")
    if mode != "timestamp":
        position["incrementing"] = config.get("incrementing.column.name")
        position["number"] = offsets[0].get("incrementing")
    side["position"] = {name: value for name, value in position.items() if value is not None}
    members: Document = {"mode": "append" if mode == "incrementing" else "upsert"}
    row: Document = {"of": "key" if members["mode"] == "upsert" else "value"}
    return Resolved(
        side=side,
        topic={"row": row | decimals(config)},
        members=members,
        secrets=with_providers(database_access(config)),
    )


def written_table(connector: Audited) -> Resolved:
    """Return the table that a SqlSink writes, with the table of its offsets."""
    config = connector.config
    whole = hoisted_column(config)
    pattern = config.get("table.name.format") or "${topic}"
    names = [pattern.replace("${topic}", topic) for topic in connector.topics]
    name = single_table(names, connector)
    schema, _, table = name.partition(".") if "." in pattern else ("", "", name)
    side = database_side(config)
    side["table"] = _quoted(config, schema, table)
    if (config.get("delivery.guarantee") or "exactly-once") == "exactly-once":
        offsets = config.get("offsets.table.name") or "pyconnect_offsets"
        schema, _, table = offsets.rpartition(".")
        side["offsets"] = {"table": _quoted(config, schema, table), "connector": connector.name}
    of = {"record_key": "key", "kafka": "kafka"}.get(config.get("pk.mode") or "none", "value")
    fields = [name.strip() for name in (config.get("pk.fields") or "").split(",") if name.strip()]
    mode = config.get("insert.mode") or "insert"
    if mode == "update":
        raise UsageError(
            "insert.mode=update changes rows of other writers, and their keys are not known",
            hint=BY_HAND,
        )
    # Later records may change earlier rows.
    changed = mode == "upsert" or (config.get("delete.enabled") or "").strip().lower() == "true"
    return Resolved(
        side=side,
        topic={"row": {"of": of, "keys": fields, **decimals(config), **whole}},
        members={"mode": "upsert"} if changed else written_once(config),
        secrets=with_providers(database_access(config)),
    )


def decimals(config: Config) -> Document:
    """Return the member that says how JsonConverter writes decimals."""
    form = (config.get("value.converter.decimal.format") or "base64").lower()
    return {"decimals": "numeric" if form == "numeric" else "base64"}


def single_table(names: list[str], connector: Audited) -> str:
    """Return the only one of the names; UsageError says how to choose among several."""
    found = list(dict.fromkeys(names))
    if len(found) == 1 and found[0]:
        return found[0]
    raise UsageError(
        f"{connector.name} has {len(found)} tables, and a run compares one",
        hint="name its topic: --topic " + (connector.topics[0] if connector.topics else "TOPIC"),
    )


def hoisted_column(config: Config, by_hand: str = BY_HAND) -> Document:
    """Return the column that has the whole value of records; other transformations are refused."""
    name = (config.get("transforms") or "").strip()
    kind = config.get(f"transforms.{name}.type")
    field = config.get(f"transforms.{name}.field")
    text = (config.get("value.converter") or "").endswith("StringConverter")
    if kind == HOIST_FIELD and field and text and not config.get(f"transforms.{name}.predicate"):
        return {"whole": field}
    _refuse_transformations(config, by_hand)
    return {}


def _refuse_transformations(config: Config, by_hand: str = BY_HAND) -> None:
    if config.get("transforms"):
        raise UsageError(
            "the connector's transformations change records: rows cannot be found from the config",
            hint=by_hand,
        )


def database_side(config: Config) -> Document:
    """Return the address of the database without user, password and other parameters."""
    url = config.get("connection.url") or ""
    if "${" in url:
        raise UsageError("connection.url is a reference to a config provider", hint=BY_HAND)
    scheme = url.partition(":")[0].partition("+")[0]
    zone = {"zone": config["db.timezone"]} if config.get("db.timezone") else {}
    if scheme == "sqlite":
        place, _, path = url.partition("://")[2].partition("?")[0].partition("/")
        file = path if not place else ""
        if place:
            raise UsageError(
                "connection.url is that of a SQLite file with a host, user or password: SQLite has"
                " none of them",
                hint="write sqlite:////path/file.db in the connector's configuration",
            )
        if not file.startswith("/"):
            raise UsageError(
                "connection.url names a file in the worker's own directory",
                hint="name it yourself: --table with --jdbc-url jdbc:sqlite:/PATH",
            )
        return {"kind": "table", "url": f"jdbc:sqlite:{file}", **zone}
    database = _DATABASES.get(scheme)
    parts = urlsplit(url)
    if database is None or not parts.hostname or "," in parts.netloc:
        raise UsageError(
            "connection.url is not that of one PostgreSQL, MariaDB, MySQL or SQLite database",
            hint=BY_HAND,
        )
    given = dict(parse_qsl(parts.query))
    if elsewhere := sorted(given.keys() & PLACES):
        raise UsageError(
            f"connection.url has a parameter {elsewhere[0]}, which may lead to another database",
            hint=BY_HAND,
        )
    parameters = {new: given[name] for name, new in TLS_PARAMETERS.items() if name in given}
    if database is _POSTGRESQL and "options" in given:
        # The options may name the schema of tables, as -csearch_path=SCHEMA does.
        parameters["options"] = given["options"]
    if database is _MARIADB:
        # The driver accepts MySQL's scheme with this parameter.
        parameters["permitMysqlScheme"] = "true"
    query = f"?{urlencode(parameters)}" if parameters else ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return {
        "kind": "table",
        "url": f"jdbc:{database.scheme}://{host}:{parts.port or database.port}{parts.path}{query}",
        "options": {"driver": database.driver},
        **zone,
    }


def _quoted(config: Config, schema: str | None, table: str) -> str:
    scheme = (config.get("connection.url") or "").partition(":")[0].partition("+")[0]
    quote = _DATABASES[scheme].quote if scheme in _DATABASES else '"'
    names = [name for name in (schema, table) if name]
    return ".".join(f"{quote}{name.replace(quote, quote * 2)}{quote}" for name in names)


def database_access(config: Config) -> Mapping[str, str | None]:
    """Return user and password, as the config has them."""
    parts = urlsplit(config.get("connection.url") or "")
    return {
        "user": config.get("connection.user") or unquote(parts.username or ""),
        "password": config.get("connection.password") or unquote(parts.password or ""),
    }


FILES_BY_HAND = "name the files yourself: --files with --format and --column"
FORMATS = ("parquet", "json", "csv", "iceberg")
# Spark must not read directories of partitions as columns of the rows.
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
        raise UsageError(f"files of format.class={written} are not audited", hint=FILES_BY_HAND)
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
        raise UsageError("file.pattern chooses files, which an audit does not", hint=FILES_BY_HAND)
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
    whole = hoisted_column(config, FILES_BY_HAND)
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
                "JSON files have no schemas, but the topic's values have", hint=FILES_BY_HAND
            )
        side["value"] = "json"
        return Resolved(side=side, topic={"value": "json"}, members=members, secrets=secrets)
    if written == "text":
        return Resolved(side=side, topic={"value": "bytes"}, members=members, secrets=secrets)
    if written == "json":
        raise UsageError("hoisted values in JSON files are not audited", hint=FILES_BY_HAND)
    if written == "csv" and not whole and form not in {"connect-json", "json", None}:
        raise UsageError(
            "CSV files have no types: they are compared with values of JsonConverter only",
            hint=FILES_BY_HAND,
        )
    row = {"of": "value"} | decimals(config) | whole
    return Resolved(side=side, topic={"row": row}, members=members, secrets=secrets)


def _written_table(config: Config, topic: str, members: Document) -> Resolved:
    row = {"of": "value"} | decimals(config) | hoisted_column(config, FILES_BY_HAND)
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
            hint=FILES_BY_HAND,
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
        raise UsageError("lake.url is a reference to a config provider", hint=FILES_BY_HAND)
    if parts.scheme in {"s3", "s3a"} and parts.netloc:
        return f"s3://{parts.netloc}{parts.path.rstrip('/')}"
    if parts.scheme not in {"", "file"} or not parts.path.startswith("/"):
        raise UsageError("lake.url is neither a local path nor in S3", hint=FILES_BY_HAND)
    return parts.path if parts.scheme else url
