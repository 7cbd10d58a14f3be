"""Kafka's jars by Maven: `dependency:copy-dependencies` of a project made for it.

The user's own settings (mirrors, proxies, local repository) apply, as for any Maven build.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_sandbox.coordinates import COORDINATES, Coordinate
from pyconnect_sandbox.errors import JarResolutionFailed
from pyconnect_sandbox.progress import Progress, run_with_progress

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_DOWNLOADED = re.compile(
    r"^(?:\[INFO\] )?Downloaded from \S+: \S+/(?P<file>[^/\s]+\.(?:jar|tar\.gz))\b"
)


def find_maven(environment: Mapping[str, str]) -> Path | None:
    """Return Maven's command, or None when it is not on the path."""
    found = shutil.which("mvn", path=environment.get("PATH"))
    return Path(found) if found else None


def project(coordinates: Sequence[Coordinate]) -> str:
    """Return a pom.xml that depends on `coordinates`."""
    dependencies = "\n".join(map(_dependency, coordinates))
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pyconnect.sandbox</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


def _dependency(coordinate: Coordinate) -> str:
    parts = {
        "groupId": coordinate.group,
        "artifactId": coordinate.artifact,
        "version": coordinate.version,
        "classifier": coordinate.classifier,
        "type": "" if coordinate.packaging == "jar" else coordinate.packaging,
    }
    elements = "".join(f"<{name}>{text}</{name}>" for name, text in parts.items() if text)
    if coordinate.alone:
        everything = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
        elements += f"<exclusions>{everything}</exclusions>"
    return f"    <dependency>{elements}</dependency>"


def copy_jars(
    maven: Path,
    work_directory: Path,
    libs: Path,
    *,
    coordinates: Sequence[Coordinate] = COORDINATES,
    progress: Progress,
) -> None:
    """Put the jars of `coordinates` and all they need at run time into `libs`.

    Raises JarResolutionFailed with the end of Maven's output.
    """
    project_file = work_directory / "pom.xml"
    project_file.write_text(project(coordinates))
    command = [
        str(maven),
        "--batch-mode",
        "--file",
        str(project_file),
        _PLUGIN,
        f"-DoutputDirectory={libs}",
        "-DincludeScope=runtime",
    ]
    outcome = run_with_progress(command, _DOWNLOADED, progress)
    if outcome.exit_code != 0:
        raise JarResolutionFailed(
            f"Maven could not fetch the jars (exit code {outcome.exit_code}):\n{outcome.tail}",
            hint="check the network and Maven's settings, or give --kafka-dir",
        )
