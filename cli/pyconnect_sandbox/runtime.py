"""The runtime of a class of Kafka: a Java, a directory of jars, and an archive of loaded classes.

Java is that of JAVA_HOME, then `java` on the path. Kafka 4 brokers and Connect workers need
version 17 (KIP-1013).

Archives are those of JDK application class-data sharing (JEP 350). The first run of a main class
that ends in order writes an archive of the classes it loaded; later runs map it. Measured with Java
17: a broker is up in 0.9 s instead of 1.5 s with 60 MB less, a Connect worker in 1.5 s instead of
3.8 s with 50 MB less. Java ignores an archive that does not fit. An archive is written
into the server's own directory and moved into the user's cache when the server has ended, so an
incomplete file is never used.
"""

import hashlib
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from pyconnect_clients.installation import java_version
from pyconnect_sandbox.errors import JavaUnavailable

MINIMUM_VERSION = 17

_INSTALL_COMMANDS = {
    "debian": "sudo apt-get install openjdk-17-jre-headless",
    "fedora": "sudo dnf install java-21-openjdk-headless",
    "rhel": "sudo dnf install java-17-openjdk-headless",
    "alpine": "sudo apk add openjdk17-jre-headless",
    "arch": "sudo pacman -S jre17-openjdk-headless",
    "suse": "sudo zypper install java-17-openjdk-headless",
    "macos": "brew install openjdk@17",
    "windows": (
        "the sandbox needs a POSIX system: run it in WSL (wsl --install), and there: "
        "sudo apt-get install openjdk-17-jre-headless"
    ),
}
_FAMILY_OF_DISTRIBUTION = {
    **{family: family for family in ("debian", "fedora", "rhel", "alpine", "arch", "suse")},
    **dict.fromkeys(("centos", "rocky", "almalinux", "amzn"), "rhel"),
    "ubuntu": "debian",
    "opensuse": "suse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    executable: Path
    version: int
    """The feature version, such as 17 or 21."""


def platform_family(system: str, os_release: Mapping[str, str]) -> str | None:
    """Return the entry of the install commands that fits, or None when none is known to fit.

    `system` is that of `platform.system()`; `os_release` the text of /etc/os-release, whose ID_LIKE
    lists the distributions that ID descends from.
    """
    if system == "Darwin":
        return "macos"
    if system == "Windows":
        return "windows"
    names = [os_release.get("ID", ""), *os_release.get("ID_LIKE", "").split()]
    return next(
        (_FAMILY_OF_DISTRIBUTION[name] for name in names if name in _FAMILY_OF_DISTRIBUTION), None
    )


def install_hint(family: str | None) -> str:
    """Return how to install Java on a platform; for an unknown platform all known ways."""
    if family is not None:
        command = _INSTALL_COMMANDS[family]
        return command if family == "windows" else f"install it: {command}"
    ways = "\n".join(f"  {name}: {command}" for name, command in _INSTALL_COMMANDS.items())
    return f"install it:\n{ways}"


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that is new enough; raise JavaUnavailable when there is none."""
    environment = os.environ if environment is None else environment
    home, found = environment.get("JAVA_HOME"), shutil.which("java", path=environment.get("PATH"))
    candidates = [*([Path(home, "bin", "java")] if home else ()), *([Path(found)] if found else ())]
    too_old: list[str] = []
    for executable in candidates:
        version = java_version(executable)
        if version is None:
            continue
        if version >= MINIMUM_VERSION:
            return Java(executable=executable, version=version)
        too_old.append(f"{executable} is Java {version}")
    try:
        os_release: Mapping[str, str] = platform.freedesktop_os_release()
    except OSError:
        os_release = {}
    hint = install_hint(platform_family(platform.system(), os_release))
    if too_old:
        raise JavaUnavailable(
            f"Kafka needs Java {MINIMUM_VERSION} or newer, but {', '.join(too_old)}",
            hint=f"{hint}\nor point JAVA_HOME at a newer one",
        )
    raise JavaUnavailable(
        f"No Java found: Kafka needs Java {MINIMUM_VERSION} or newer, in JAVA_HOME or on the path",
        hint=hint,
    )


SUFFIX = ".jsa"
# Hides Java's messages about classes that it cannot archive, or an archive that does not fit.
_QUIET = "-Xlog:cds=off,cds+dynamic=off,class+path=off"


def cache_root() -> Path:
    """Return the directory that holds one directory per Kafka version."""
    return user_cache_path("pyconnect") / "kafka"


def archives_root() -> Path:
    return cache_root() / "class-archives"


def archive_name(java: Path, libs: Path, main_class: str, jvm_options: Sequence[str]) -> str:
    """Return a file name that is different for another Java, other jars or other options.

    Java's own archive counts as a part of Java: an archive of ours extends it. Java ignores ours
    once its own was made again (`java -Xshare:dump`).
    """
    executable = java.resolve()
    own_archive = executable.parents[1] / "lib" / "server" / "classes.jsa"
    parts = [part for part in (executable, own_archive, libs.resolve()) if part.exists()]
    facts = (*(f"{part} {part.stat().st_mtime_ns}" for part in parts), *jvm_options)
    digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
    return f"{_prefix(main_class)}{digest}{SUFFIX}"


def _prefix(main_class: str) -> str:
    return f"{main_class.rpartition('.')[2]}-"


def archive_options(name: str, server_directory: Path, root: Path | None = None) -> list[str]:
    """Return the options that use the archive `name`, or that write it if it does not exist.

    Removes the remains of a JVM that was killed while it wrote in `server_directory`.
    """
    for unfinished in server_directory.glob(f"*{SUFFIX}"):
        unfinished.unlink()
    archive = (archives_root() if root is None else root) / name
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", _QUIET]
    return [f"-XX:ArchiveClassesAtExit={server_directory / name}", _QUIET]


def keep_archives(server_directory: Path, root: Path | None = None) -> None:
    """Move the archive that an ended server may have written to the place where others find it."""
    root = archives_root() if root is None else root
    for written in server_directory.glob(f"*{SUFFIX}"):
        root.mkdir(parents=True, exist_ok=True)
        partial = root / f".{written.name}.{server_directory.stat().st_ino}"
        shutil.move(written, partial)  # the two directories may be on different file systems
        partial.replace(root / written.name)


def remove_unused(main_class: str, most: int, root: Path | None = None) -> None:
    """Remove all archives of a main class but the `most` newest; a JVM keeps a mapped one."""
    root = archives_root() if root is None else root
    archives = root.glob(f"{_prefix(main_class)}*{SUFFIX}")
    newest_first = sorted(archives, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for unused in newest_first[most:]:
        unused.unlink(missing_ok=True)


# Short-lived servers on small machines: start quickly and stay small, throughput comes second.
QUICK_START_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRuntime:
    """A Java and the directory of Kafka's jars (a distribution's `libs`, or the cache)."""

    java: Java
    libs: Path

    def command(
        self,
        main_class: str,
        *arguments: str,
        heap_mb: int,
        log_configuration: Path | None = None,
        jvm_options: Sequence[str] = QUICK_START_OPTIONS,
        server_directory: Path | None = None,
    ) -> list[str]:
        """Return the command that runs `main_class` with at most `heap_mb` MiB of heap.

        With `server_directory`, the class archive of `main_class` is used, or written when the
        server ends. Leave it out for a short program: writing takes longer than its run.
        """
        archive: list[str] = []
        if server_directory is not None:
            name = archive_name(self.java.executable, self.libs, main_class, jvm_options)
            archive = archive_options(name, server_directory)
        logging = []
        if log_configuration is not None:
            logging = [f"-Dlog4j2.configurationFile={log_configuration.as_uri()}"]
        return [
            str(self.java.executable),
            f"-Xmx{heap_mb}m",
            *jvm_options,
            *archive,
            *logging,
            "-cp",
            f"{self.libs}/*",
            main_class,
            *arguments,
        ]


def write_log_configuration(path: Path, log_path: Path) -> None:
    """Write a log4j 2 configuration that logs to `log_path`, rolled at 20 MB; three are kept."""
    path.write_text(
        f"""\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log_path}
appender.file.filePattern = {log_path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
# Hundreds of lines at every start that the properties file says better.
logger.config.name = org.apache.kafka.common.config.AbstractConfig
logger.config.level = WARN
logger.broker.name = kafka.server.KafkaConfig
logger.broker.level = WARN
logger.state.name = state.change.logger
logger.state.level = WARN
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
"""
    )
