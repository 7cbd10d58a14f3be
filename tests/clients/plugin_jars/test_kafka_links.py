"""Links of Java plugins to Kafka, with jars that the tests make without Java."""

from pathlib import Path

import pytest

from pyconnect_clients.plugin_jars.class_file import ClassMember
from pyconnect_clients.plugin_jars.kafka_links import (
    KafkaApi,
    KafkaLinks,
    Missing,
    kafka_api,
    read_links,
)
from tests.support.plugins.java_jars import SOURCE_CONNECTOR, class_file, make_jar

UTILS = "org.apache.kafka.common.utils.Utils"
SANITIZER = "org.apache.kafka.common.utils.Sanitizer"
MK_SET = ("mkSet", "([Ljava/lang/Object;)Ljava/util/Set;")


def links(tmp_path: Path, **classes: bytes) -> KafkaLinks:
    """Return the links of a jar in which a connector `a.Main` names `a.Used`."""
    main = class_file("a.Main", SOURCE_CONNECTOR, names=("a.Used",))
    named = {"a.Main": main} | {f"a.{name}": content for name, content in classes.items()}
    return read_links([make_jar(tmp_path / "plugin.jar", named)])


def test_what_a_release_lacks_is_named_with_its_user(tmp_path: Path) -> None:
    """Findings name a class that Kafka 4.4 moved, and a method that 4.0 removed."""
    found = links(tmp_path, Used=class_file("a.Used", names=(SANITIZER,)))
    assert found.missing(kafka_api(), "4.3") == []
    assert found.missing(kafka_api(), "4.4.0") == [Missing(SANITIZER, "a.Used", "4.3")]
    assert found.releases(kafka_api()) == ("3.9", "4.0", "4.1", "4.2", "4.3")
    found = links(tmp_path, Used=class_file("a.Used", uses=[(UTILS, *MK_SET)]))
    expected = [Missing(f"{UTILS}.{''.join(MK_SET)}", "a.Used", "3.9")]
    assert found.missing(kafka_api(), "4.4") == expected
    assert found.releases(kafka_api()) == ("3.9",)


def test_kafkas_own_connectors_are_plugins_like_others(tmp_path: Path) -> None:
    """Kafka's own connect-file of 4.3 does not run with 4.4."""
    name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    links = read_links(
        [
            make_jar(
                tmp_path / "f.jar", {name: class_file(name, SOURCE_CONNECTOR, names=(SANITIZER,))}
            )
        ]
    )
    assert [each.user for each in links.missing(kafka_api(), "4.4")] == [name]
    assert links.bundled == frozenset()


def test_only_reached_classes_of_kafka_count(tmp_path: Path) -> None:
    """Classes for other programs do not count, and Kafka Streams is not part of Connect."""
    found = links(tmp_path, Other=class_file("a.Other", names=(SANITIZER,)))
    assert found.missing(kafka_api(), "4.4") == []
    used = class_file("a.Used", names=("org.apache.kafka.streams.KafkaStreams",))
    assert links(tmp_path, Used=used).releases(kafka_api()) == kafka_api().releases


def test_a_class_is_reached_by_its_name_in_a_text(tmp_path: Path) -> None:
    """A class counts if a reached class has its name in a text, since code may load it so."""
    named = class_file("a.Used", names=("a.b.Loaded",))
    jar = make_jar(
        tmp_path / "plugin.jar",
        {
            "a.Main": class_file("a.Main", SOURCE_CONNECTOR, names=("a.Used",)),
            "a.Used": named,
            "a.b.Loaded": class_file("a.b.Loaded", names=(SANITIZER,)),
        },
    )
    assert read_links([jar]).missing(kafka_api(), "4.4")


def test_an_own_copy_stands_in_for_a_class_that_kafka_lacks(tmp_path: Path) -> None:
    """Connect's loader looks into the location for classes that Kafka's jars lack."""
    main = class_file("a.Main", SOURCE_CONNECTOR, names=(SANITIZER,), uses=[(UTILS, *MK_SET)])
    jar = make_jar(
        tmp_path / "fat.jar",
        {"a.Main": main, SANITIZER: class_file(SANITIZER), UTILS: class_file(UTILS)},
    )
    found = read_links([jar])
    assert found.bundled == {SANITIZER, UTILS}
    # Kafka has the class Utils, and Kafka's own comes first.
    expected = [f"{UTILS}.{''.join(MK_SET)}"]
    assert [each.needed for each in found.missing(kafka_api(), "4.4")] == expected


