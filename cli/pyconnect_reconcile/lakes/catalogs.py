"""Iceberg tables: the catalog says where the metadata is, and Spark's reader does the rest.

That file never changes, so what is read is one snapshot, however long the sink goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pyconnect_reconcile.database_tables.copies import copied
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.file_side import SQL, Catalog
from pyconnect_reconcile.files import FixedFiles
from pyconnect_reconcile.properties import store_properties
from pyconnect_reconcile.table_side import TableSide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 15.0
NOT_FOUND = 404
SEPARATOR = "\x1f"
"""Between the levels of a namespace, in the REST protocol."""
CATALOG_CONF = "spark.sql.catalog.default_iceberg"
"""The catalog under which the reader loads a path; without it, it would look for Hive."""


def current_table(
    session: Callable[[], SparkSession],
    table: str,
    catalog: Catalog,
    properties: str | None,
    directory: Path,
) -> FixedFiles:
    """Return the table's metadata as the one file to read; ReconcileError if there is none."""
    if catalog.kind == SQL:
        location = _metadata_in_database(session, table, catalog, properties, directory)
    else:
        location = metadata_in_service(table, catalog, properties)
    if location is None:
        raise ReconcileError(f"the catalog has no table {table} yet")
    if urlsplit(location).scheme not in {"", "file"}:
        raise ReconcileError(
            f"{table} is in {urlsplit(location).scheme}://, and only tables on local paths are read"
        )
    conf = session().conf
    conf.set(CATALOG_CONF, "org.apache.iceberg.spark.SparkCatalog")
    conf.set(f"{CATALOG_CONF}.type", "hadoop")
    conf.set(f"{CATALOG_CONF}.warehouse", directory.absolute().as_uri())
    return FixedFiles(listed=(location if "://" in location else f"file://{location}",))


def _metadata_in_database(
    session: Callable[[], SparkSession],
    table: str,
    catalog: Catalog,
    properties: str | None,
    directory: Path,
) -> str | None:
    namespace, _, name = table.rpartition(".")
    tables = TableSide(
        url=catalog.url, table="iceberg_tables", properties=properties, options=catalog.options
    )
    rows = copied(session, tables, directory).frame
    found = rows.where(
        (rows.catalog_name == catalog.name)
        & (rows.table_namespace == namespace)
        & (rows.table_name == name)
    ).collect()
    return str(found[0].metadata_location) if found else None


def metadata_in_service(table: str, catalog: Catalog, properties: str | None) -> str | None:
    """Return where a REST catalog has the metadata, None for a table that it does not know."""
    import httpx

    token = store_properties(properties).get("token")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    namespace, _, name = table.rpartition(".")
    levels = quote(namespace.replace(".", SEPARATOR), safe="")
    asked = {"warehouse": catalog.warehouse} if catalog.warehouse else {}
    base = f"{catalog.url.rstrip('/')}/v1"
    try:
        with httpx.Client(headers=headers, timeout=TIMEOUT_S) as client:
            config = client.get(f"{base}/config", params=asked).raise_for_status().json()
            given = {**config.get("defaults", {}), **config.get("overrides", {})}
            prefix = f"/{given['prefix']}" if given.get("prefix") else ""
            url = f"{base}{prefix}/namespaces/{levels}/tables/{quote(name, safe='')}"
            answer = client.get(url)
            if answer.status_code == NOT_FOUND:
                return None
            return str(answer.raise_for_status().json()["metadata-location"])
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError) as exc:
        lines = str(exc).splitlines()
        raise ReconcileError(
            f"the catalog does not answer for {table}: {lines[0] if lines else exc!r}"
        ) from exc
