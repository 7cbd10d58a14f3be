"""The Java that runs Kafka: JAVA_HOME, then `java` on the path; at least version 17.

Kafka 4 brokers and Connect workers need Java 17 (KIP-1013).
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

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
    "debian": "debian",
    "ubuntu": "debian",
    "fedora": "fedora",
    "rhel": "rhel",
    "centos": "rhel",
    "rocky": "rhel",
    "almalinux": "rhel",
    "amzn": "rhel",
    "alpine": "alpine",
    "arch": "arch",
    "suse": "suse",
    "opensuse": "suse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that is new enough."""

    executable: Path
    version: int
    """The feature version: 17, 21."""


def platform_family(system: str, os_release: Mapping[str, str]) -> str | None:
    """Return which entry of the install commands fits, or None when none is known to.

    `system` as `platform.system()` says it; `os_release` as /etc/os-release, whose ID_LIKE lists
    the distributions that ID descends from.
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
    """Return how to install Java on a platform; every way when the platform is unknown."""
    if family is not None:
        command = _INSTALL_COMMANDS[family]
        return command if family == "windows" else f"install it: {command}"
    ways = "\n".join(f"  {name}: {command}" for name, command in _INSTALL_COMMANDS.items())
    return f"install it:\n{ways}"


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH")):
        yield Path(found)


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that is new enough; raise JavaUnavailable when there is none."""
    too_old: list[str] = []
    for executable in _candidates(os.environ if environment is None else environment):
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