def test_an_inherited_member_is_looked_up_in_kafka(tmp_path: Path) -> None:
    """A compiler names the location's class as owner of a member that Kafka's class has."""
    child, result = "a.Child", "org.apache.kafka.clients.admin.DescribeTopicsResult"
    old, kept = "values", "topicNameValues"
    uses = [(child, name, "()Ljava/util/Map;") for name in (old, kept, "own")]
    found = links(
        tmp_path,
        Used=class_file("a.Used", names=(child,), uses=[*uses, (child, "size", "()I")]),
        Child=class_file(child, result, ["java.util.List"], methods=[("own", "()Ljava/util/Map;")]),
    )
    assert found.missing(kafka_api(), "3.9") == []
    expected = [Missing(f"{result}.values()Ljava/util/Map;", "a.Used", "3.9")]
    assert found.missing(kafka_api(), "4.0") == expected
    assert found.absent(kafka_api()) == []


def test_what_kafka_lost_or_hid_long_ago_is_in_no_release(tmp_path: Path) -> None:
    """SystemTime is not public any more: code that uses it fails with IllegalAccessError."""
    time, old = "org.apache.kafka.common.utils.SystemTime", ("removed", "()V")
    uses = [(time, "<init>", "()V"), (UTILS, *old), (UTILS, "notifyAll", "()V")]
    used = class_file("a.Used", names=("org.apache.kafka.streams.KafkaStreams",), uses=uses)
    found = links(tmp_path, Used=used)
    expected = [Missing(time, "a.Used"), Missing(f"{UTILS}.{''.join(old)}", "a.Used")]
    assert found.absent(kafka_api()) == expected
    # Which release a location runs with depends on the rest.
    assert found.releases(kafka_api()) == kafka_api().releases


def test_classes_of_the_worker_and_of_newer_java_are_reported(tmp_path: Path) -> None:
    """Iceberg's sink reads an internal field, and the newest reached class decides the Java."""
    name = "org.apache.kafka.connect.runtime.WorkerSinkTaskContext"
    assert links(tmp_path, Used=class_file("a.Used", names=(name,))).internals == {name: "a.Used"}
    assert links(tmp_path, Used=class_file("a.Used", java=21), Far=b"").java == 21


def test_damaged_files_are_problems_and_end_nothing(tmp_path: Path) -> None:
    """A jar that is not a zip, and a cut class file, are reported as problems."""
    (tmp_path / "broken.jar").write_text("no zip")
    main = class_file("a.Main", SOURCE_CONNECTOR, names=("a.Used",))
    jar = make_jar(tmp_path / "plugin.jar", {"a.Main": main, "a.Used": class_file("a.Used")[:20]})
    first, second = read_links([tmp_path / "broken.jar", jar]).problems
    assert "broken.jar cannot be read" in first
    assert "a/Used.class" in second


@pytest.fixture
def api() -> KafkaApi:
    return kafka_api()


def test_members_are_inherited_in_the_table(api: KafkaApi) -> None:
    """Members come from Kafka's and Java's known classes; unknown classes have all members."""
    every = (1 << len(api.releases)) - 1
    source = "org.apache.kafka.connect.source.SourceConnector"
    inherited = ClassMember(
        source, "initialize(Lorg/apache/kafka/connect/connector/ConnectorContext;)V"
    )
    assert api.releases_with_member(inherited) == every
    assert api.releases_with_member(ClassMember(source, "hashCode()I")) == every
    assert api.releases_with_member(ClassMember(source, "nothing()V")) == 0
    failure = "org.apache.kafka.connect.errors.ConnectException"
    assert api.releases_with_member(ClassMember(failure, "getMessage()Ljava/lang/String;")) == every
    consumer = "org.apache.kafka.clients.consumer.KafkaConsumer"
    old_poll = "poll(J)Lorg/apache/kafka/clients/consumer/ConsumerRecords;"
    assert api.releases_with_member(ClassMember(consumer, "close()V")) == every
    assert api.releases_with_member(ClassMember(consumer, old_poll)) == api.bit("3.9")


def test_constructors_are_not_inherited(api: KafkaApi) -> None:
    """Constructors are not inherited, from unknown classes either."""
    for name in ("common.metrics.JmxReporter", "connect.errors.ConnectException"):
        constructor = ClassMember(f"org.apache.kafka.{name}", "<init>(J)V")
        assert api.releases_with_member(constructor) == 0
    with pytest.raises(KeyError):
        api.bit("3.0")
