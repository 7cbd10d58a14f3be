"""Locations of Java plugins and their class paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_agent.java.locations import (
    class_path_of,
    is_java_location,
    java_locations,
    location_url,
)
from pyconnect_agent.plugins.discovery import plugin_directories
from tests.support.java_jars import class_file, make_class, make_jar


def test_each_jar_and_each_directory_of_an_entry_is_a_location(tmp_path: Path) -> None:
    """An entry may be a jar itself; Python's directories and other files are none."""
    root, single = tmp_path / "plugins", make_jar(tmp_path / "single.jar")
    uber = make_jar(root / "uber.jar")
    make_jar(root / "directory" / "lib" / "deep" / "a.jar")
    make_class(root / "classes", "a.B", class_file("a.B"))
    make_jar(root / "python" / "pyspark" / "jars" / "b.jar")
    (root / "python" / "x-1.0.dist-info").mkdir()
    (root / "empty").mkdir()
    (root / "README").touch()
    found = java_locations([str(root), str(single), str(tmp_path / "missing"), str(root)])
    assert found == (root / "classes", root / "directory", uber, single)
    assert plugin_directories([str(root)]) == (root / "empty", root / "python")


def test_archives_count_at_any_depth_and_hide_classes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Apache's worker, which warns of a location that has both."""
    jars = [make_jar(tmp_path / "b.jar"), make_jar(tmp_path / "lib" / "a.zip")]
    assert class_path_of(tmp_path) == tuple(map(str, jars))
    make_class(tmp_path, "a.B", class_file("a.B"))
    assert class_path_of(tmp_path) == tuple(map(str, jars))
    assert "only the archives are used" in caplog.text


def test_links_are_followed_once(tmp_path: Path) -> None:
    """Into a directory outside, back into itself, and to nowhere."""
    shared = make_jar(tmp_path / "shared" / "s.jar")
    location = tmp_path / "plugins" / "p"
    location.mkdir(parents=True)
    (location / "lib").symlink_to(shared.parent)
    (location / "again.jar").symlink_to(shared)
    (location / "loop").symlink_to(location)
    (location / "gone.jar").symlink_to(tmp_path / "nowhere.jar")
    assert class_path_of(location) == (str(shared),)
    assert is_java_location(location)


def test_a_location_is_shown_as_kafka_connect_shows_it(tmp_path: Path) -> None:
    """A URL; that of a directory ends with a slash."""
    jar = make_jar(tmp_path / "a.jar")
    assert location_url(jar) == f"file:{jar}"
    assert location_url(tmp_path) == f"file:{tmp_path}/"
