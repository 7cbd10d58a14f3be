"""The connectors of `chaos`: sources in Python and Java, and Java sinks behind the latter."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.agents.agent import sink_config, source_config
from tests.support.names import unique_name
from tests.support.plugins.lines_source import LINES_SOURCE
from tests.support.servers.cluster import SESSION_MS

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
"""Of a connector with several tasks, which are at most as many."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A connector that is troubled; `files` by topic, several when it may have several tasks."""

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
            # Apache's task returns a full batch while more lines are in its buffer, and looks
            # into the buffer again only when the file has grown: with batch.size=7 about the last
            # 1,000 characters of a finished file never come, on a Java worker too.
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
        """Return the lines that it has written; a kill may leave a part of one."""
        found = self.file.read_text().splitlines() if self.file.exists() else []
        return {int(line) for line in found if line.isdigit()}


def subject_of(
    number: int, files: int, directory: Path, source_class: str = PYTHON_SOURCE
) -> Subject:
    """Make one with topics and files of its own."""
    name = f"chaos-{number}"
    topics = [unique_name(name) for _ in range(files)]
    found = {topic: directory / f"{name}-{n}.txt" for n, topic in enumerate(topics)}
    return Subject(name=name, number=number, files=found, source_class=source_class)
