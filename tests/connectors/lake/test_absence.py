"""Storage and catalogs that do not answer: when the task reports it, and how long it tries."""

import pytest

from pyconnect_api import ConnectException, RetriableException, TopicPartition
from pyconnect_api.testing import SinkHarness, SourceHarness
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_connectors.lake.source import LakeSourceTask
from tests.support.cases import cases

NO_STORAGE = {
    "name": "lake",
    "topic": "topic",
    "lake.url": "s3://bucket/base",
    "store.url": "http://127.0.0.1:9",
    "s3.region": "us-east-1",
    "aws.access.key.id": "key",
    "aws.secret.access.key": "secret",
    "retry.backoff.ms": "3000",
    "max.retries": "1",
}
NO_CATALOG = {
    **NO_STORAGE,
    "format.class": "iceberg",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://127.0.0.1:9",
    "iceberg.tables": "shop.orders",
}


@cases("settings", NO_STORAGE, NO_CATALOG, ids=["storage", "catalog"])
def test_a_sink_raises_the_error_of_open_at_once(settings: dict[str, str]) -> None:
    """The worker shows the error in the status, and opens again after the backoff."""
    sink = SinkHarness(LakeSinkTask, settings)
    with pytest.raises(RetriableException, match="Cannot"):
        sink.start()
    assert sink.context.timeouts_ms == [3000]
    with pytest.raises(ConnectException, match=r"\(2 attempts\)") as caught:
        sink.task.open([TopicPartition("topic", 0)])
    assert not isinstance(caught.value, RetriableException)


def test_a_source_raises_before_it_waits() -> None:
    """The task waits for the backoff in the next poll, after it has raised the error."""
    source = SourceHarness(LakeSourceTask, NO_STORAGE)
    task = source.start()
    with pytest.raises(RetriableException, match="Cannot list"):
        task.poll()
    assert source.stop_requested.waits_s == []
    with pytest.raises(ConnectException, match=r"\(2 attempts\)"):
        task.poll()
    assert source.stop_requested.waits_s == [3.0]
    source.stop()
