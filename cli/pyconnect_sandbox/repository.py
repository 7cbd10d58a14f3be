"""Files of a Maven repository by plain downloads, each named by its path.

The paths are known together with their checksums (`coordinates`, `JarCache`), so nothing has to be
resolved and the repository need not be trusted. Maven Central is asked, or the repository that
PYCONNECT_MAVEN_REPOSITORY names. The library jgo, of the extra `jars`, knows both.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pyconnect_clients.installation import install_command
from pyconnect_sandbox.errors import JarResolutionFailed, JarsUnavailable
from pyconnect_sandbox.progress import Progress

if TYPE_CHECKING:
    from jgo.maven import Artifact, MavenContext

ADDRESS_VARIABLE = "PYCONNECT_MAVEN_REPOSITORY"
OTHER_WAYS = (
    f"for a repository of your own set {ADDRESS_VARIABLE} to its http(s) address;"
    " Kafka's jars can also be given by --kafka-dir or KAFKA_HOME"
)
_AT_ONCE = 4
_SILENCE_S = 60


def download(
    paths: Iterable[str],
    directory: Path,
    *,
    environment: Mapping[str, str],
    progress: Progress,
) -> None:
    """Put the file of each path into `directory`, under its own name.

    A path is `<group with slashes>/<artifact>/<version>/<file>`. Raises JarsUnavailable without
    jgo, and JarResolutionFailed at the first file that does not come.
    """
    context = _context(environment.get(ADDRESS_VARIABLE), directory / ".downloaded")

    def fetch(path: str) -> str:
        try:
            fetched = _artifact(context, PurePosixPath(path)).resolve()
        # jgo raises RuntimeError, and what requests raises is an OSError.
        except (OSError, RuntimeError, ValueError) as exc:
            raise JarResolutionFailed(
                f"{path} could not be downloaded: {exc}",
                hint=f"check the network and its proxy settings, then run the command again;"
                f" {OTHER_WAYS}",
            ) from exc
        shutil.move(fetched, directory / fetched.name)
        return fetched.name

    with ThreadPoolExecutor(_AT_ONCE, "download") as pool:
        try:
            for count, name in enumerate(pool.map(fetch, paths), start=1):
                progress(f"fetched {name} ({count})", passing=True)
        finally:
            pool.shutdown(cancel_futures=True)
    shutil.rmtree(context.repo_cache, ignore_errors=True)


def _context(address: str | None, downloaded: Path) -> MavenContext:
    try:
        from jgo.maven import MavenContext
    except ModuleNotFoundError as exc:
        raise JarsUnavailable(
            "Jars cannot be fetched: the library jgo is not installed",
            hint=f"install it: {install_command('jars')}; {OTHER_WAYS}",
        ) from exc
    repositories = {"repository": address.rstrip("/")} if address else None
    return MavenContext(repo_cache=downloaded, remote_repos=repositories, timeout=_SILENCE_S)


def _artifact(context: MavenContext, path: PurePosixPath) -> Artifact:
    version, artifact = path.parent.name, path.parent.parent.name
    group = ".".join(path.parent.parent.parent.parts)
    rest = path.name.removeprefix(f"{artifact}-{version}")
    classifier, _, packaging = rest.removeprefix("-").partition(".")
    component = context.project(group, artifact).at_version(version)
    return component.artifact(classifier, packaging)
