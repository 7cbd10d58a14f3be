"""Kafka's jars by plain downloads from the Maven repository that the user names.

The list of jars is known with their checksums, so nothing has to be resolved. The cache compares
the checksums; the address need not be trusted.
"""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyconnect_sandbox.coordinates import known_paths
from pyconnect_sandbox.errors import JarResolutionFailed
from pyconnect_sandbox.progress import Progress

ADDRESS_VARIABLE = "PYCONNECT_MAVEN_REPOSITORY"
_AT_ONCE = 4
_SILENCE_S = 60.0


def download_jars(address: str, libs: Path, *, progress: Progress) -> None:
    """Put each of Kafka's jars below `address` into `libs`.

    Raises JarResolutionFailed at the first jar that does not come.
    """

    def download(path: str) -> str:
        name = path.rpartition("/")[2]
        url = f"{address.rstrip('/')}/{path}"
        try:
            with (
                # The address is the user's choice, a local copy included.
                urllib.request.urlopen(url, timeout=_SILENCE_S) as source,  # noqa: S310
                (libs / name).open("wb") as target,
            ):
                shutil.copyfileobj(source, target)
        except (OSError, ValueError) as exc:
            reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
            raise JarResolutionFailed(
                f"{path} could not be downloaded: {reason}",
                hint=f"{ADDRESS_VARIABLE} must be the address of a Maven repository",
            ) from exc
        return name

    with ThreadPoolExecutor(_AT_ONCE, "download") as pool:
        try:
            for count, name in enumerate(pool.map(download, known_paths()), start=1):
                progress(f"fetched {name} ({count})", passing=True)
        finally:
            pool.shutdown(cancel_futures=True)
