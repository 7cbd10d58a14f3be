"""Compile the Java host: once when a wheel is built, or once into the user's cache.

The module imports the standard library only, because the build of a wheel runs it too. Equal
sources and an equal compiler give an identical jar.
"""

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

HOST_JAR = "pyconnect-java-host.jar"
LOWEST_JAVA = 17
_HERE = Path(__file__).parent
_MAIN = _HERE / "host" / "src" / "main"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold."""


class HostBuildError(Exception):
    """The host cannot be compiled; the text has the reason and the remedy."""


def built_host_jar() -> Path | None:
    """Return the jar that came with this installation; None in a checkout."""
    jar = _HERE / HOST_JAR
    return jar if jar.exists() else None


def cached_host_jar(java: Path, kafka_jars: Sequence[str], cache: Path) -> Path:
    """Return the jar for these sources, compiled into `cache` unless it is already there.

    Raises HostBuildError.
    """
    digest = hashlib.sha256()
    for path in sorted(_MAIN.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(_MAIN)}\0".encode())
            digest.update(path.read_bytes())
    jar = cache / f"host-{digest.hexdigest()[:16]}" / HOST_JAR
    if not jar.exists():
        compile_host(java, kafka_jars, jar)
    return jar


def compile_host(java: Path, kafka_jars: Sequence[str], target: Path) -> None:
    """Compile the sources against Kafka's jars and write the jar. Raises HostBuildError."""
    javac = java.with_name("javac")
    if not javac.exists():
        raise HostBuildError(
            f"the Java host has to be compiled once, and {java.parent} has no javac: install a JDK "
            f"of Java {LOWEST_JAVA} or newer, or install a wheel of pyconnect that holds the host"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        classes = Path(work) / "classes"
        command = [
            # Only the first compiler, which takes a third of the time: the run is too short for the
            # second.
            *(str(javac), "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"),
            *("--release", str(LOWEST_JAVA), "-proc:none", "-nowarn"),
            *("-classpath", os.pathsep.join(kafka_jars)),
            *("-d", str(classes)),
            *map(str, sorted((_MAIN / "java").rglob("*.java"))),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HostBuildError(f"the Java host cannot be compiled:\n{done.stderr.strip()}")
        files = {
            path.relative_to(root).as_posix(): path
            for root in (classes, _MAIN / "resources")
            for path in root.rglob("*")
            if path.is_file()
        }
        finished = Path(work) / HOST_JAR
        with zipfile.ZipFile(finished, "w") as jar:
            for name in sorted(files):
                jar.writestr(zipfile.ZipInfo(name, _EPOCH), files[name].read_bytes())
        finished.replace(target)
