"""Files of S3 and Iceberg tables, which Spark cannot reach by a path.

Spark has no S3 client of its own: files are copied to the run's directory, each through memory in
pieces. The copies are removed with the run. pyarrow reads the store; LakeSink writes with another
library.

The catalog of an Iceberg table names the metadata file, and Spark's reader does the rest. That
file never changes, so a run reads one snapshot while the sink goes on.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.data_sides import SQL, FileSide, IcebergCatalog, Store, TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import FixedFiles, complete_files, int96_columns, is_data
from pyconnect_reconcile.properties import store_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GZIP = b"\x1f\x8b"
PIECE_BYTES = 8 * 2**20
AT_ONCE = 4
TIMEOUT_S, STORE_TIMEOUT_S = 15.0, 10.0
NOT_FOUND = 404
SEPARATOR = "\x1f"
"""The separator of a namespace's levels in the REST protocol."""
NAME_MAPPING = "schema.name-mapping.default"
"""The property of a table that has files of other writers."""
NAMESPACE, NAME = "audited", "table"
"""The name of each table in its own catalog in Spark."""
S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
MOUNTS = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
LOCAL = "org.apache.hadoop.fs.LocalFileSystem"
"""Hadoop's file system for the copies, to which it maps the URLs in a table's metadata."""


def downloaded(
    url: str, store: Store, properties: str | None, read: Sequence[str] | None, directory: Path
) -> FixedFiles:
    """Copy the files below a URL; `read` names those that a source has read to the end."""
    if not copy_files(url, store, properties, directory, rename=read is None):
        raise ReconcileError(f"{url}: there are no files yet")
    places = None if read is None else [str(directory / name.partition("://")[2]) for name in read]
    return complete_files([str(directory / url.partition("://")[2].rstrip("/"))], places)


def copy_files(
    url: str, store: Store, properties: str | None, directory: Path, *, rename: bool = False
) -> int:
    """Copy the files below a URL to `directory/bucket/path`; return the number of files.

    With `rename` files in gzip format get the ending `.gz`.
    """
    try:
        from pyarrow.fs import FileSelector, S3FileSystem
    except ImportError as exc:
        raise ReconcileError(
            "files of S3 are read with pyarrow, which is not installed",
            hint=f"install it: {install_command('lake')}",
        ) from exc
    access = store_properties(properties)
    root = url.partition("://")[2].rstrip("/")
    try:
        system = S3FileSystem(
            access_key=access.get("access_key"),
            secret_key=access.get("secret_key"),
            region=store.region,
            endpoint_override=store.endpoint,
            connect_timeout=STORE_TIMEOUT_S,
        )
        there = system.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
        names = [
            info.path for info in there if info.is_file and is_data(info.path.removeprefix(root))
        ]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            copies = [pool.submit(_copy, system, name, directory, rename=rename) for name in names]
            for copied in copies:
                copied.result()
    except OSError as exc:
        lines = str(exc).splitlines()
        raise ReconcileError(f"{url} cannot be read: {lines[0] if lines else exc!r}") from exc
    return len(names)


def _copy(system: Any, name: str, directory: Path, *, rename: bool) -> None:
    target = directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # Otherwise pyarrow unpacks files that end in .gz, and Spark unpacks them again.
    with system.open_input_stream(name, compression=None) as source:
        head = source.read(len(GZIP))
        if rename and head == GZIP and target.suffix != ".gz":
            # Spark unpacks by the name, but Aiven's sink packs files whatever their name template
            # is.
            target = target.with_name(f"{target.name}.gz")
        with target.open("xb") as copy:
            copy.write(head)
            shutil.copyfileobj(source, copy, PIECE_BYTES)


