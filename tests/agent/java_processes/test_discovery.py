"""Java plugins found by service files and class files, with a fake Java."""

import io
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.plugin_catalog import PluginKind
from pyconnect_agent.java_processes.discovery import JavaDiscovery, JavaPlugins
from pyconnect_agent.java_processes.jar_scan import (
    API_CLASSES,
    ClassPath,
    JarScan,
    from_output,
    main,
    to_input,
)
from pyconnect_agent.java_processes.launch import JavaClass, JavaInstallation
from pyconnect_api import ConnectException
from pyconnect_clients.plugin_jars.locations import java_locations
from tests.support.cases import cases
from tests.support.plugins.java_jars import (
    ABSTRACT,
    CONFIG_PROVIDER,
    INTERFACE,
    PUBLIC,
    SOURCE_CONNECTOR,
    TRANSFORMATION,
    class_file,
    make_class,
    make_jar,
)

LISTED = {"a.Listed": class_file("a.Listed", SOURCE_CONNECTOR)}


def scan_as_text(class_paths: Sequence[ClassPath], kafka_jars: Sequence[str]) -> Sequence[JarScan]:
    """Run the scan as the separate process does, with its input and output as text."""
    output = StringIO()
    main(StringIO(to_input(class_paths, kafka_jars)), output)
    return from_output(output.getvalue())


class World:
    """Kafka's jars, plugins, and a Java with prepared answers."""

    def __init__(self, root: Path) -> None:
        self.plugins = root / "plugins"
        self.cache = root / "cache"
        self.asked: list[str] = []
        self.kafkas: dict[str, str] = {}
        self.missing: set[str] = set()
        self.releases = ""
        self.answers: dict[str, Mapping[str, object]] = {}
        kafka = make_jar(
            root / "kafka" / "connect-api-4.3.1.jar",
            {
                SOURCE_CONNECTOR: class_file(SOURCE_CONNECTOR, access=PUBLIC | ABSTRACT),
                TRANSFORMATION: class_file(TRANSFORMATION, access=PUBLIC | ABSTRACT | INTERFACE),
                "org.apache.kafka.connect.Base": class_file(
                    "org.apache.kafka.connect.Base", SOURCE_CONNECTOR
                ),
            },
        )
        (root / "java").touch()
        self.installation = JavaInstallation(
            java=str(root / "java"), kafka_jars=(str(kafka),), host_jar=str(kafka)
        )

    def installation_with(self, kafka: str) -> JavaInstallation:
        if kafka in self.missing:
            raise ConnectException("no network")
        return self.installation

    def describe(self, kafka: str, classes: Sequence[JavaClass]) -> Sequence[Mapping[str, object]]:
        self.asked += [item.name for item in classes]
        self.kafkas |= {item.name: kafka for item in classes}
        default = {"own": True, "version": "1.0", "bases": list(API_CLASSES)}
        return [default | self.answers.get(item.name, {}) for item in classes]

    def find(self, mode: str = "hybrid_warn") -> JavaPlugins:
        discovery = JavaDiscovery(
            self.installation_with,
            scan_as_text,
            self.describe,
            self.cache,
            mode,
            releases=self.releases,
        )
        return discovery.find(java_locations([str(self.plugins)]))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def names(found: JavaPlugins) -> set[str]:
    return {plugin.class_name for plugin in found.plugins}


@cases(
    "mode, expected, warned",
    ("service_load", {"a.Listed"}, False),
    ("only_scan", {"a.Listed", "a.Unlisted"}, False),
    ("hybrid_warn", {"a.Listed", "a.Unlisted"}, True),
)
def test_modes_of_discovery(world: World, mode: str, expected: set[str], warned: bool) -> None:
    """A mode uses service files, classes or both, and may warn of a missing service file."""
    unlisted = {"a.Unlisted": class_file("a.Unlisted", "a.Listed")}
    make_jar(world.plugins / "p.jar", LISTED | unlisted, {SOURCE_CONNECTOR: ["a.Listed"]})
    found = world.find(mode)
    assert names(found) == expected
    wanted = [(True, False)] if warned else []
    assert [("a.Unlisted" in text, "a.Listed" in text) for text in found.warnings] == wanted


