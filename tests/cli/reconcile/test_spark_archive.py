"""The archive of Spark's classes is made once, limited in number, and never stops an audit."""

import fcntl
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyconnect_cli.reconcile import spark_jars
from pyconnect_cli.reconcile.run import ProcessEnd
from pyconnect_cli.reconcile.spark_jars import MOST_ARCHIVES, OPTIONS_VARIABLE, SparkArchive
from pyconnect_sandbox.runtime import Java

DIFFER = 1


class Rehearsals:
    """A replacement for Spark that writes the requested archive if `able`."""

    count = 0
    able = True

    def __call__(self, work: Path, environ: Mapping[str, str]) -> ProcessEnd:
        self.count += 1
        if self.able:
            option = environ[OPTIONS_VARIABLE].split('"')[1]
            Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"classes")
        return ProcessEnd(exit_code=DIFFER, refusals={}, log="the end")


@pytest.fixture
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> Rehearsals:
    rehearsed = Rehearsals()
    monkeypatch.setattr(spark_jars, "_rehearse", rehearsed)
    return rehearsed


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return {"SPARK_HOME": str(tmp_path / "spark")}


def archive_in(root: Path, environ: Mapping[str, str]) -> SparkArchive:
    java = root.parent / "java"
    java.touch()
    return SparkArchive(Java(executable=java, version=17), environ, root)


@pytest.fixture
def archive(tmp_path: Path, environ: dict[str, str]) -> SparkArchive:
    return archive_in(tmp_path / "archives", environ)


def test_options_of_the_user_come_after_that_of_the_archive(
    tmp_path: Path, environ: dict[str, str], rehearsals: Rehearsals
) -> None:
    """The user's JVM options come last, so that they win over those of the archive."""
    assert archive_in(tmp_path / "archives", environ).environment() == environ
    environ[OPTIONS_VARIABLE] = "-Xshare:off"
    archive = archive_in(tmp_path / "my archives", environ)
    archive.make()
    options = archive.environment()[OPTIONS_VARIABLE]
    assert options.startswith(f'"-XX:SharedArchiveFile={archive.path}" "-Xlog:cds=off')
    assert options.endswith('" -Xshare:off')


def test_archives_are_kept(archive: SparkArchive, rehearsals: Rehearsals) -> None:
    """An archive is made once, and no unfinished file stays beside it."""
    archive.make()
    archive.make()
    assert rehearsals.count == 1
    assert {path.suffix for path in archive.path.parent.iterdir()} == {".jsa", ".bytes", ".lock"}


def test_the_fourth_audit_makes_the_archive(archive: SparkArchive, rehearsals: Rehearsals) -> None:
    """The fourth audit makes the archive, because fewer audits save less than it costs."""
    for made in (0, 0, 0, 1, 1):
        archive.make_when_worth_it()
        assert rehearsals.count == made


def test_an_archive_that_lost_its_end_is_not_mapped(
    archive: SparkArchive, environ: dict[str, str], rehearsals: Rehearsals
) -> None:
    """A truncated archive, on which Java would crash, is not used and made again."""
    archive.make()
    os.truncate(archive.path, 3)
    assert archive.environment() == environ
    archive.make()
    assert archive.is_complete()
    assert rehearsals.count == 2


def test_a_java_that_cannot_make_one_is_asked_once(
    archive: SparkArchive, environ: dict[str, str], rehearsals: Rehearsals
) -> None:
    """A Java that cannot make an archive is asked once, because each attempt takes seconds."""
    rehearsals.able = False
    archive.make()
    archive.make()
    assert rehearsals.count == 1
    assert archive.environment() == environ


def test_one_process_makes_it_while_others_go_on(
    archive: SparkArchive, rehearsals: Rehearsals
) -> None:
    """An audit does not wait for another process that makes the archive."""
    archive.path.parent.mkdir()
    with archive.path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        archive.make()
    assert rehearsals.count == 0


def test_an_unwritable_cache_and_a_full_disk_stay_without(
    tmp_path: Path, environ: dict[str, str], rehearsals: Rehearsals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an unwritable cache or a full disk no archive is made and nothing fails."""
    (tmp_path / "file").touch()
    java = Java(executable=tmp_path / "file", version=17)
    SparkArchive(java, environ, tmp_path / "file" / "archives").make()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    archive_in(tmp_path / "archives", environ).make()
    assert rehearsals.count == 0


def test_the_client_of_spark_connect_needs_none(tmp_path: Path, rehearsals: Rehearsals) -> None:
    """For the client of Spark Connect no archive is made, because it has no jars."""
    environ = {"SPARK_HOME": str(tmp_path)}
    archive = archive_in(tmp_path / "archives", environ)
    archive.make()
    assert archive.environment() == environ
    assert rehearsals.count == 0


def test_the_newest_stay(tmp_path: Path, environ: dict[str, str], rehearsals: Rehearsals) -> None:
    """Only the newest archives of Spark stay; those of brokers are not removed."""
    root = tmp_path / "archives"
    root.mkdir()
    for number in range(MOST_ARCHIVES + 1):
        (root / f"SparkSubmit-{number}.jsa").touch()
        os.utime(root / f"SparkSubmit-{number}.jsa", (number, number))
    (root / "Kafka-1.jsa").touch()
    archive = archive_in(root, environ)
    archive.make()
    kept = {path.name for path in root.glob("*.jsa")}
    assert kept == {"Kafka-1.jsa", "SparkSubmit-2.jsa", "SparkSubmit-3.jsa", archive.name}
