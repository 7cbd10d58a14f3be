"""Numbered lines that are appended to files all the time, and what readers get of them.

The connectors of `chaos` too: sources in Python and Java, and Java sinks behind the Java sources.
"""

import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.agents.agent import sink_config, source_config
from tests.support.names import unique_name
from tests.support.plugins.sources import LINES_SOURCE
from tests.support.servers.cluster import SESSION_MS

TICK_S = 0.02


class SteadyLines:
    """A thread that appends 1, 2, 3 … to each file, `lines_per_s` of them.

    An append may end within a line: a reader must wait for the rest.
    """

    def __init__(self, files: Sequence[Path], lines_per_s: int, seed: int) -> None:
        self.written: dict[Path, int] = dict.fromkeys(files, 0)
        self._lines_per_s = lines_per_s
        self._random = random.Random(seed)
        self._tails: dict[Path, str] = dict.fromkeys(files, "")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steady-lines", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Append the rest of the last lines and stop."""
        self._stopping.set()
        self._thread.join()
        for file, tail in self._tails.items():
            with file.open("a") as opened:
                opened.write(tail)
        self._tails = dict.fromkeys(self._tails, "")

    def _run(self) -> None:
        began_s = time.monotonic()
        while not self._stopping.wait(TICK_S):
            due = int((time.monotonic() - began_s) * self._lines_per_s)
            for file in self.written:
                self._append(file, due)

    def _append(self, file: Path, due: int) -> None:
        numbers = range(self.written[file] + 1, due + 1)
        text = self._tails[file] + "".join(f"{number}\n" for number in numbers)
        cut = len(text) - self._random.choice((0, 0, 0, 1, 2, 3))
        with file.open("a") as opened:
            opened.write(text[: max(cut, 0)])
        self._tails[file] = text[max(cut, 0) :]
        self.written[file] = max(due, self.written[file])


class LineReader:
    """A reader of the only partition of each topic from its beginning."""

    def __init__(
        self, bootstrap_servers: str, topics: Sequence[str], *, committed: bool = True
    ) -> None:
        self.seen: dict[str, list[int]] = {topic: [] for topic in topics}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": unique_name("readers"),
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.auto.commit": False,
            }
        )
        places = [TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics]
        self._consumer.assign(places)

    def read(self, timeout_s: float) -> int:
        """Read for `timeout_s`; return the number of records."""
        messages = self._consumer.consume(1_000, timeout_s)
        for message in messages:
            assert message.error() is None, message.error()
            self.seen[message.topic() or ""].append(int(message.value() or b""))
        return len(messages)

    def count(self) -> int:
        return sum(len(values) for values in self.seen.values())

    def close(self) -> None:
        self._consumer.close()


def read_everything(
    bootstrap_servers: str, topics: Sequence[str], *, committed: bool
) -> Mapping[str, Sequence[int]]:
    """Return all records of the topics, aborted ones too unless `committed`."""
    reader = LineReader(bootstrap_servers, topics, committed=committed)
    try:
        idle = 0
        # The first answer may take a while: metadata, then a fetch of each topic.
        while idle < 5:
            idle = 0 if reader.read(1.0) else idle + 1
    finally:
        reader.close()
    return reader.seen


TRANSACTION_TIMEOUT_MS = 10_000
BOUNDARIES: Sequence[Mapping[str, str]] = (
    {},
    {"batch.size": "7"},
    {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "300"},
    {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3000"},
)
PYTHON_SOURCE = "pyconnect_agent.builtin.connectors.file_stream.FileStreamSourceConnector"
JAVA_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILES_OF_MANY = 4
"""The number of files of a connector with several tasks, which limits its tasks."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A connector that is hit; `files` by topic: several when it may have several tasks."""

    name: str
    number: int
    files: Mapping[str, Path]
    source_class: str = PYTHON_SOURCE

    def config(self, tasks: int, *, exactly_once: bool) -> dict[str, str]:
        if len(self.files) == 1:
            ((topic, file),) = self.files.items()
            config = {**source_config(file, topic), "connector.class": self.source_class}
        else:
            files = {topic: str(file) for topic, file in self.files.items()}
            config = {"connector.class": LINES_SOURCE, "files": json.dumps(files)}
        config |= {"tasks.max": str(tasks), "producer.override.linger.ms": "5"}
        if exactly_once:
            config |= {
                "exactly.once.support": "required",
                "producer.override.transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
                **BOUNDARIES[self.number % len(BOUNDARIES)],
            }
        if self.source_class == JAVA_SOURCE:
            # Apache's task returns a full batch while more lines are in its buffer, and reads the
            # buffer again only when the file has grown: with batch.size=7 about the last 1,000
            # characters of a finished file never come, on a Java worker too.
            config["batch.size"] = "100000"
        return config


@dataclass(frozen=True, kw_only=True)
class Sink:
    """A Java connector that copies a topic's lines into a file, at least once."""

    name: str
    topic: str
    file: Path

    def config(self) -> dict[str, str]:
        return {
            **sink_config(self.file, self.topic),
            "consumer.override.isolation.level": "read_committed",
            "consumer.override.session.timeout.ms": str(SESSION_MS),
        }

    def lines(self) -> set[int]:
        """Return the lines that the sink has written; a kill may leave a part of one."""
        found = self.file.read_text().splitlines() if self.file.exists() else []
        return {int(line) for line in found if line.isdigit()}


def subject_of(
    number: int, files: int, directory: Path, source_class: str = PYTHON_SOURCE
) -> Subject:
    """Make a subject with topics and files of its own."""
    name = f"chaos-{number}"
    topics = [unique_name(name) for _ in range(files)]
    found = {topic: directory / f"{name}-{n}.txt" for n, topic in enumerate(topics)}
    return Subject(name=name, number=number, files=found, source_class=source_class)
