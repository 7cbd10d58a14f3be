"""The last commit of each Kafka partition, beside the files.

A commit is a range of offsets and the files of its rows. It is written before them, under the name
of its first offset, and only if no file has that name, so one task alone decides where the
rows of a file end. A successor that finds a commit without some of its files reads the range
again and writes the missing files. So each row is in one file, wherever a writer dies.
"""

from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from pyconnect_api import ConnectException, TopicPartition
from pyconnect_connectors.lake.storage import HIDDEN_DIR, Storage


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Rows from the offset `start` to before `end`, in `files`; `writer` is a task's random id."""

    start: int
    end: int
    files: tuple[str, ...]
    writer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The offset where a task continues; `unfinished`: the commit there, if it lacks files."""

    offset: int
    unfinished: Commit | None = None


def directory_of(topics_dir: str, connector: str) -> str:
    """Return the directory of a connector's own files."""
    return "/".join(filter(None, (topics_dir, HIDDEN_DIR, quote(connector, safe=" "))))


class CommitLog:
    """The commits of one connector. Methods raise the storage's errors."""

    def __init__(self, storage: Storage, topics_dir: str, connector: str) -> None:
        if not connector:
            raise ConnectException("The config has no name, under which offsets are stored")
        self._storage = storage
        self._directory = directory_of(topics_dir, connector)

    def position(self, partition: TopicPartition) -> Position | None:
        """Return where to continue a partition, None if it has no commit."""
        paths = [f.path for f in self._storage.files(self._partition_directory(partition))]
        commit = self._read(max(paths)) if paths else None
        if commit is None:
            return None
        if all(map(self._storage.exists, commit.files)):
            return Position(offset=commit.end)
        return Position(offset=commit.start, unfinished=commit)

    def decide(self, partition: TopicPartition, commit: Commit) -> Commit:
        """Write a commit and return it, or return the commit of another task that was first."""
        path = self._path(partition, commit.start)
        if self._storage.create(path, msgspec.json.encode(commit)):
            return commit
        return self._read(path)

    def forget(self, partition: TopicPartition, start: int) -> None:
        """Delete a commit that is followed by a later one."""
        self._storage.delete(self._path(partition, start))

    def forget_all(self, partition: TopicPartition) -> None:
        """Delete a partition's commits, so that it continues at the consumer group's offset."""
        for file in self._storage.files(self._partition_directory(partition)):
            self._storage.delete(file.path)

    def _read(self, path: str) -> Commit:
        try:
            return msgspec.json.decode(self._storage.read(path), type=Commit)
        except msgspec.MsgspecError as error:
            raise ConnectException(f"{path} is not a commit of LakeSink: {error}") from error

    def _partition_directory(self, partition: TopicPartition) -> str:
        return f"{self._directory}/{partition.topic}/{partition.partition}"

    def _path(self, partition: TopicPartition, start: int) -> str:
        return f"{self._partition_directory(partition)}/{start:020}.json"