def test_hybrid_fail_refuses_a_class_without_service_file(world: World) -> None:
    """The error has the name and the location of the class."""
    make_jar(world.plugins / "p.jar", LISTED)
    with pytest.raises(ConnectException, match=r"a\.Listed in file:.*p\.jar.*hybrid_warn"):
        world.find("hybrid_fail")


def test_classes_are_plugins_by_all_that_they_extend(world: World) -> None:
    """Only public, concrete classes whose base classes are all public are plugins."""
    location = world.plugins / "classes"
    for name, content in {
        "a.ByKafka": class_file("a.ByKafka", "org.apache.kafka.connect.Base"),
        "a.Abstract": class_file("a.Abstract", "a.ByKafka", access=PUBLIC | ABSTRACT),
        "a.Below": class_file("a.Below", "a.Abstract", [TRANSFORMATION]),
        "a.Other": class_file("a.Other", "a.Unknown"),
        "a.Itself": class_file("a.Itself", "a.Itself"),
        "a.NotPublic": class_file("a.NotPublic", SOURCE_CONNECTOR, access=0),
        "a.BelowNotPublic": class_file("a.BelowNotPublic", "a.NotPublic"),
    }.items():
        make_class(location, name, content)
    found = {(plugin.class_name, plugin.kind) for plugin in world.find("only_scan").plugins}
    assert found == {
        ("a.ByKafka", PluginKind.SOURCE),
        ("a.Below", PluginKind.SOURCE),
        ("a.Below", PluginKind.TRANSFORMATION),
    }


@cases("mode", "service_load", "only_scan", "hybrid_fail")
def test_config_providers_need_a_service_file(world: World, mode: str) -> None:
    """Config providers are not found by their interface, as in Apache's worker."""
    providers = ("a.Provider", "a.Unlisted")
    classes = {name: class_file(name, interfaces=[CONFIG_PROVIDER]) for name in providers}
    make_jar(world.plugins / "p.jar", classes, {CONFIG_PROVIDER: ["a.Provider"]})
    assert names(world.find(mode)) == {"a.Provider"}


def test_classes_of_other_loaders_are_no_plugins(world: World) -> None:
    """Classes below WEB-INF, BOOT-INF or META-INF/versions are for other loaders."""
    content = class_file("a.Hidden", SOURCE_CONNECTOR)
    places = ("WEB-INF.classes", "BOOT-INF.classes", "META-INF.versions.21")
    make_jar(world.plugins / "p.jar", {f"{place}.a.Hidden": content for place in places})
    found = world.find("only_scan")
    assert (found.plugins, found.warnings, world.asked) == ((), (), [])


def test_the_first_of_two_classes_of_one_name_counts(world: World) -> None:
    """Java loads the first of two classes of one name, so that one counts."""
    make_jar(world.plugins / "p" / "a.jar", LISTED)
    make_jar(world.plugins / "p" / "b.jar", {"a.Listed": class_file("a.Listed")})
    assert names(world.find("only_scan")) == {"a.Listed"}


def test_the_answer_of_java_decides_about_a_class(world: World) -> None:
    """A class that Java cannot make, of another type, or a copy of Kafka's is left out."""
    services = {SOURCE_CONNECTOR: ["a.Good", "a.Bad", "a.Copy", "a.NoConstructor", "a.Other"]}
    make_jar(world.plugins / "p.jar", {}, services)
    world.answers = {
        "a.Good": {"own": True, "version": "undefined"},
        "a.Bad": {"constructible": True, "error": "class file version 65.0"},
        "a.Copy": {"own": False, "version": "1.0"},
        "a.NoConstructor": {"constructible": False, "error": "NoSuchMethodException"},
        "a.Other": {"bases": [TRANSFORMATION]},
    }
    found = world.find()
    assert names(found) == {"a.Good"}
    assert found.problems == (
        "Java plugin a.Bad cannot be used: class file version 65.0",
        "Java plugin a.Other cannot be used as source: the class does not implement that type",
    )
    assert found.plugins[0].version is None
    assert found.plugins[0].location == f"file:{world.plugins / 'p.jar'}"
    assert found.plugins[0].search_path == str(world.plugins / "p.jar")


