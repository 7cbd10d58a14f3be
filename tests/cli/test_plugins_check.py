"""`pyconnect plugins check`: the releases of Kafka that jars can run with."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.plugins.java_jars import SOURCE_CONNECTOR, class_file, make_jar

# `run` of conftest.py: arguments to (exit code, stdout, stderr)
Run = Any
SANITIZER = "org.apache.kafka.common.utils.Sanitizer"
MK_SET = ("org.apache.kafka.common.utils.Utils", "mkSet", "([Ljava/lang/Object;)Ljava/util/Set;")


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Return a plugin path with a connector for releases up to 4.3 and one for all releases."""
    old = class_file("a.Old", SOURCE_CONNECTOR, names=(SANITIZER,))
    make_jar(tmp_path / "plugins" / "old" / "old.jar", {"a.Old": old})
    new = class_file("a.New", SOURCE_CONNECTOR)
    make_jar(tmp_path / "plugins" / "new" / "new.jar", {"a.New": new})
    return tmp_path / "plugins"


def test_each_location_has_the_releases_that_it_runs_with(run: Run, plugins: Path) -> None:
    """Each location has the releases that it can run with, and the names that a release lacks."""
    code, out, _ = run("plugins", "check", str(plugins), address=None)
    assert code == 0
    rows = [line.split()[:4] for line in out.splitlines()[1:]]
    assert rows == [["ok", "new", "3.9", "to"], ["ok", "old", "3.9", "to"]]
    assert "3.9 to 4.3" in out
    arguments = ("plugins", "check", "--kafka", "4.4.0", str(plugins), "-o", "json")
    code, out, _ = run(*arguments, address=None)
    assert code == 1
    found = {Path(row["location"]).name: row for row in json.loads(out)}
    assert found["new"]["status"] == "ok"
    assert found["old"]["status"] == "failed"
    assert SANITIZER in found["old"]["detail"]
    assert "a.Old" in found["old"]["detail"]
    assert "4.3" in found["old"]["detail"]


def test_the_plugin_path_of_a_worker_is_checked(run: Run, plugins: Path, tmp_path: Path) -> None:
    """--worker checks the plugin.path of a worker's file without a request."""
    file = tmp_path / "worker.properties"
    file.write_text(f"plugin.path={plugins}\n")
    code, out, _ = run("plugins", "check", "--worker", str(file), "-o", "name", address=None)
    assert code == 0
    assert len(out.splitlines()) == 2


def test_a_directory_of_jars_is_one_location(run: Run, tmp_path: Path) -> None:
    """Jars in one directory are one location: a release must have the needs of all of them."""
    both = tmp_path / "both"
    make_jar(both / "a.jar", {"a.A": class_file("a.A", SOURCE_CONNECTOR, uses=[MK_SET])})
    newer = ("org.apache.kafka.common.metrics.Monitorable",)
    make_jar(both / "b.jar", {"a.B": class_file("a.B", SOURCE_CONNECTOR, names=newer)})
    code, out, _ = run("plugins", "check", str(both), address=None)
    assert code == 1
    assert "none" in out
    assert "Kafka 4.4 lacks" in out


def test_a_plugin_that_needs_an_older_kafka_than_all_is_named(run: Run, tmp_path: Path) -> None:
    """A plugin that no known release can run is reported, whichever release is asked for."""
    used = ("org.apache.kafka.common.utils.SystemTime", "<init>", "()V")
    make_jar(tmp_path / "old.jar", {"a.A": class_file("a.A", SOURCE_CONNECTOR, uses=[used])})
    for arguments in ((), ("--kafka", "4.4")):
        code, out, _ = run(
            "plugins", "check", *arguments, str(tmp_path), "-o", "json", address=None
        )
        assert code == 1
        (found,) = json.loads(out)
        assert (found["status"], found["kafka"]) == ("failed", "none")
        expected = f"no Kafka from 3.9 to 4.4 has a public {used[0]}, which a.A uses"
        assert found["detail"] == expected


@cases(
    "arguments, code, text",
    (("--kafka", "2.8"), 2, "known are 3.9"),
    (("--worker", "nowhere.properties"), 2, "cannot be read"),
    (("nowhere",), 3, "nowhere does not exist"),
    ((), 3, "no Java plugins to check"),
)
def test_unchecked_is_an_error(run: Run, arguments: tuple[str, ...], code: int, text: str) -> None:
    """If nothing can be checked, the error says why."""
    ended = run("plugins", "check", *arguments, address=None)
    assert ended[0] == code
    assert text in ended[2]
