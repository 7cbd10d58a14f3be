"""Both connectors on a server that speaks S3."""

import pyarrow.parquet as pq
import pytest

from pyconnect_api import ConfigValue, ConnectException, TopicPartition
from pyconnect_api.testing import SinkHarness, SourceHarness
from pyconnect_connectors.lake.sink import LakeSinkConnector, LakeSinkTask
from pyconnect_connectors.lake.source import LakeSourceConnector, LakeSourceTask
from tests.connectors.lake.rows import ROW, row, send
from tests.support.servers.s3 import SECRET_KEY, S3Server, running_s3

pytestmark = pytest.mark.wire
PARTITION = TopicPartition("topic", 0)


def sink_props(s3: S3Server, bucket: str, **settings: str) -> dict[str, str]:
    return {"name": "to-lake", **s3.settings(bucket), "retry.backoff.ms": "0", **settings}


def errors(values: list[ConfigValue]) -> dict[str, list[str]]:
    return {value.name: list(value.error_messages) for value in values if value.error_messages}


def test_rows_travel_from_a_topic_to_a_bucket_and_back(s3: S3Server) -> None:
    """Rows travel to a bucket and back, in files with the same names as local ones."""
    bucket = s3.new_bucket()
    sink = SinkHarness(LakeSinkTask, sink_props(s3, bucket, **{"flush.size": "3"}))
    sink.start()
    send(sink, range(7))
    sink.deliver()
    assert sink.commit() == {PARTITION: 6}
    sink.stop()
    assert sink.committed == {PARTITION: 7}
    directory = s3.files / bucket / "base" / "topics" / "topic" / "partition=0"
    assert {path.name: pq.read_metadata(path).num_rows for path in directory.iterdir()} == {
        "topic+0+0000000000.snappy.parquet": 3,
        "topic+0+0000000003.snappy.parquet": 3,
        "topic+0+0000000006.snappy.parquet": 1,
    }
    props = {**s3.settings(bucket), "topic": "back", "prefix": "topics/topic"}
    source = SourceHarness(LakeSourceTask, props)
    source.start()
    assert [record.value.get("id") for record in source.run(7)] == list(range(7))  # type: ignore[attr-defined]
    source.stop()


def test_a_file_is_written_by_one_of_two_tasks(s3: S3Server) -> None:
    """Two tasks commit different ends, and the later one continues after the first one's end."""
    bucket = s3.new_bucket()
    zombie, successor = (SinkHarness(LakeSinkTask, sink_props(s3, bucket)) for _ in range(2))
    for sink in (zombie, successor):
        sink.start()
        send(sink, range(5))
    zombie.deliver(3)
    successor.deliver()
    successor.stop()
    zombie.stop()
    files = (s3.files / bucket / "base" / "topics" / "topic" / "partition=0").iterdir()
    assert [pq.read_table(path)["id"].to_pylist() for path in files] == [[0, 1, 2, 3, 4]]


def test_wrong_credentials_are_found_by_validation(s3: S3Server) -> None:
    """Validation reports wrong credentials without the secret."""
    wrong = {**s3.settings(s3.new_bucket()), "aws.access.key.id": "guess"}
    for config in (
        LakeSinkConnector().validate({"name": "s", **wrong}),
        LakeSourceConnector().validate({"name": "s", "topic": "t", **wrong}),
    ):
        (text,) = errors(config.config_values)["lake.url"]
        assert "403 Forbidden" in text
        assert SECRET_KEY not in text


def test_a_bucket_that_is_missing_is_found_by_validation(s3: S3Server) -> None:
    """Validation reports a missing bucket, and does not create it."""
    config = LakeSinkConnector().validate(sink_props(s3, "no-such-bucket"))
    (text,) = errors(config.config_values)["lake.url"]
    assert "404 Not Found" in text


def test_storage_that_ignores_conditions_is_refused() -> None:
    """With storage that ignores conditions a zombie could replace a file; at-least-once remains."""
    with running_s3(overwrites=True) as server:
        props = sink_props(server, server.new_bucket())
        (text,) = errors(LakeSinkConnector().validate(props).config_values)["lake.url"]
        assert "conditional writes (If-None-Match) are missing" in text
        weaker = {**props, "delivery.guarantee": "at-least-once"}
        assert errors(LakeSinkConnector().validate(weaker).config_values) == {}


def test_a_storage_that_went_away_is_tried_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The task keeps the batch, fails after the last attempt, and names the failed action."""
    with running_s3() as server:
        bucket = server.new_bucket()
        props = {"flush.size": "2", "max.retries": "2"}
        sink = SinkHarness(LakeSinkTask, sink_props(server, bucket, **props))
        sink.start()
        send(sink, range(2))
        server.stop()
        assert sink.deliver() == []
        assert sink.context.timeouts_ms == [0]
        assert sink.deliver() == []
        with pytest.raises(ConnectException, match=r"Cannot write topics/.*\(3 attempts\)"):
            sink.deliver()
        server.start()
        sink.crash()
        sink.deliver()
        files = (server.files / bucket / "base" / "topics" / "topic" / "partition=0").iterdir()
        assert [pq.read_table(path).num_rows for path in files] == [2]


def test_the_schema_of_rows_is_that_of_the_records(s3: S3Server) -> None:
    """The types that Parquet keeps come back from the bucket as they were."""
    bucket = s3.new_bucket()
    sink = SinkHarness(LakeSinkTask, sink_props(s3, bucket))
    sink.start()
    sink.send(row(1), value_schema=ROW)
    sink.deliver()
    sink.stop()
    source = SourceHarness(LakeSourceTask, {**s3.settings(bucket), "topic": "back"})
    source.start()
    (record,) = source.run(1)
    assert record.value.stored_values() == row(1).stored_values()  # type: ignore[attr-defined]
    source.stop()
