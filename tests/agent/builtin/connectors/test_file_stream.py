"""FileStreamSource and FileStreamSink."""

import errno
import os
import threading
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.connectors import file_stream
from pyconnect_agent.builtin.connectors.file_stream import (
    FileStreamSinkConnector,
    FileStreamSinkTask,
    FileStreamSourceConnector,
    FileStreamSourceTask,
    LineSplitter,
)
from pyconnect_api import (
    INT64_SCHEMA,
    STRING_SCHEMA,
    ConfigException,
    ConnectException,
    ExactlyOnceSupport,
    RetriableException,
    SinkRecord,
    SourceRecord,
    TopicPartition,
)
from tests.support.cases import cases


class Context:
    """A source task's context and offset reader; it records waits in `waits_s` without waiting."""

    def __init__(self, offset: Mapping[str, object] | None = None) -> None:
        self.stored = offset
        self.offset_storage_reader = self
        self.stop_requested: Any = self
        self.waits_s: list[float] = []
        self.on_wait: Any = lambda: None
        self.timeouts_ms: list[int] = []

    def offset(self, partition: Mapping[str, object]) -> Mapping[str, object] | None:
        return self.stored

    def wait(self, timeout: float) -> bool:
        self.waits_s.append(timeout)
        self.on_wait()
        return False

    def timeout(self, timeout_ms: int) -> None:
        self.timeouts_ms.append(timeout_ms)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f"


def source_task(
    path: Path,
    offset: Mapping[str, object] | None = None,
    content: bytes | None = None,
    **settings: str,
) -> tuple[FileStreamSourceTask, Context]:
    if content is not None:
        path.write_bytes(content)
    task, context = FileStreamSourceTask(), Context(offset)
    task.initialize(context)  # type: ignore[arg-type]
    options = {name.replace("_", "."): value for name, value in settings.items()}
    task.start({"file": str(path), "topic": "t", **options})
    return task, context


def values(records: Any) -> list[tuple[str, int]]:
    return [(record.value, record.source_offset["position"]) for record in records or ()]


def test_every_line_is_a_record(path: Path) -> None:
    """A line's record has schema, topic, partition, the offset after the line, and a timestamp."""
    task, _ = source_task(path, content="one\r\nzwölf\n\nrest".encode())
    records = list(task.poll() or ())
    assert values(records) == [("one", 5), ("zwölf", 12), ("", 13)]
    first: SourceRecord = records[0]
    expected = ("t", None, None, None)
    assert (first.topic, first.kafka_partition, first.key, first.key_schema) == expected
    assert first.value_schema is STRING_SCHEMA
    assert first.source_partition == {"filename": str(path)}
    assert first.timestamp is not None
    task.stop()


def test_positions_are_bytes_and_resume_there(path: Path) -> None:
    """A task resumes at each stored position with the next line, non-ASCII text included."""
    task, _ = source_task(path, content="ä\nöö\nü\n".encode())
    everything = values(task.poll())
    for number, (_, position) in enumerate(everything):
        resumed, _ = source_task(path, {"position": position})
        assert values(resumed.poll()) == everything[number + 1 :]


def test_a_poll_returns_a_batch_or_replaces_malformed_text(path: Path) -> None:
    """A poll returns one batch, and positions count the original bytes of malformed text."""
    task, _ = source_task(path, content=b"a\xffb\n")
    assert values(task.poll()) == [("a\ufffdb", 4)]
    task, _ = source_task(path, batch_size="2", content=b"1\n2\n3\n")
    assert values(task.poll()) == [("1", 2), ("2", 4)]
    assert values(task.poll()) == [("3", 6)]


def test_a_missing_file_is_waited_for(path: Path) -> None:
    """The task waits for a missing file, and opens it at a later poll."""
    task, context = source_task(path)
    assert task.poll() is None
    assert sum(context.waits_s) == 1.0
    path.write_bytes(b"1\n")
    assert values(task.poll()) == [("1", 2)]


def test_a_file_that_cannot_be_read_fails_the_task(tmp_path: Path) -> None:
    """A file that cannot be read, such as a directory, fails the task."""
    task, _ = source_task(tmp_path)
    with pytest.raises(ConnectException, match="Failed to read"):
        task.poll()


def test_appended_lines_are_read(path: Path) -> None:
    """A wait ends as soon as the file grows."""
    task, context = source_task(path, content=b"1\npart")
    assert values(task.poll()) == [("1", 2)]

    def append() -> None:
        with path.open("ab") as out:
            out.write(b"ial\n")

    context.on_wait = append
    assert task.poll() is None
    assert len(context.waits_s) == 1
    context.on_wait = lambda: None
    assert values(task.poll())[0] == ("partial", 10)


def test_an_idle_poll_waits_a_second_at_most(path: Path) -> None:
    """An idle poll waits in slices, so that a stop is noticed."""
    task, context = source_task(path, content=b"1\n")
    task.poll()
    assert task.poll() is None
    assert sum(context.waits_s) == pytest.approx(1.0)


