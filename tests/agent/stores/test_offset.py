"""The offset stores: a topic in memory, and a file."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.core.errors import AgentError, RetriableKafkaError, WorkerConfigError
from pyconnect_agent.stores import offset
from pyconnect_agent.stores.offset import FileOffsetStore, KafkaOffsetStore, OffsetStore
from tests.support.cases import cases
from tests.support.fakes.fake_log import FakeLog

KEY = b'["c",{"a":1,"b":"x"}]'
SAME = b'["c",{"b":"x","a":1}]'
OTHER = b'["d",{"a":1}]'


@pytest.fixture(params=["kafka", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OffsetStore]:
    kinds = {"kafka": lambda: KafkaOffsetStore(FakeLog()), "file": lambda: file_store(tmp_path)}
    store: OffsetStore = kinds[request.param]()
    store.start()
    yield store
    store.stop()


def file_store(directory: Path) -> FileOffsetStore:
    return FileOffsetStore(directory / "offsets.json")


def test_written_offsets_are_read(store: OffsetStore) -> None:
    """Offsets are found under keys of equal content, and a missing one is None."""
    store.write({KEY: b'{"p":1}', OTHER: b'{"p":2}'}, 1_000)
    expected = {KEY: b'{"p":1}', SAME: b'{"p":1}', b'["c",{}]': None}
    assert store.read([KEY, SAME, b'["c",{}]'], 1_000) == expected
    assert store.connector_entries("c") == {KEY: b'{"p":1}'}


def test_a_write_reuses_the_key_in_use(store: OffsetStore) -> None:
    """A partition has one live key, in any order of members that a write uses."""
    store.write({SAME: b"1"}, 1_000)
    store.read([], 1_000)
    store.write({KEY: b"2"}, 1_000)
    store.read([], 1_000)
    assert store.connector_entries("c") == {SAME: b"2"}
    store.write({KEY: None}, 1_000)
    assert store.read([KEY, SAME], 1_000) == {KEY: None, SAME: None}
    assert store.connector_entries("c") == {}


def test_keys_in_use_are_found_by_content(store: OffsetStore) -> None:
    """The keys in use are returned for any form of a key; none without an offset."""
    store.write({SAME: b"1"}, 1_000)
    store.read([], 1_000)
    found = store.keys_in_use([KEY, SAME, OTHER, b"no key"])
    assert found == {KEY: (SAME,), SAME: (SAME,), OTHER: (), b"no key": ()}


def test_a_failed_read_to_the_end_fails_the_read() -> None:
    """After a failed read to the end no old offset is returned."""
    log = FakeLog()
    store = KafkaOffsetStore(log)
    store.start()
    log.read_failures.append(RetriableKafkaError("timed out"))
    with pytest.raises(RetriableKafkaError):
        store.read([KEY], 1_000)


def test_a_file_is_read_by_the_next_process(tmp_path: Path) -> None:
    """The file has the documented format."""
    first = file_store(tmp_path)
    first.start()
    first.write({KEY: b"1", OTHER: b"2"}, 1_000)
    first.write({OTHER: None}, 1_000)
    second = file_store(tmp_path)
    second.start()
    assert second.read([KEY, OTHER], 0) == {KEY: b"1", OTHER: None}
    assert json.loads((tmp_path / "offsets.json").read_text()) == {
        "version": 1,
        "entries": [
            {"key": base64.b64encode(KEY).decode(), "value": base64.b64encode(b"1").decode()}
        ],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["offsets.json"]


def test_files_without_offsets_or_in_place_of_files(tmp_path: Path) -> None:
    """A missing or empty file has no offsets, and a directory is an error."""
    file_store(tmp_path).start()
    (tmp_path / "offsets.json").touch()
    store = file_store(tmp_path)
    store.start()
    assert store.read([KEY], 0) == {KEY: None}
    with pytest.raises(WorkerConfigError, match="cannot be read: Is a directory"):
        FileOffsetStore(tmp_path).start()


@cases(
    "content, why",
    (b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap", "Java's own format"),
    (b"{", "not an offset file"),
    (b"[]", "not an offset file"),
    (b'{"version":2,"entries":[]}', "unknown version 2"),
    (b'{"version":1}', "not an offset file"),
    (b'{"version":1,"entries":[{"key":"?","value":null}]}', "not base64"),
    (b'{"version":1,"entries":[{"key":"AAAA","value":7}]}', "not an offset file"),
)
def test_an_unreadable_file_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    """An unreadable file is an error: without offsets each source would read from the beginning."""
    path = tmp_path / "offsets.json"
    path.write_bytes(content)
    with pytest.raises(WorkerConfigError) as refusal:
        FileOffsetStore(path).start()
    text = str(refusal.value)
    assert why in text
    assert f"'{path}' supplied via the 'offset.storage.file.filename' property" in text
    assert "move this one away" in text
    assert path.read_bytes() == content


def test_a_failed_write_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file keeps its content after a failed write, and the next write includes both."""
    store = file_store(tmp_path)
    store.start()
    store.write({KEY: b"1"}, 1_000)

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(offset.os, "fsync", full_disk)
        with pytest.raises(AgentError, match=r"Failed to write offsets to file .*: No space left"):
            store.write({OTHER: b"2"}, 1_000)
    reader = file_store(tmp_path)
    reader.start()
    assert reader.read([KEY, OTHER], 0) == {KEY: b"1", OTHER: None}
    store.write({KEY: b"3"}, 1_000)
    reader = file_store(tmp_path)
    reader.start()
    assert reader.read([KEY, OTHER], 0) == {KEY: b"3", OTHER: b"2"}
