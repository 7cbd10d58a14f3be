"""The plugin without Kafka."""

from pathlib import Path

from directory_plugin.sink import BatchFileSinkConnector
from directory_plugin.source import DirectorySourceConnector

from pyconnect_api import TopicPartition
from pyconnect_api.testing import ConnectorHarness


def test_the_source_goes_on_after_the_last_committed_file(tmp_path: Path) -> None:
    connector = ConnectorHarness(
        DirectorySourceConnector, {"directory": str(tmp_path), "topic": "files"}
    )
    connector.start()
    source = connector.source()
    (tmp_path / "a").write_text("first")
    source.start()
    assert [record.value for record in source.run(1)] == ["first"]
    source.commit()
    source.restart()
    assert source.poll() == []
    (tmp_path / "b").write_text("second")
    assert [record.key for record in source.poll()] == ["b"]


def test_a_rebalance_loses_nothing_and_writes_nothing_twice(tmp_path: Path) -> None:
    connector = ConnectorHarness(
        BatchFileSinkConnector, {"directory": str(tmp_path), "records.per.file": "2"}
    )
    connector.start()
    sink = connector.sink(partitions=[TopicPartition("lines", 0)])
    sink.start()
    for text in ("one", "two", "three"):
        sink.send(text, partition=TopicPartition("lines", 0))
    sink.deliver()
    assert sink.commit() == {("lines", 0): 2}
    sink.revoke()
    assert sink.committed == {("lines", 0): 3}
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["one\ntwo\n", "three\n"]


def test_a_missing_directory_is_found_before_anything_runs() -> None:
    connector = ConnectorHarness(DirectorySourceConnector, {"topic": "files"})
    assert "directory" in connector.errors()
