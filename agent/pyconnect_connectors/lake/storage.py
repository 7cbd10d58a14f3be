"""The storage of a lake: local directories, S3, Google Cloud Storage and Azure, through obstore.

Nothing half-written is ever visible: object stores publish an object when its upload ends, and
local files are written beside their place, synchronised, and linked to it. Errors become Connect's;
their texts leave out the query of a URL, which may hold a signature.
"""

from __future__ import annotations

import errno
import io
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import LocalStore, ObjectStore, from_url

from pyconnect_api import ConfigException, ConnectException, DataException, RetriableException
from pyconnect_connectors.lake.settings import Location

CONNECT_TIMEOUT = timedelta(seconds=5)
REQUEST_TIMEOUT = timedelta(seconds=60)
HIDDEN_DIR = "_pyconnect"
"""Readers of a lake skip this directory, as every name that begins with an underscore."""
READ_BYTES = 1024 * 1024
LONGEST_NAME_BYTES = 255
LONGEST_PATH_BYTES = 4000
LONGEST_KEY_BYTES = 900
"""The limit of object stores is 1024, which counts the prefix as well."""
_LONGEST_TEXT = 300
_PERMANENT = (
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
    FileNotFoundError,
    PermissionError,
    ValueError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file's path below the lake's directory."""

    path: str
    size: int
    modified: datetime


class Storage:
    """Files below the lake's directory. Methods raise ConnectException or RetriableException."""

    def __init__(self, store: ObjectStore, directory: Path | None) -> None:
        self._store = store
        self._directory = directory

    @classmethod
    def open(cls, location: Location, *, writes: bool) -> Storage:
        """Return a storage without connecting to it; `writes` creates a local directory."""
        path = location.local_path
        with storage_errors("Cannot open the lake"):
            if path is not None:
                return cls(LocalStore(str(path), mkdir=writes), Path(path))
            return cls(_remote_store(location), None)

    def check_path(self, path: str) -> None:
        """Raise DataException if the storage cannot have this path of a row's file."""
        names = path.split("/")
        if not {"", ".", ".."}.isdisjoint(names) or "\0" in path:
            raise DataException("The row's file would have a path that is not below the lake")
        longest = max(len(name.encode()) for name in names)
        if self._directory is not None and longest > LONGEST_NAME_BYTES:
            raise DataException(
                f"The row's file would have a path with a name of {longest} bytes; "
                f"the limit is {LONGEST_NAME_BYTES}"
            )
        size, limit = len(path.encode()), LONGEST_KEY_BYTES
        if self._directory is not None:
            size, limit = size + len(bytes(self._directory)), LONGEST_PATH_BYTES
        if size > limit:
            raise DataException(
                f"The row's file would have a path of {size} bytes; the limit is {limit}"
            )

    def create(self, path: str, data: Any) -> bool:
        """Store a file unless it exists; return whether it was stored. `data` is a buffer."""
        with storage_errors(f"Cannot write {path}"):
            if self._directory is None:
                try:
                    obstore.put(self._store, path, _octets(data), mode="create")
                except AlreadyExistsError:
                    return False
                return True
            staged = self._stage(data)
            target = self._target(path)
            try:
                os.link(staged, target)
            except FileExistsError:
                return False
            finally:
                staged.unlink()
            _synchronise(target.parent)
            return True

    def replace(self, path: str, data: Any) -> None:
        """Store a file, or replace the existing one."""
        with storage_errors(f"Cannot write {path}"):
            if self._directory is not None:
                staged = self._stage(data)
                target = self._target(path)
                staged.replace(target)
                _synchronise(target.parent)
            else:
                obstore.put(self._store, path, _octets(data), use_multipart=False)

    def read(self, path: str) -> bytes:
        with storage_errors(f"Cannot read {path}"):
            return obstore.get(self._store, path).bytes().to_bytes()

    def open_file(self, path: str) -> IO[bytes]:
        """Return a file that can be read from any place; the caller translates its errors."""
        if self._directory is not None:
            return (self._directory / path).open("rb")
        return io.BufferedReader(_RemoteFile(self._store, path), READ_BYTES)

    def exists(self, path: str) -> bool:
        with storage_errors(f"Cannot look for {path}"):
            try:
                obstore.head(self._store, path)
            except FileNotFoundError:
                return False
            return True

    def files(self, prefix: str) -> list[StoredFile]:
        """Return the files below a directory, unordered; none if the directory does not exist."""
        with storage_errors(f"Cannot list {prefix or 'the lake'}"):
            return [
                StoredFile(path=meta["path"], size=meta["size"], modified=meta["last_modified"])
                for chunk in obstore.list(self._store, prefix or None)
                for meta in chunk
            ]

    def delete(self, path: str) -> None:
        with storage_errors(f"Cannot delete {path}"):
            obstore.delete(self._store, path)

    def check(self) -> None:
        """Reach the storage once."""
        with storage_errors("Cannot reach the lake"):
            next(iter(obstore.list(self._store, HIDDEN_DIR, chunk_size=1)), None)

    def _stage(self, data: Any) -> Path:
        """Write a file where no reader looks; return its path once it is on the disk."""
        assert self._directory is not None
        staged = self._directory / HIDDEN_DIR / "staged" / uuid.uuid4().hex
        staged.parent.mkdir(parents=True, exist_ok=True)
        with staged.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return staged

    def _target(self, path: str) -> Path:
        assert self._directory is not None
        target = self._directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


class _RemoteFile(io.RawIOBase):
    """An object of a store as a raw file of Python."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._reader = obstore.open_reader(store, path, buffer_size=READ_BYTES)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._reader.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._reader.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        data = memoryview(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def _octets(data: Any) -> memoryview:
    """Return a buffer of unsigned bytes, as the library needs it; Arrow's are signed."""
    return memoryview(data).cast("B")


def _synchronise(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remote_store(location: Location) -> ObjectStore:
    config: dict[str, object] = {}
    match location.scheme:
        case "s3" | "s3a":
            config = {
                "access_key_id": location.access_key,
                "secret_access_key": location.secret_key and location.secret_key.value,
                "region": location.region,
                "endpoint": location.endpoint,
            }
        case "gs":
            config = {"service_account": location.gcs_credentials, "base_url": location.endpoint}
        case _:
            config = {
                "account_name": location.azure_account,
                "account_key": location.azure_key and location.azure_key.value,
                "endpoint": location.endpoint,
            }
    given: Any = {name: value for name, value in config.items() if value is not None}
    try:
        return from_url(
            location.url,
            config=given,
            client_options={
                "allow_http": (location.endpoint or "").startswith("http://"),
                "connect_timeout": CONNECT_TIMEOUT,
                "timeout": REQUEST_TIMEOUT,
            },
            # Only the task repeats the call, so that it knows that an outcome is unknown.
            retry_config={"max_retries": 0, "retry_timeout": REQUEST_TIMEOUT},
        )
    except (BaseError, ValueError) as error:
        # The text of a key that is not valid would show one of its characters.
        text = reason(error).partition(": Invalid symbol")[0]
        raise ConfigException(f"lake.url cannot be used: {text}") from None


@contextmanager
def storage_errors(action: str) -> Iterator[None]:
    """Raise the library's errors as RetriableException or ConnectException."""
    try:
        yield
    except _PERMANENT as error:
        raise ConnectException(f"{action}: {reason(error)}") from None
    except (BaseError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            raise ConnectException(f"{action}: {reason(error)}") from None
        raise RetriableException(f"{action}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Return the first line of an error's text without queries of URLs, shortened."""
    lines = str(error).strip().splitlines()
    text = re.sub(r"\?\S*", "", lines[0]) if lines else type(error).__name__
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