def current_table(
    session: Callable[[], SparkSession], side: FileSide, catalog: IcebergCatalog, directory: Path
) -> FixedFiles:
    """Return a table of Iceberg as a table in Spark; ReconcileError if the catalog has none.

    Spark keeps the first settings of a catalog until the process ends, so each table has its own.
    """
    (table,) = side.paths
    if catalog.kind == SQL:
        # The import loads Spark, which files of a store do not need.
        from pyconnect_reconcile.stores.tables import copied

        namespace, _, name = table.rpartition(".")
        tables = TableSide(
            url=catalog.url,
            table="iceberg_tables",
            properties=side.properties,
            options=catalog.options,
        )
        rows = copied(session, tables, directory).frame
        found = rows.where(
            (rows.catalog_name == catalog.name)
            & (rows.table_namespace == namespace)
            & (rows.table_name == name)
        ).collect()
        location = str(found[0].metadata_location) if found else None
    else:
        location = metadata_in_service(table, catalog, side.properties)
    if location is None:
        raise ReconcileError(f"the catalog has no table {table} yet")
    scheme = urlsplit(location).scheme or "file"
    warehouse = (directory / "catalog").absolute()
    conf = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": warehouse.as_uri(),
    }
    if scheme in S3_SCHEMES:
        metadata, conf_of_copies = _copied_table(table, location, side, directory)
        conf |= conf_of_copies
    elif scheme == "file":
        metadata = Path("/" + location.removeprefix("file:").lstrip("/"))
    else:
        raise ReconcileError(
            f"{table} is in {scheme}://; tables are read on local paths and in S3 only"
        )
    version = warehouse / NAMESPACE / NAME / "metadata" / f"v1{_ending(metadata.name)}"
    version.parent.mkdir(parents=True)
    shutil.copyfile(metadata, version)
    (version.parent / "version-hint.text").write_text("1")
    own = f"audited_{uuid4().hex}"
    for name, value in conf.items():
        session().conf.set(f"spark.sql.catalog.{own}{name}", value)
    content = metadata.read_bytes()
    if _ending(metadata.name) != ".metadata.json":
        content = gzip.decompress(content)
    found = json.loads(content)
    # Older writers wrote -1 for no snapshot.
    number = None if found.get("current-snapshot-id") == -1 else found.get("current-snapshot-id")
    snapshot = {"table_uuid": found.get("table-uuid"), "snapshot_id": number}
    name = f"{own}.{NAMESPACE}.{NAME}"
    odd = None
    # Iceberg writes no INT96. A table has this mapping for files of other writers.
    if NAME_MAPPING in found.get("properties", {}):
        odd = _with_nanoseconds(session(), name, directory if scheme in S3_SCHEMES else Path("/"))
    return FixedFiles(table=name, snapshot=snapshot, nanoseconds=odd)


def _with_nanoseconds(spark: SparkSession, table: str, root: Path) -> str | None:
    """Return a data file that may have timestamps of nanoseconds; paths are below `root`."""
    for row in spark.read.format("iceberg").load(f"{table}.files").collect():
        file = root / re.sub("^[a-z0-9]+:/*", "", str(row.file_path)).lstrip("/")
        form = str(row.file_format).lower()
        if form == "orc" or (form == "parquet" and int96_columns(str(file))):
            return str(row.file_path)
    return None


def _ending(name: str) -> str:
    """Return the ending of a metadata file, which shows Iceberg whether it is compressed."""
    return next(
        (end for end in (".gz.metadata.json", ".metadata.json.gz") if name.endswith(end)),
        ".metadata.json",
    )


def _copied_table(
    table: str, location: str, side: FileSide, directory: Path
) -> tuple[Path, dict[str, str]]:
    """Copy a table of S3; return its metadata file, and settings that map URLs to the copies."""
    root, metadata, _ = location.rpartition("/metadata/")
    if not metadata:
        raise ReconcileError(f"{table} has its metadata in another place than below its location")
    copy_files(root, side.store or Store(), side.properties, directory)
    url = urlsplit(root)
    copy = (directory / f"{url.netloc}{url.path}").absolute()
    return copy / "metadata" / location.rpartition("/")[2], {
        f".hadoop.fs.{url.scheme}.impl": MOUNTS,
        # Another run or side in this process has other copies for the same bucket.
        f".hadoop.fs.{url.scheme}.impl.disable.cache": "true",
        f".hadoop.fs.viewfs.overload.scheme.target.{url.scheme}.impl": LOCAL,
        f".hadoop.fs.viewfs.mounttable.{url.netloc}.link.{url.path}": copy.as_uri(),
    }


def metadata_in_service(table: str, catalog: IcebergCatalog, properties: str | None) -> str | None:
    """Return the URL of a table's metadata in a REST catalog; None for an unknown table."""
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
