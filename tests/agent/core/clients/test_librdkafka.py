"""Java's client settings in librdkafka's words."""

import pytest

from pyconnect_agent.core.clients.configs import ClientConfig
from pyconnect_agent.core.clients.librdkafka import translate
from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_api import ConfigException
from tests.support.cases import cases

PRODUCER, CONSUMER, ADMIN = ClientKind.PRODUCER, ClientKind.CONSUMER, ClientKind.ADMIN


@cases(
    "kind, java, librdkafka",
    (PRODUCER, {"delivery.timeout.ms": "2147483647"}, {"delivery.timeout.ms": "0"}),
    (PRODUCER, {"max.request.size": "5000000"}, {"message.max.bytes": "5000000"}),
    (PRODUCER, {"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
    (
        PRODUCER,
        {"compression.type": "zstd", "compression.zstd.level": "7"},
        {"compression.type": "zstd", "compression.level": "7"},
    ),
    (PRODUCER, {"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
    (CONSUMER, {"fetch.max.wait.ms": "100"}, {"fetch.wait.max.ms": "100"}),
    (CONSUMER, {"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
    (
        CONSUMER,
        {"auto.offset.reset": "by_duration:PT1H"},
        {"auto.offset.reset": "by_duration:3600000"},
    ),
    (
        CONSUMER,
        {"auto.offset.reset": "By_Duration:p1dT-1h2m3.5s"},
        {"auto.offset.reset": "by_duration:82923500"},
    ),
    (
        CONSUMER,
        {
            "partition.assignment.strategy": (
                "org.apache.kafka.clients.consumer.RangeAssignor, "
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            )
        },
        {"partition.assignment.strategy": "range"},
    ),
    (ADMIN, {"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": "0"}),
    (ADMIN, {"request.timeout.ms": "40000"}, {"socket.timeout.ms": "40000"}),
)
def test_settings_are_put_into_librdkafkas_words(
    kind: ClientKind, java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    """The meaning stays, nothing is warned about."""
    built = translate(java, kind)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka
    assert built.warnings == ()


def test_keys_are_placed_as_java_places_them() -> None:
    """Otherwise a Java worker would look for offsets in another partition."""
    assert translate({}, PRODUCER).properties["partitioner"] == "murmur2_random"


def test_transactional_producers_have_no_longer_limit_than_their_transaction() -> None:
    """librdkafka refuses it; without a setting it follows the transaction's limit."""
    base = {"transactional.id": "t", "enable.idempotence": "true"}
    built = translate(base | {"delivery.timeout.ms": "2147483647"}, PRODUCER).properties
    assert "delivery.timeout.ms" not in built
    short = translate(
        base | {"transaction.timeout.ms": "10000", "request.timeout.ms": "30000"}, PRODUCER
    ).properties
    assert short["socket.timeout.ms"] == "10000"
    assert (
        translate(base | {"delivery.timeout.ms": "5000"}, PRODUCER).properties[
            "delivery.timeout.ms"
        ]
        == "5000"
    )


def test_the_caller_adds_and_keeps_what_librdkafka_does_not_know() -> None:
    """Limits are handed over, properties put on top; Java's largest number is no limit."""
    built = translate({"max.poll.records": "7", "max.block.ms": "9223372036854775807"}, CONSUMER)
    assert built.max_poll_records == 7
    assert built.max_block_ms is None
    assert not {"max.poll.records", "max.block.ms"} & set(built.properties)
    config = ClientConfig(kind=CONSUMER, java_config={"group.id": "g"})
    assert config.build({"enable.partition.eof": "true"}).properties["enable.partition.eof"] == (
        "true"
    )


@cases(
    "java, part",
    ({"no.such.setting": "1"}, "'no.such.setting' is unknown"),
    ({"interceptor.classes": "a.B"}, "'interceptor.classes' has no effect"),
    ({"linger.ms": "1000000"}, "900000 is used"),
    ({"partitioner.class": "a.Mine"}, "The partitioner a.Mine is not available"),
)
def test_unsupported_settings_give_a_warning(java: dict[str, str], part: str) -> None:
    """The warning names the setting."""
    (warning,) = translate(java, PRODUCER).warnings
    assert part in warning


def test_values_of_the_wrong_type_are_refused() -> None:
    """With Kafka's text; settings of other kinds of clients are dropped in silence."""
    with pytest.raises(ConfigException, match=r"configuration linger\.ms: Not a number"):
        translate({"linger.ms": "soon"}, PRODUCER)
    assert translate({"fetch.min.bytes": "1"}, PRODUCER).warnings == ()
    assert "fetch.min.bytes" not in translate({"fetch.min.bytes": "1"}, PRODUCER).properties


@cases("text", "", "P", "PT", "1h", "P1Y", "P1DT", "-PT1S", "PT-1S")
def test_a_duration_that_java_refuses_is_refused(text: str) -> None:
    """A wrong one would begin somewhere else, or nowhere."""
    with pytest.raises(ConfigException, match="by_duration offset reset strategy"):
        translate({"auto.offset.reset": f"by_duration:{text}"}, CONSUMER)
