"""Locations of Java plugins and their class paths."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.plugins.scan import plugin_directories
from pyconnect_clients.plugin_jars.locations import (
    class_path_of,
    is_java_location,
    java_locations,
    location_url,
)
from tests.support.plugins.java_jars import class_file, make_class, make_jar


def test_jars_directories_are_locations(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An entry may be a jar; Python's directories and other files are not locations."""
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
    assert plugin_directories([str(root), str(single)]) == (root / "empty", root / "python")
    (warning,) = caplog.records
    assert str(tmp_path / "missing") in warning.reason  # type: ignore[attr-defined]


def test_entries_are_relative_to_the_cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty entry is the working directory, as in Apache's worker."""
    monkeypatch.chdir(tmp_path)
    jar = make_jar(tmp_path / "plugins" / "a.jar")
    assert java_locations(["plugins"]) == java_locations(["plugins/a.jar"]) == (jar,)
    assert java_locations([""]) == (tmp_path / "plugins",)


def test_directories_that_cannot_be_read_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unreadable directory, such as `lost+found`, or a whole unreadable entry is left out."""
    denied = tmp_path / "plugins" / "lost+found"
    denied.mkdir(parents=True)
    jar = make_jar(tmp_path / "plugins" / "a.jar")
    whole, iterdir = tmp_path / "denied", Path.iterdir

    def listed(path: Path) -> Iterator[Path]:
        if path in (denied, whole):
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", listed)
    assert java_locations([str(whole), str(jar.parent)]) == (jar,)
    assert plugin_directories([str(whole), str(jar.parent)]) == (denied,)
    reasons = [each.reason for each in caplog.records]  # type: ignore[attr-defined]
    assert [str(whole) in reasons[0], str(denied) in reasons[1]] == [True, True]


def test_deep_archives_hide_classes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A location with archives uses only these and warns of its classes, as Apache's worker."""
    jars = [make_jar(tmp_path / "b.jar"), make_jar(tmp_path / "lib" / "a.zip")]
    assert class_path_of(tmp_path) == tuple(map(str, jars))
    make_class(tmp_path, "a.B", class_file("a.B"))
    assert class_path_of(tmp_path) == tuple(map(str, jars))
    assert "only the archives are used" in caplog.text


def test_jars_have_the_order_of_javas_paths(tmp_path: Path) -> None:
    """The order of jars decides which of two classes of one name is loaded."""
    jars = [make_jar(tmp_path / "lib-first" / "z.jar"), make_jar(tmp_path / "lib" / "a.jar")]
    assert class_path_of(tmp_path) == tuple(map(str, jars))


def test_links_are_followed_once(tmp_path: Path) -> None:
    """Links into the location itself, to nothing or in a circle do not repeat or fail the scan."""
    shared = make_jar(tmp_path / "shared" / "s.jar")
    location = tmp_path / "plugins" / "p"
    location.mkdir(parents=True)
    (location / "lib").symlink_to(shared.parent)
    (location / "again.jar").symlink_to(shared)
    (location / "loop").symlink_to(location)
    (location / "gone.jar").symlink_to(tmp_path / "nowhere.jar")
    (location / "circle").symlink_to("circle")
    assert class_path_of(location) == (str(shared),)
    assert is_java_location(location)


def test_a_location_is_shown_as_kafka_connect_shows_it(tmp_path: Path) -> None:
    """The location is a URL; that of a directory ends with a slash."""
    jar = make_jar(tmp_path / "a.jar")
    assert location_url(jar) == f"file:{jar}"
    assert location_url(tmp_path) == f"file:{tmp_path}/"
