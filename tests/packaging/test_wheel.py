"""The wheel as a user gets it: built, installed into an empty environment, run in any directory."""

import email
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_clients.plugin_jars.kafka_links import TABLE, kafka_api

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.wire, pytest.mark.timeout(850)]


@dataclass(frozen=True, slots=True)
class Built:
    file: Path
    said: str
    """Output of the builder."""


def build(target: str, source: Path, directory: Path, java_home: Path) -> Built:
    """Build `target` from a source tree, with the Java and Kafka below `java_home`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(directory)]
    homes = {"JAVA_HOME": str(java_home), "KAFKA_HOME": str(java_home)}
    done = subprocess.run(
        command,
        cwd=source,
        env=os.environ | homes,
        check=True,
        capture_output=True,
        text=True,
        timeout=400,
    )
    (found,) = directory.iterdir()
    return Built(found, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def java_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fake Java: a compiler that makes one class, and jars to compile against."""
    home = tmp_path_factory.mktemp("java")
    (home / "bin").mkdir()
    for name in ("connect-api", "log4j-api"):
        (home / f"{name}-1.jar").touch()
    javac = home / "bin" / "javac"
    javac.write_text('#!/bin/sh\nwhile [ "$1" != -d ]; do shift; done; mkdir "$2"; echo > "$2/A"\n')
    javac.chmod(0o755)
    return home


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"), java_home).file


def files_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def test_the_wheel_holds_all_packages_and_nothing_else(wheel: Path) -> None:
    """The wheel has packages, type markers, licence and manual pages, and no tests or scripts."""
    names = files_of(wheel)
    shared = {name for name in names if ".data/" in name}
    assert {Path(name).suffix for name in shared} == {".1"}
    assert any(name.endswith(".data/data/share/man/man1/pyconnect.1") for name in shared)
    names = [name for name in names if name not in shared]
    packages = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {
        "pyconnect_agent",
        "pyconnect_api",
        "pyconnect_cli",
        "pyconnect_clients",
        "pyconnect_connectors",
        "pyconnect_reconcile",
        "pyconnect_repair",
        "pyconnect_sandbox",
        "pyconnect_testkit",
    }
    assert {f"{package}/py.typed" for package in packages} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = (".py", ".java")
    data = {
        Path(name).name
        for name in names
        if ".dist-info" not in name and Path(name).suffix not in sources
    }
    scripts = {f"pyconnect.{shell}" for shell in ("bash", "fish", "zsh")}
    java = {"pyconnect-java-host.jar", "org.apache.logging.log4j.spi.Provider"}
    kafka = {f"kafka-{version}.sha256" for version in kafka_api().versions}
    spark = {f"spark-{release}.sha256" for release in ("3.5", "4.0", "4.1", "4.2")}
    assert data == {"py.typed", "words.json", TABLE, *kafka, *spark, *java, *scripts}


def test_a_wheel_built_without_a_compiler_reports_the_missing_host(tmp_path: Path) -> None:
    """Without a compiler the wheel has the Java host's sources and no jar."""
    built = build("wheel", ROOT, tmp_path / "wheel", tmp_path)
    assert "This wheel holds no compiled Java host" in built.said
    names = files_of(built.file)
    assert any(name.endswith("/Host.java") for name in names)
    assert not any(name.endswith(".jar") for name in names)


def test_the_metadata_links_where_it_is_shown(wheel: Path) -> None:
    """The README on the package index has no relative links, which would lead nowhere."""
    (name,) = (name for name in files_of(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(name))
    urls = dict(text.split(", ", 1) for text in metadata.get_all("Project-URL") or [])
    assert "Kafka Connect" in urls
    assert all(url.startswith("https://") for url in urls.values())
    assert metadata["Description-Content-Type"] == "text/markdown"
    description = metadata.get_payload()
    assert isinstance(description, str)
    assert "commands (`docs/reference/cli-reference.md`)" in description
    assert "![" not in description
    targets = re.findall(r"\]\(([^)]*)\)", description)
    assert [target for target in targets if not target.startswith("https://")] == []


def test_the_source_distribution_makes_the_same_wheel(
    wheel: Path, tmp_path: Path, java_home: Path
) -> None:
    """The source distribution has everything that the wheel is built from, and the checks."""
    for name in ("sdist", "source", "again"):
        (tmp_path / name).mkdir()
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist", java_home).file) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    again = build("wheel", source, tmp_path / "again", java_home).file
    assert files_of(again) == files_of(wheel)
    for needed in ("LICENSE", "README.md", "CHANGELOG.md", "scripts/test", "tests/conftest.py"):
        assert (source / needed).exists(), needed


class Installation:
    """An empty environment with pinned requirements and the wheel, without the checkout."""

    def __init__(self, wheel: Path, requirements: str, directory: Path) -> None:
        self.home = directory / "environment"
        self.elsewhere = directory / "elsewhere"
        self.elsewhere.mkdir()
        venv.create(self.home)
        locked = ROOT / "requirements" / requirements
        # pip does not compile all modules, because commands import few of them.
        install = ("install", "-q", "--no-compile")
        self.pip(*install, "--require-hashes", "-r", str(locked)).check_returncode()
        self.pip(*install, "--no-deps", str(wheel)).check_returncode()

    def pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the tests' pip on the environment, which has no pip."""
        python = str(self.home / "bin" / "python")
        command = [sys.executable, "-m", "pip", "--python", python, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in another directory."""
        return subprocess.run(
            [str(self.home / "bin" / command), *arguments],
            cwd=self.elsewhere,
            env={"HOME": str(self.elsewhere), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.long(only=True)
def test_both_commands_run_from_any_directory(wheel: Path, tmp_path: Path) -> None:
    """`pyconnect` and the agent run outside of the checkout with a worker's requirements."""
    installed = Installation(wheel, "runtime.txt", tmp_path)
    for command in (
        ("pyconnect", "--help"),
        ("pyconnect", "version"),
        ("pyconnect", "connectors", "--help"),
        ("pyconnect-agent", "--version"),
        ("pyconnect-agent", "--help"),
    ):
        done = installed.run(*command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_the_command_needs_nothing_of_the_agent(wheel: Path, tmp_path: Path) -> None:
    """Without the agent every noun loads, and a missing extra's message says how to install it."""
    installed = Installation(wheel, "command.txt", tmp_path)
    for library in ("starlette", "uvicorn", "msgspec", "regex", "prometheus_client", "textual"):
        assert installed.run("python", "-c", f"import {library}").returncode == 1
    assert installed.pip("check").returncode == 0
    load = "from pyconnect_cli.app import NOUNS, load_noun"
    done = installed.run("python", "-c", f"{load}; print(len([*map(load_noun, NOUNS)]))")
    assert int(done.stdout) > 15, done.stderr
    assert installed.run("pyconnect", "--url", "http://127.0.0.1:9", "status").returncode == 7
    assert installed.run("python", "-c", "import pyconnect_agent.worker.acls").returncode == 0
    agent = installed.run("pyconnect-agent", "worker.properties")
    assert agent.returncode == 3
    assert "are not installed: msgspec, prometheus_client, regex, starlette" in agent.stderr
    assert "install the extra [agent]: " in agent.stderr
    assert "extra [top]" in installed.run("pyconnect", "top").stderr
