"""Kafka's jars by Apache Ivy: the system's package of it, or the jar inside every PySpark.

Ivy's own default settings apply, or the file that PYCONNECT_IVY_SETTINGS names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from pyconnect_sandbox.coordinates import COORDINATES, Coordinate
from pyconnect_sandbox.errors import JarResolutionFailed
from pyconnect_sandbox.java import Java
from pyconnect_sandbox.progress import Progress, run_with_progress

SETTINGS_VARIABLE = "PYCONNECT_IVY_SETTINGS"
_DOWNLOADED = re.compile(r"\[SUCCESSFUL \] \S+#(?P<file>[^;\s]+;[^!\s]+)!")


SYSTEM_JARS = (
    "usr/share/java/ivy.jar",  # Debian and Ubuntu, Fedora
    "opt/homebrew/opt/ivy/libexec/ivy-[0-9]*.jar",
    "usr/local/opt/ivy/libexec/ivy-[0-9]*.jar",
)


def find_ivy(environment: Mapping[str, str], system: Path = Path("/")) -> Path | None:
    """Return the Ivy jar of the installed PySpark, of SPARK_HOME or of the system, or None."""
    homes: list[Path] = []
    if (specification := find_spec("pyspark")) is not None:
        homes += map(Path, specification.submodule_search_locations or ())
    if spark_home := environment.get("SPARK_HOME"):
        homes.append(Path(spark_home))
    of_spark = (jar for home in homes for jar in sorted((home / "jars").glob("ivy-*.jar")))
    of_system = (jar for pattern in SYSTEM_JARS for jar in sorted(system.glob(pattern)))
    return next(chain(of_spark, of_system), None)


def module_descriptor(coordinates: Sequence[Coordinate]) -> str:
    """Return an ivy.xml that depends on `coordinates`.

    `default->default` is what Maven calls the runtime scope; without it Ivy takes optional and
    test dependencies too.
    """
    dependencies = "\n".join(map(_dependency, coordinates))
    return f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="pyconnect.sandbox" module="kafka-jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _dependency(coordinate: Coordinate) -> str:
    attributes = (
        f'org="{coordinate.group}" name="{coordinate.artifact}" rev="{coordinate.version}" '
        'conf="default->default"'
    )
    if coordinate.alone:
        attributes += ' transitive="false"'
    if coordinate.packaging == "jar":
        return f"    <dependency {attributes}/>"
    kind = coordinate.packaging
    artifact = (
        f'<artifact name="{coordinate.artifact}" type="{kind}" ext="{kind}" '
        f'm:classifier="{coordinate.classifier}"/>'
    )
    return f"    <dependency {attributes}>{artifact}</dependency>"


def retrieve_jars(
    ivy: Path,
    java: Java,
    work_directory: Path,
    libs: Path,
    *,
    coordinates: Sequence[Coordinate] = COORDINATES,
    progress: Progress,
) -> None:
    """Put the jars of `coordinates` and all they need at run time into `libs`.

    Raises JarResolutionFailed with the end of Ivy's output.
    """
    descriptor = work_directory / "ivy.xml"
    descriptor.write_text(module_descriptor(coordinates))
    command = [
        str(java.executable),
        "-jar",
        str(ivy),
        "-ivy",
        str(descriptor),
        "-cache",
        str(work_directory / "ivy-cache"),
        "-types",
        "jar",
        "bundle",
        "tar.gz",
        "-retrieve",
        f"{libs}/[artifact]-[revision](-[classifier]).[ext]",
    ]
    if settings := os.environ.get(SETTINGS_VARIABLE):
        command[3:3] = ["-settings", settings]
    outcome = run_with_progress(command, _DOWNLOADED, progress)
    if outcome.exit_code != 0:
        raise JarResolutionFailed(
            f"Ivy could not fetch the jars (exit code {outcome.exit_code}):\n{outcome.tail}",
            hint=f"check the network, or name Ivy settings in {SETTINGS_VARIABLE}, "
            "or give --kafka-dir",
        )
