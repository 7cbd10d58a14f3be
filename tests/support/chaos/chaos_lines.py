"""Numbered lines that are appended to files all the time, and what readers see of them."""

import random
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.names import unique_name

TICK_S = 0.02


class SteadyLines:
    """Appends 1, 2, 3 … to each file, `lines_per_s` of them, from a thread of its own.

    An append may end within a line: what reads must wait for the rest.
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
        """Append what is left of the last lines and stop."""
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
    """Reads the only partition of each topic from its beginning, as far as it has come."""

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
        """Take what comes within `timeout_s`; return how many records that were."""
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
    """All there is; aborted records too unless `committed`."""
    reader = LineReader(bootstrap_servers, topics, committed=committed)
    try:
        idle = 0
        # The first answer may take a while: metadata, then a fetch of each topic.
        while idle < 5:
            idle = 0 if reader.read(1.0) else idle + 1
    finally:
        reader.close()
    return reader.seen