def test_a_broken_jar_costs_itself_only(world: World) -> None:
    """A broken archive, class or Java process makes a problem of its location only."""
    make_jar(world.plugins / "good.jar", LISTED, {SOURCE_CONNECTOR: ["a.Listed"]})
    (world.plugins / "broken.jar").write_bytes(b"PK no")
    make_jar(world.plugins / "noise.jar", {"a.Noise": b"noise"})
    make_jar(world.plugins / "exits.jar", {}, {SOURCE_CONNECTOR: ["a.Exits"]})
    whole = world.describe

    def describe(kafka: str, classes: Sequence[JavaClass]) -> Sequence[Mapping[str, object]]:
        if any(item.name == "a.Exits" for item in classes):
            raise ConnectException("The Java process ended")
        return whole(kafka, classes)

    world.describe = describe  # type: ignore[method-assign] # a Java that ends
    found = world.find()
    assert names(found) == {"a.Listed"}
    text = "\n".join(found.problems)
    for reason in (
        "broken.jar cannot be read as an archive",
        f"a/Noise.class in {world.plugins / 'noise.jar'}: not a class file",
        "exits.jar could not be described: The Java process ended",
    ):
        assert reason in text


def test_a_jar_that_cannot_be_read_is_a_problem_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jar that belongs to another user does not affect other jars."""
    make_jar(world.plugins / "good.jar", LISTED, {SOURCE_CONNECTOR: ["a.Listed"]})
    denied, opened = make_jar(world.plugins / "denied.jar"), io.open

    def open_file(file: object, *arguments: Any, **options: Any) -> Any:
        if str(file) == str(denied):
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *arguments, **options)  # type: ignore[call-overload]  # as given

    monkeypatch.setattr(io, "open", open_file)
    found = world.find()
    assert names(found) == {"a.Listed"}
    assert "denied.jar cannot be read as an archive: [Errno 13]" in found.problems[0]


def test_a_damaged_jar_is_a_problem_of_its_own(tmp_path: Path) -> None:
    """A jar with any changed byte does not affect the next location."""
    whole = make_jar(tmp_path / "whole.jar", LISTED, {SOURCE_CONNECTOR: ["a.Listed"]})
    content = make_jar(tmp_path / "a.jar", {"a.\u00c4": class_file("a.\u00c4")}).read_bytes()
    damaged = tmp_path / "damaged.jar"
    wanted = [ClassPath((str(path),), by_classes=True) for path in (damaged, whole)]
    for place in range(len(content)):
        damaged.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        assert ("a.Listed", PluginKind.SOURCE) in scan_as_text(wanted, ())[1].implementing


def test_damaged_jars_are_named_with_their_fault(world: World) -> None:
    """The problem names an empty, truncated or damaged jar; a directory may be named like a jar."""
    whole = make_jar(world.plugins / "good.jar", LISTED, {SOURCE_CONNECTOR: ["a.Listed"]})
    content = whole.read_bytes()
    (world.plugins / "empty.jar").touch()
    (world.plugins / "truncated.jar").write_bytes(content[: len(content) // 2])
    damaged = content.replace(LISTED["a.Listed"], bytes(len(LISTED["a.Listed"])))
    (world.plugins / "damaged.jar").write_bytes(damaged)
    make_class(world.plugins / "directory.jar", "a.Other", class_file("a.Other", SOURCE_CONNECTOR))
    found = world.find("only_scan")
    assert names(found) == {"a.Listed", "a.Other"}
    entry = f"a/Listed.class in {world.plugins / 'damaged.jar'} cannot be read: Bad CRC-32"
    expected = [
        *(
            f"{world.plugins / name} cannot be read as an archive: File is not a zip file"
            for name in ("empty.jar", "truncated.jar")
        ),
        f"{entry} for file 'a/Listed.class'",
    ]
    assert sorted(found.problems) == sorted(expected)


def test_java_is_asked_once_for_the_same_jars(world: World) -> None:
    """Changed jars are asked about again, and an answer with an error is not cached."""
    jar = world.plugins / "p.jar"
    make_jar(jar, LISTED, {SOURCE_CONNECTOR: ["a.Listed"]})
    assert names(world.find()) == names(world.find()) == {"a.Listed"}
    assert world.asked == ["a.Listed"]
    make_jar(jar, {"a.Listed": class_file("a.Listed", "x.Y")}, {SOURCE_CONNECTOR: ["a.Listed"]})
    world.answers["a.Listed"] = {"constructible": True, "error": "no database"}
    assert names(world.find()) == set()
    world.answers.clear()
    assert names(world.find()) == {"a.Listed"}
    assert world.asked == ["a.Listed"] * 3


def test_a_cache_that_cannot_be_written_changes_nothing(world: World) -> None:
    """Without a writable cache each start asks Java again."""
    make_jar(world.plugins / "p.jar", LISTED, {SOURCE_CONNECTOR: ["a.Listed"]})
    world.cache.write_text("a file")
    assert names(world.find()) == names(world.find()) == {"a.Listed"}
    assert world.asked == ["a.Listed"] * 2


MK_SET = ("org.apache.kafka.common.utils.Utils", "mkSet", "([Ljava/lang/Object;)Ljava/util/Set;")


def kafkas(found: JavaPlugins) -> dict[str, str]:
    return {plugin.class_name: plugin.kafka for plugin in found.plugins}


def with_an_old_plugin(world: World) -> None:
    """Add an old plugin, and one that runs with each release."""
    old = class_file("a.Old", SOURCE_CONNECTOR, uses=[MK_SET])
    make_jar(world.plugins / "old-1.jar", {"a.Old": old})
    make_jar(world.plugins / "new-1.jar", {"a.New": class_file("a.New", SOURCE_CONNECTOR)})


def test_a_location_has_the_newest_kafka_with_all_that_it_needs(world: World) -> None:
    """A location whose classes all exist in the usual Kafka keeps it; the cache has the result."""
    with_an_old_plugin(world)
    expected = {"a.Old": "3.9", "a.New": ""}
    assert kafkas(world.find()) == expected
    assert world.kafkas == expected
    world.asked.clear()
    assert kafkas(world.find()) == expected
    assert world.asked == []


def test_the_workers_file_names_the_kafka_of_a_location(world: World) -> None:
    """The first pattern that matches the location's name wins, even over its classes' needs."""
    with_an_old_plugin(world)
    world.find()
    world.releases = "old-*=4.4, *=/opt/kafka"
    assert kafkas(world.find()) == {"a.Old": "4.4", "a.New": "/opt/kafka"}


def test_a_file_beside_the_jars_names_the_kafka_of_a_location(world: World) -> None:
    """The worker's file wins over the file beside the jars, which is read at each start."""
    directory = world.plugins / "here"
    make_jar(directory / "p.jar", {"a.New": class_file("a.New", SOURCE_CONNECTOR)})
    assert kafkas(world.find()) == {"a.New": ""}
    (directory / "kafka.release").write_text("3.9\n")
    assert kafkas(world.find()) == {"a.New": "3.9"}
    world.releases = "h*=/opt/kafka"
    assert kafkas(world.find()) == {"a.New": "/opt/kafka"}
    world.releases = ""
    (directory / "kafka.release").write_text("")
    assert kafkas(world.find()) == {"a.New": ""}


def test_without_the_jars_of_its_kafka_a_location_has_the_usual_one(world: World) -> None:
    """The missing jars are a problem with the reason, and the next start tries again."""
    with_an_old_plugin(world)
    world.missing = {"3.9"}
    found = world.find()
    assert kafkas(found) == {"a.Old": "", "a.New": ""}
    assert ["old-1.jar needs Kafka 3.9" in text for text in found.problems] == [True]
    world.missing.clear()
    assert kafkas(world.find())["a.Old"] == "3.9"