@cases("position", "7", 7.0, True)
def test_a_stored_position_must_be_an_integer(path: Path, position: object) -> None:
    """A stored position that is not an integer is refused with Connect's text."""
    task, _ = source_task(path, {"position": position}, content=b"1\n")
    with pytest.raises(ConnectException, match="Offset position is the incorrect type"):
        task.poll()


def test_a_stored_null_position_is_the_beginning(path: Path) -> None:
    """A stored null position is the beginning, as a missing offset is."""
    task, _ = source_task(path, {"position": None}, content=b"1\n")
    assert values(task.poll()) == [("1", 2)]


def test_truncation_waits_or_restarts_or_fails(path: Path) -> None:
    """By default a task waits until a truncated file is longer than the stored position."""
    task, _ = source_task(path, content=b"123456\n")
    task.poll()
    path.write_bytes(b"ab\n")
    assert task.poll() is None
    assert task.poll() is None
    task, _ = source_task(path, on_truncate="restart", content=b"123456\n")
    task.poll()
    path.write_bytes(b"ab\n")
    assert task.poll() is None
    assert values(task.poll()) == [("ab", 3)]
    task, _ = source_task(path, on_truncate="fail", content=b"123456\n")
    task.poll()
    path.write_bytes(b"ab\n")
    with pytest.raises(ConnectException, match=r"has 3 bytes, fewer than the position 7"):
        task.poll()


def test_standard_input_has_no_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source partition and the position of standard input are null."""
    read_end, write_end = os.pipe()
    monkeypatch.setattr(file_stream, "DESCRIPTOR", read_end)
    task, context = FileStreamSourceTask(), Context()
    task.initialize(context)  # type: ignore[arg-type]
    task.start({"topic": "t"})
    try:
        assert task.poll() is None
        os.write(write_end, b"one\n")
        (record,) = task.poll() or ()
        assert record.source_partition == {"filename": None}
        assert record.source_offset == {"position": None}
        task.stop()
        os.write(write_end, b"still open\n")
    finally:
        os.close(write_end)
        os.close(read_end)


def test_the_configuration_is_checked() -> None:
    """A topic is required, and a batch has at least one record."""
    with pytest.raises(ConfigException, match='Missing required configuration "topic"'):
        FileStreamSourceConnector().start({"file": "f"})
    with pytest.raises(ConfigException, match=r"batch\.size"):
        FileStreamSourceConnector().start({"file": "f", "topic": "t", "batch.size": "0"})


def test_a_source_has_one_task_and_a_sink_as_many_as_allowed() -> None:
    """All tasks have the connector's config."""
    config = {"file": "f", "topic": "t"}
    source, sink = FileStreamSourceConnector(), FileStreamSinkConnector()
    source.start(config)
    sink.start(config)
    assert source.task_configs(5) == [config]
    assert sink.task_configs(3) == [config] * 3


def test_only_files_support_exactly_once() -> None:
    """Exactly-once delivery needs a file, because standard input cannot be read again."""
    connector = FileStreamSourceConnector()
    config = {"topic": "t", "file": "f"}
    assert connector.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({"topic": "t"}) is ExactlyOnceSupport.UNSUPPORTED


@cases(
    "file, partition, offset, text",
    ("", None, None, "Offsets cannot be modified if the 'file' configuration is unspecified"),
    ("f", {}, {}, "Offset objects should either be null or contain the key 'position'"),
    ("f", {}, {"position": "1"}, "expected to be a Long value"),
    ("f", {}, {"position": True}, "expected to be a Long value"),
    ("f", {}, {"position": -1}, "should be a non-negative value"),
    ("f", None, {"position": 1}, "Partition objects cannot be null"),
    ("f", {}, {"position": 1}, "Partition objects should contain the key 'filename'"),
)
def test_wrong_offsets_are_refused(
    file: str,
    partition: Mapping[str, object] | None,
    offset: Mapping[str, object] | None,
    text: str,
) -> None:
    """Wrong offsets are refused in Connect's order, with Connect's texts."""
    with pytest.raises(ConnectException, match=text):
        FileStreamSourceConnector().alter_offsets(
            {"topic": "t", "file": file}, [(partition, offset)]
        )


def test_good_offsets_and_any_tombstone_are_accepted() -> None:
    """Offsets may be of files that the config does not name any more."""
    accepted = FileStreamSourceConnector().alter_offsets(
        {"topic": "t", "file": "f"},
        [({"filename": "other"}, {"position": 3}), (None, None), ({"junk": 1}, None)],
    )
    assert accepted is True
    assert FileStreamSinkConnector().alter_offsets({}, {TopicPartition("t", 0): 5}) is True


def sink_task(path: Path) -> tuple[FileStreamSinkTask, Context]:
    task, context = FileStreamSinkTask(), Context()
    task.initialize(context)  # type: ignore[arg-type]
    task.start({"file": str(path)})
    return task, context


def sink_record(value: object, schema: Any = None) -> SinkRecord:
    return SinkRecord("t", 0, None, "ignored", schema, value, 0)


