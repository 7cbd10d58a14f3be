"""Files of S3, copied to the run's directory, as Spark has no S3 client of its own.

Each file goes through memory in pieces. The copies are gone with the run. pyarrow reads the store,
another library than the one that LakeSink writes with.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.file_side import Store
from pyconnect_reconcile.files import FixedFiles, complete_files, is_data
from pyconnect_reconcile.properties import store_properties

GZIP = b"\x1f\x8b"
PIECE_BYTES = 8 * 2**20
AT_ONCE = 4
TIMEOUT_S = 10.0


def downloaded(
    url: str,
    store: Store,
    properties: str | None,
    read: Sequence[str] | None,
    directory: Path,
) -> FixedFiles:
    """Copy the files below a URL; `read` are those of them that a source has read to the end."""
    if not copy_files(url, store, properties, directory, rename=read is None):
        raise ReconcileError(f"{url}: there are no files yet")
    places = None if read is None else [str(directory / name.partition("://")[2]) for name in read]
    return complete_files([str(directory / url.partition("://")[2].rstrip("/"))], places)


def copy_files(
    url: str, store: Store, properties: str | None, directory: Path, *, rename: bool = False
) -> int:
    """Copy what is below a URL to `directory/bucket/path`; return the number of files.

    With `rename` files that gzip has packed get its ending.
    """
    root = url.partition("://")[2].rstrip("/")
    with _errors_translated(url):
        system = _file_system(store, properties)
        names = [name for name in _listed(system, root) if is_data(name.removeprefix(root))]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for copied in [
                pool.submit(_copy, system, name, directory, rename=rename) for name in names
            ]:
                copied.result()
    return len(names)


def _file_system(store: Store, properties: str | None) -> Any:
    try:
        from pyarrow.fs import S3FileSystem
    except ImportError as exc:
        raise ReconcileError(
            "files of S3 are read with pyarrow, which is not installed",
            hint=f"install it: {install_command('lake')}",
        ) from exc
    access = store_properties(properties)
    return S3FileSystem(
        access_key=access.get("access_key"),
        secret_key=access.get("secret_key"),
        region=store.region,
        endpoint_override=store.endpoint,
        connect_timeout=TIMEOUT_S,
    )


def _listed(system: Any, root: str) -> list[str]:
    from pyarrow.fs import FileSelector

    selector = FileSelector(root, recursive=True, allow_not_found=True)
    return [info.path for info in system.get_file_info(selector) if info.is_file]


def _copy(system: Any, name: str, directory: Path, *, rename: bool) -> None:
    target = directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # Else pyarrow unpacks what ends in .gz, and Spark does so again.
    with system.open_input_stream(name, compression=None) as source:
        head = source.read(len(GZIP))
        if rename and head == GZIP and target.suffix != ".gz":
            # Spark unpacks by the name; Aiven's sink packs whatever its template says.
            target = target.with_name(f"{target.name}.gz")
        with target.open("xb") as copy:
            copy.write(head)
            shutil.copyfileobj(source, copy, PIECE_BYTES)


@contextmanager
def _errors_translated(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        lines = str(exc).splitlines()
        raise ReconcileError(f"{url} cannot be read: {lines[0] if lines else exc!r}") from exc
