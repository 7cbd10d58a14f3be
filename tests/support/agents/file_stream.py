"""A file source and a file sink of one test, with a topic between them."""

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Message

from tests.support.agents.agent import sink_config, source_config
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld
from tests.support.names import unique_name
from tests.support.servers.topics import committed_offset, create_topics, produce, read_topic

LINES = 20_000


class FileStreams:
    """Names of one test, and access to its topic."""

    def __init__(self, bootstrap_servers: str, *, partitions: int = 1) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topic = unique_name("lines")
        self.source_name = unique_name("source")
        self.sink_name = unique_name("sink")
        create_topics(bootstrap_servers, [self.topic], partitions=partitions)

    def properties(self, **settings: str) -> Mapping[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "offset.flush.interval.ms": "200",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def source(self, file: Path, **settings: str) -> Mapping[str, str]:
        return {"name": self.source_name, **source_config(file, self.topic, **settings)}

    def sink(self, file: Path, **settings: str) -> Mapping[str, str]:
        return {"name": self.sink_name, **sink_config(file, self.topic, **settings)}

    def produce(self, *values: bytes) -> None:
        produce(self.bootstrap_servers, self.topic, *values)

    def records(self) -> list[Message]:
        return read_topic(self.bootstrap_servers, self.topic)

    def values(self) -> list[bytes]:
        return [record.value() or b"" for record in self.records()]

    def committed(self) -> int:
        """Return the sink's committed offset; negative when there is none."""
        return committed_offset(self.bootstrap_servers, f"connect-{self.sink_name}", self.topic)

    def offset_key(self, file: Path) -> bytes:
        return f'["{self.source_name}",{{"filename":"{file}"}}]'.encode()


def write_lines(path: Path, count: int = LINES, start: int = 0) -> None:
    with path.open("a") as out:
        out.writelines(f"{number} ä {'x' * 50}\n" for number in range(start, start + count))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def source_is_done(w: ChildrenWorld, streams: FileStreams, file: Path) -> None:
    """Return whether the committed offset is the file's size."""
    expected = b'{"position":%d}' % file.stat().st_size
    await eventually_async(
        lambda: w.store.entries.get(streams.offset_key(file)) == expected,
        30,
        describe=lambda: (w.store.entries, w.listener.tasks),
    )
