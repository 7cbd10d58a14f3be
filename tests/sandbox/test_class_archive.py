"""Archives of loaded classes fit their Java, jars and options, and are never incomplete."""

import os
from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import archive_name, archive_options, keep_archives


@pytest.fixture
def java(tmp_path: Path) -> Path:
    executable = tmp_path / "jdk" / "bin" / "java"
    own_archive = tmp_path / "jdk" / "lib" / "server" / "classes.jsa"
    for file in (executable, own_archive):
        file.parent.mkdir(parents=True)
        file.touch()
    return executable


@pytest.fixture
def server_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "server"
    directory.mkdir()
    return directory


def test_other_java_jars_and_options_have_another_archive(java: Path, tmp_path: Path) -> None:
    """The name changes with all that an archive depends on, Java's own archive included."""
    libs, other_libs = tmp_path / "libs", tmp_path / "other"
    libs.mkdir()
    other_libs.mkdir()
    name = archive_name(java, libs, "kafka.Kafka", ("-a",))
    assert name == archive_name(java, libs, "kafka.Kafka", ("-a",))
    assert name.startswith("Kafka-")
    assert name != archive_name(java, libs, "kafka.Kafka", ("-b",))
    assert name != archive_name(java, other_libs, "kafka.Kafka", ("-a",))
    os.utime(java, ns=(1, 1))
    assert name != archive_name(java, libs, "kafka.Kafka", ("-a",))
    name = archive_name(java, tmp_path, "kafka.Kafka", ())
    os.utime(java.parents[1] / "lib" / "server" / "classes.jsa", ns=(1, 1))
    assert name != archive_name(java, tmp_path, "kafka.Kafka", ())


def test_the_first_run_writes_and_the_next_one_uses(server_directory: Path, tmp_path: Path) -> None:
    """Without an archive the JVM gets the option to write one, later the option to use it."""
    root = tmp_path / "archives"
    (option, *_) = archive_options("Kafka-1.jsa", server_directory, root)
    assert option == f"-XX:ArchiveClassesAtExit={server_directory / 'Kafka-1.jsa'}"
    (server_directory / "Kafka-1.jsa").write_bytes(b"classes")
    keep_archives(server_directory, root)
    (option, *_) = archive_options("Kafka-1.jsa", server_directory, root)
    assert option == f"-XX:SharedArchiveFile={root / 'Kafka-1.jsa'}"
    assert [path.name for path in root.iterdir()] == ["Kafka-1.jsa"]


def test_half_an_archive_of_a_killed_jvm_is_lost(server_directory: Path, tmp_path: Path) -> None:
    """An incomplete archive in the server's directory is removed before the server starts again."""
    root = tmp_path / "archives"
    (server_directory / "Kafka-1.jsa").write_bytes(b"half")
    archive_options("Kafka-1.jsa", server_directory, root)
    keep_archives(server_directory, root)
    assert not root.exists()
