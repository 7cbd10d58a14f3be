"""Records of one poll as columns, and their way to the client."""

from typing import Any

import pytest
from confluent_kafka import Producer

from pyconnect_agent.builtin.converters.base import StringConverter
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.tasks.source.pipeline import compose_run
from pyconnect_api import INT32_SCHEMA, STRING_SCHEMA, ConnectHeaders, SourceRecord
from tests.agent.tasks.parts import converters, json_values, text_run


def test_the_client_takes_its_arguments_where_they_are_put() -> None:
    """Arguments are passed by position, which is not documented, so a wrong place must raise."""
    seen: list[tuple[object, ...]] = []

    def delivered(error: Any, message: Any) -> None:
        seen.append((message.topic(), message.key(), message.value(), message.partition()))

    producer = TaskProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    headers = ConnectHeaders().add_string("h", "x")
    polled = [
        SourceRecord({}, {}, "t", 3, None, "k", None, "v1", 1_700_000_000_000, headers),
        SourceRecord({}, {}, "t", 3, None, None, None, None, 1_700_000_000_001),
    ]
    assert producer.produce_many(text_run(polled), [delivered, delivered]) == 2
    for column, wrong in (("timestamps", [("h", b"x")]), ("headers", 1_700_000_000_000)):
        sent = text_run(polled)
        setattr(sent, column, [wrong] * 2)
        with pytest.raises(TypeError):
            producer.produce_many(sent, [None, None])
    producer.close(0)
    assert seen == [("t", b"k", b"v1", 3), ("t", None, None, 3)]


def test_a_full_queue_takes_the_first_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """`produce_many` returns how many records the queue has taken; the others can be sent again."""
    producer = TaskProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    limited = Producer(
        {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "queue.buffering.max.messages": 3}
    )
    monkeypatch.setattr(producer, "produce", limited.produce)
    sent = text_run([SourceRecord({}, {}, "t", value=f"{n}") for n in range(5)])
    assert producer.produce_many(sent, [None] * 5) == 3
    sent.taken = 3
    assert [*sent.rest().values] == [b"3", b"4"]
    limited.purge()
    producer.close(0)


def test_schemas_and_topics_may_differ_from_record_to_record() -> None:
    """Each record is converted with its own schema and topic."""
    values = json_values()
    run = compose_run(converters(values))
    polled = [
        SourceRecord({}, {}, topic, None, None, "k", schema, value)
        for topic, schema, value in (
            ("t", STRING_SCHEMA, "x"),
            ("u", INT32_SCHEMA, 1),
            ("t", None, None),
        )
    ]
    expected = [
        values.from_connect_data(r.topic or "", [], r.value_schema, r.value) for r in polled
    ]
    assert [*run(polled, polled).values] == expected


def test_headers_that_a_converter_adds_are_sent() -> None:
    """A converter's headers follow the record's own, as with single records."""

    class Marking(StringConverter):
        def from_connect_data(
            self, topic: str, headers: Any, schema: Any, value: object
        ) -> bytes | None:
            headers.append(("mark", b"1"))
            return super().from_connect_data(topic, headers, schema, value)

    run = compose_run(converters(Marking()))
    own = ConnectHeaders().add_string("h", "x")
    polled = [SourceRecord({}, {}, "t", value="a"), SourceRecord({}, {}, "t", headers=own)]
    assert [*run(polled, polled).headers] == [[("mark", b"1")], [("h", b"x"), ("mark", b"1")]]
