"""A per-user cache of jars, Kafka's or Spark's: filled once, by one process, complete or not there.

Layout of `<user cache>/pyconnect/kafka/<version>/`: `libs/` with the jars and `manifest.json`
with the size and SHA-256 of each. The jars are fetched into a directory beside it, which is renamed
when it is complete, under an exclusive `flock`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from pyconnect_sandbox.errors import JarResolutionFailed
from pyconnect_sandbox.progress import Progress

MANIFEST = "manifest.json"
GIVEN_JARS = "Kafka's own jars can also be given: --kafka-dir"


def cache_root() -> Path:
    """Return the directory that holds one directory per Kafka version."""
    return user_cache_path("pyconnect") / "kafka"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class JarCache:
    def __init__(
        self, version: str, checksums: Mapping[str, str], root: Path | None = None
    ) -> None:
        """Expect `checksums` (SHA-256 by file name) of the jars; `root` None is the user's."""
        self._root = cache_root() if root is None else root
        self._checksums = checksums
        self._version = version
        self.directory = self._root / version

    @property
    def libs(self) -> Path:
        return self.directory / "libs"

    def is_complete(self, *, check_contents: bool = False) -> bool:
        """Return whether every recorded jar is there with its size, and its SHA-256 when asked.

        A cache that an older list of jars has filled is not complete.
        """
        try:
            manifest = json.loads((self.directory / MANIFEST).read_text())
            return (
                bool(manifest["jars"])
                and manifest["jars"].keys() >= set(self._checksums)
                and all(
                    (self.libs / name).stat().st_size == recorded["bytes"]
                    and (not check_contents or sha256_of(self.libs / name) == recorded["sha256"])
                    for name, recorded in manifest["jars"].items()
                )
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False

    def fill(self, fetch: Callable[[Path, Path], None], progress: Progress) -> Path:
        """Return the directory of the jars, fetched unless they are there already.

        `fetch(work_directory, libs)` puts the jars into `libs` and may use `work_directory`.
        Raises JarResolutionFailed when a jar is missing or differs from the known ones; the cache
        is then as before.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        with self._lock(progress):
            if self.is_complete():
                return self.libs
            with tempfile.TemporaryDirectory(dir=self._root, prefix=".fetching-") as temporary:
                work_directory = Path(temporary)
                candidate = work_directory / "complete"
                libs = candidate / "libs"
                libs.mkdir(parents=True)
                fetch(work_directory, libs)
                self._verify(libs)
                jars = {
                    path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
                    for path in sorted((candidate / "libs").glob("*.jar"))
                }
                manifest = {"version": self._version, "jars": jars}
                (candidate / MANIFEST).write_text(json.dumps(manifest, indent=1))
                if self.directory.exists():
                    shutil.rmtree(self.directory)
                candidate.rename(self.directory)
        return self.libs

    @contextmanager
    def _lock(self, progress: Progress) -> Iterator[None]:
        descriptor = os.open(
            self._root / f"{self._version}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress("another process is fetching these jars: waiting for it")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _verify(self, libs: Path) -> None:
        missing = sorted(name for name in self._checksums if not (libs / name).exists())
        if missing:
            raise JarResolutionFailed(
                f"These jars of version {self._version} were not fetched: {', '.join(missing)}",
                hint=f"run the command again; {GIVEN_JARS}",
            )
        altered = sorted(
            name for name, checksum in self._checksums.items() if sha256_of(libs / name) != checksum
        )
        if altered:
            raise JarResolutionFailed(
                f"These jars differ from the known ones of version {self._version}:"
                f" {', '.join(altered)}",
                hint="the repository has altered or damaged them: use another repository;"
                f" {GIVEN_JARS}",
            )
