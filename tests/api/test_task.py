"""The classes connector authors derive from."""

import threading
from collections.abc import Mapping

import pytest

from pyconnect_api import SinkTask, SinkTaskContext, SourceTaskContext, StopSignal, TopicPartition
from tests.agent.plugins.plugin_table import PlainSink, PlainSource


class _Context(SinkTaskContext):
    """A context with the members that a worker has to provide, and no more."""

    def configs(self) -> Mapping[str, str]:
        return {}

    def offset(self, target: object, offset: int | None = None, /) -> None: ...
    def timeout(self, timeout_ms: int) -> None: ...
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset()

    def pause(self, *partitions: TopicPartition) -> None: ...
    def resume(self, *partitions: TopicPartition) -> None: ...
    def request_commit(self) -> None: ...
    def errant_record_reporter(self) -> None: ...


def test_topic_partitions_print_as_kafkas_do() -> None:
    """The text is topic, dash and number, as Kafka's."""
    assert str(TopicPartition("a-b", 3)) == "a-b-3"


def test_contexts_are_contracts() -> None:
    """Contexts are abstract; `is_closing` is also available by KIP-275's name `isClosing`."""
    for context in (SinkTaskContext, SourceTaskContext, SinkTask):
        with pytest.raises(TypeError, match="abstract"):
            context()  # type: ignore[abstract]
    signal: StopSignal = threading.Event()
    assert not signal.is_set()
    context = _Context()
    assert context.is_closing is context.isClosing is False
    context.is_closing = True
    assert context.isClosing


def test_hooks_of_connectors_have_defaults() -> None:
    """By default a connector does not support exactly-once, and validation hides secrets."""
    assert PlainSource().exactly_once_support({}) is None
    assert PlainSource().can_define_transaction_boundaries({}).value == "UNSUPPORTED"
    assert PlainSource().alter_offsets({}, []) is False
    assert PlainSink().alter_offsets({}, {}) is False
    value = PlainSource().validate({"secret": "x"}).config_values[0]
    assert (value.name, str(value.value)) == ("secret", "[hidden]")