def test_values_are_written_as_lines(path: Path) -> None:
    """Values are appended in their text form, and keys do not matter."""
    path.write_text("old\n")
    task, _ = sink_task(path)
    task.put([sink_record("zwölf"), sink_record(None), sink_record(3, INT64_SCHEMA)])
    task.put([])
    task.put([sink_record({"a": [1, "b"]})])
    task.stop()
    assert path.read_text() == "old\nzwölf\nnull\n3\n{a=[1, b]}\n"


def test_a_file_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """A file that cannot be created is named in Connect's text."""
    path = tmp_path / "no" / "f"
    with pytest.raises(ConnectException, match=f"Couldn't find or create file '{path}' for File"):
        sink_task(path)


class FullDisk:
    """A file on a disk with `room` free bytes."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = room
        self._real_write = os.write
        monkeypatch.setattr(file_stream.os, "write", self._write)

    def _write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._real_write(descriptor, data[: self.room])
        self.room -= written
        return written


def test_a_full_disk_tears_no_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines written before the disk was full stay, and the repeated batch follows after them."""
    task, context = sink_task(path)
    disk = FullDisk(3, monkeypatch)
    batch = [sink_record("one"), sink_record("two")]
    with pytest.raises(RetriableException, match="No space left on device"):
        task.put(batch)
    assert context.timeouts_ms == [1_000]
    disk.room = 100
    task.put(batch.copy())
    assert path.read_text() == "one\ntwo\n"


def test_after_a_full_disk_writing_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rebalance the repeated batch differs, and no record of it is taken for written."""
    task, _ = sink_task(path)
    disk = FullDisk(5, monkeypatch)
    with pytest.raises(RetriableException):
        task.put([sink_record("one"), sink_record("two")])
    task.put([])
    disk.room = 100
    task.put([sink_record("three"), sink_record("four")])
    assert path.read_text().splitlines() == ["one", "two", "three", "four"]


def test_text_that_utf_8_cannot_hold_is_replaced(path: Path) -> None:
    """Half a surrogate pair from JSON becomes a question mark, as in Java."""
    task, _ = sink_task(path)
    task.put([sink_record("a\ud800b")])
    assert path.read_bytes() == b"a?b\n"


def test_other_write_errors_fail_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write error fails the task, so no offset is committed."""
    task, _ = sink_task(tmp_path / "out")

    def write(descriptor: int, data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(file_stream.os, "write", write)
    with pytest.raises(ConnectException, match="Input/output error"):
        task.put([sink_record("one")])


def test_tasks_that_share_a_file_do_not_mix_lines(path: Path) -> None:
    """Tasks append each batch in one write, so that lines of a shared file do not mix."""
    tasks = [sink_task(path)[0] for _ in range(4)]

    def write(number: int) -> None:
        for _ in range(50):
            tasks[number].put([sink_record(str(number) * 200)] * 20)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = path.read_text().splitlines()
    assert len(lines) == 4_000
    assert set(lines) == {str(number) * 200 for number in range(4)}


BYTES = st.lists(st.sampled_from([b"a", b"\n", b"\r", "ä".encode()])).map(b"".join)


def lines_and_positions(parts: list[bytes]) -> list[tuple[bytes, int]]:
    splitter, found = LineSplitter(), []
    for part in parts:
        position = splitter.position
        lines, positions = splitter.feed(part)
        for number, line in enumerate(lines):
            position = position + len(line) + 1 if positions is None else positions[number]
            found.append((line, position))
        assert splitter.position == position
    return found


@given(BYTES, st.lists(st.integers(0, 40)))
def test_lines_do_not_depend_on_how_the_bytes_arrive(text: bytes, cuts: list[int]) -> None:
    """Any split of the stream into reads gives the lines and positions of a single read."""
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in pairwise(bounds)]
    whole = lines_and_positions([text])
    # Only a trailing CR may be decided earlier or later: an LF could have followed.
    assert lines_and_positions([*parts, b"."]) == lines_and_positions([text, b"."])
    assert whole == lines_and_positions([text, b"."])[: len(whole)]


@given(BYTES)
def test_lines_and_terminators_are_the_stream(text: bytes) -> None:
    """Each position is the end of a line's terminator; bytes after the last one are not a line."""
    start = 0
    for line, position in lines_and_positions([text]):
        assert text[start:position].rstrip(b"\r\n") == line
        assert text[start + len(line) : position] in (b"\n", b"\r", b"\r\n")
        start = position
    rest = text[start:]
    assert b"\n" not in rest
    assert rest.rstrip(b"\r").count(b"\r") == 0
    assert rest.count(b"\r") <= 1


def test_empty_lines_are_lines_and_a_trailing_return_is_held_back() -> None:
    """A CR at the end is held back, because the LF that may follow it is not known yet."""
    splitter = LineSplitter()
    assert splitter.feed(b"one\r") == ([], [])
    assert splitter.feed(b"\ntwo\r") == ([b"one"], [5])
    assert splitter.feed(b"x\n") == ([b"two", b"x"], [9, 11])
    expected = [(b"", 1), (b"", 2), (b"", 4), (b"", 5), (b"", 7)]
    assert lines_and_positions([b"\n\n\r\n\r\r\n"]) == expected
