"""The tool that fetches jars: Maven, or an Apache Ivy of the system or of PySpark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from pyconnect_sandbox import ivy, maven
from pyconnect_sandbox.coordinates import COORDINATES, Coordinate
from pyconnect_sandbox.errors import JarsUnavailable
from pyconnect_sandbox.java import Java
from pyconnect_sandbox.progress import Progress

INSTALL_HINT = (
    "install Ivy, 1.3 MB (Debian, Ubuntu: sudo apt-get install ivy; macOS: brew install ivy)\n"
    "or install Maven"
)


class Resolve(Protocol):
    """Puts the jars of coordinates and all they need at run time into a directory."""

    def __call__(
        self,
        work_directory: Path,
        libs: Path,
        *,
        coordinates: Sequence[Coordinate] = COORDINATES,
        progress: Progress,
    ) -> None:
        """Raise JarResolutionFailed with the end of the tool's output."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """A tool and what it is called."""

    name: str
    resolve: Resolve


def find_resolver(environment: Mapping[str, str], java: Java, *, wanted: str) -> Resolver:
    """Return the first tool that is there; JarsUnavailable says that `wanted` needs one."""
    if (mvn := maven.find_maven(environment)) is not None:
        return Resolver("Maven", partial(maven.copy_jars, mvn))
    if (ivy_jar := ivy.find_ivy(environment)) is not None:
        return Resolver("Ivy", partial(ivy.retrieve_jars, ivy_jar, java))
    raise JarsUnavailable(
        f"{wanted} cannot be fetched: neither Maven (`mvn`) nor Apache Ivy is installed",
        hint=INSTALL_HINT,
    )
