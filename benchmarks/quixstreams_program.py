"""The work of a file source and of a file sink as a user of Quix Streams would write it.

    python quixstreams_program.py source|sink BOOTSTRAP_SERVERS TOPIC FILE

Runs in an environment of its own: Quix Streams pins another version of confluent-kafka. Sources of
Quix Streams have no transactions; this one keeps its position, as FileStreamSource does.
"""

import sys
from pathlib import Path

from quixstreams import Application  # type: ignore[import-not-found]
from quixstreams.sinks.base import BatchingSink, SinkBatch  # type: ignore[import-not-found]
from quixstreams.sources import StatefulSource  # type: ignore[import-not-found]

LINES_PER_FLUSH = 2_000
"""As many as a poll of FileStreamSource returns."""


class FileSource(StatefulSource):  # type: ignore[misc]
    """A source of a file's lines; its state is the position after the last flushed one."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="file-source")
        self._path = path

    def run(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self.state.get("position", 0))
            position = file.tell()
            for number, line in enumerate(file, 1):
                self.produce(key=None, value=line[:-1])
                position += len(line)
                if number % LINES_PER_FLUSH == 0:
                    self.state.set("position", position)
                    self.flush()
                if not self.running:
                    return


class FileSink(BatchingSink):  # type: ignore[misc]
    """A sink that appends values as lines."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def write(self, batch: SinkBatch) -> None:
        with self._path.open("ab") as file:
            file.writelines(item.value + b"\n" for item in batch)


def run(work: str, bootstrap_servers: str, topic_name: str, path: Path) -> None:
    application = Application(
        broker_address=bootstrap_servers,
        # A group of its own for each run, so that each sink starts at the first record.
        consumer_group=f"quixstreams-{topic_name}-{path.name}",
        auto_offset_reset="earliest",
        commit_every=LINES_PER_FLUSH if work == "sink" else 0,
        loglevel="WARNING",
        state_dir=path.parent / f"state-{topic_name}",
    )
    topic = application.topic(
        topic_name, key_serializer="bytes", value_serializer="bytes", value_deserializer="bytes"
    )
    if work == "source":
        application.add_source(FileSource(path), topic=topic)
    else:
        application.dataframe(topic).sink(FileSink(path))
    application.run()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
