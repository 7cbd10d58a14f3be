"""The choice of Java, and the errors when there is none."""

from pathlib import Path

import pytest

from pyconnect_clients.installation import version_in
from pyconnect_sandbox.errors import JavaUnavailable
from pyconnect_sandbox.runtime import find_java, install_hint, platform_family
from tests.support.cases import cases

pytestmark = pytest.mark.wire


def java_saying(directory: Path, version_line: str, exit_code: int = 0) -> Path:
    """Make a command `java` in `directory`/bin that prints a version as Java does."""
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{version_line}' >&2\nexit {exit_code}\n")
    executable.chmod(0o755)
    return executable


@cases(
    "text, version",
    ('openjdk version "17.0.15" 2025-04-15', 17),
    ('java version "1.8.0_402"', 8),
    ('openjdk version "21" 2023-09-19', 21),
    ('openjdk version "25-ea" 2025-09-16', 25),
    ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1"', 17),
    ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
)
def test_the_feature_version_is_read_from_both_schemes(text: str, version: int | None) -> None:
    """1.8 means 8, 17.0.15 means 17, and a text without a version gives None."""
    assert version_in(text) == version


@cases(
    "system, os_release, family",
    ("Linux", {"ID": "ubuntu", "ID_LIKE": "debian"}, "debian"),
    ("Linux", {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "debian"),
    ("Linux", {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "rhel"),
    ("Linux", {"ID": "fedora"}, "fedora"),
    ("Linux", {"ID": "alpine"}, "alpine"),
    ("Linux", {"ID": "opensuse-leap", "ID_LIKE": "suse opensuse"}, "suse"),
    ("Linux", {"ID": "nixos"}, None),
    ("Darwin", {}, "macos"),
    ("Windows", {}, "windows"),
)
def test_the_install_command_fits_the_platform(
    system: str, os_release: dict[str, str], family: str | None
) -> None:
    """A distribution is recognised by its own name or one that it descends from."""
    assert platform_family(system, os_release) == family


@cases(
    "family, command",
    ("debian", "apt-get install openjdk-17-jre-headless"),
    ("fedora", "dnf install java-21-openjdk-headless"),
    ("rhel", "dnf install java-17-openjdk-headless"),
    ("alpine", "apk add openjdk17-jre-headless"),
    ("macos", "brew install openjdk@17"),
    ("windows", "WSL"),
)
def test_the_hint_is_a_command_to_run(family: str, command: str) -> None:
    """Each known platform has its own command; for an unknown one all commands are shown."""
    assert command in install_hint(family)
    assert f"{family}: " in install_hint(None)


def test_no_java_and_an_old_one_are_named_with_a_hint(tmp_path: Path) -> None:
    """The error has a hint, or the version of the Java that was found."""
    with pytest.raises(JavaUnavailable, match="No Java found: Kafka needs Java 17") as error:
        find_java({"PATH": str(tmp_path)})
    assert error.value.exit_code == 9
    assert error.value.hint
    executable = java_saying(tmp_path, 'openjdk version "11.0.2"')
    with pytest.raises(JavaUnavailable, match=f"{executable} is Java 11"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    """JAVA_HOME comes first, unless its Java is too old or does not run."""
    home = java_saying(tmp_path / "home", 'openjdk version "21.0.1"')
    on_path = java_saying(tmp_path / "path", 'openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (found.executable, found.version) == (home, 21)
    java_saying(tmp_path / "broken", "Unable to locate a Java Runtime", exit_code=1)
    found = find_java({"JAVA_HOME": str(tmp_path / "broken"), "PATH": str(on_path.parent)})
    assert found.executable == on_path
