"""Offsets of a source connector from its own topic and the worker's, over REST."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from pyconnect_agent.core.errors import AgentError, InternalError, RequestTimedOutError
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind
from pyconnect_agent.herder.connector_offsets import ConnectorOffsetReader
from tests.support.cases import cases
from tests.support.fakes.children_world import MemoryOffsetStore

SOURCE = PluginDesc(
    class_name="x.Source", python_path="x:Source", kind=PluginKind.SOURCE, version="1"
)
CATALOG = Catalog((SOURCE,))
CONFIG = {"connector.class": "x.Source"}
OLD, NEW = b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]'
OTHER = b'["c",{"a":9}]'


class Children:
    """Children that answer with the content of the connector's own topic."""

    def __init__(self, answer: Mapping[bytes, bytes] | AgentError) -> None:
        self.answer = answer
        self.asked = 0
        self.jobs = self

    async def own_offsets(
        self, connector: str, config: Mapping[str, str | None], timeout_ms: int
    ) -> Mapping[bytes, bytes]:
        self.asked += 1
        if isinstance(self.answer, AgentError):
            raise self.answer
        return self.answer


def read(
    children: Children, entries: dict[bytes, bytes], *, own: bool
) -> list[tuple[object, object]]:
    store = MemoryOffsetStore()
    store.entries = entries
    reader = ConnectorOffsetReader(store, cast("Any", children), CATALOG, lambda _: own)
    found = asyncio.run(reader.read("c", CONFIG, 1_000))
    return sorted(((offset.partition, offset.offset) for offset in found), key=str)


def test_of_one_partition_the_own_topics_offset_is_shown() -> None:
    """Of equal partitions the own topic's offset counts; other offsets are shown too."""
    children = Children({OLD: b'{"o":2}'})
    entries = {OLD: b'{"o":0}', NEW: b'{"o":1}', OTHER: b'{"o":9}'}
    shown = read(children, entries, own=True)
    assert shown == [({"a": 1, "b": 2}, {"o": 2}), ({"a": 9}, {"o": 9})]


def test_without_a_topic_of_its_own_no_process_is_started() -> None:
    """The worker's own store is read without a child process."""
    children = Children({})
    assert read(children, {OTHER: b'{"o":9}'}, own=False) == [({"a": 9}, {"o": 9})]
    assert children.asked == 0


@cases("error", InternalError("no"), RequestTimedOutError("late"))
def test_a_topic_that_cannot_be_read_is_a_failure(error: AgentError) -> None:
    """If the own topic cannot be read, no offsets are returned at all."""
    with pytest.raises(InternalError, match="Failed to retrieve offsets for source connector c"):
        read(Children(error), {}, own=True)
