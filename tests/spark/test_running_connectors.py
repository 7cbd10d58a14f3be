"""Connectors under steady load, audited while they run: the verdict is always true."""

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import Agent, Agents, sink_config, source_config
from tests.support.audits.audits import Answer, Audit
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

WAIT_S = 150
# Each write has whole lines and a part of the next one.
BATCH_LINES = 50
PAUSE_S = 0.02
ENOUGH_BYTES = 50_000


@dataclass(frozen=True, slots=True)
class Running:
    """A source and a sink of one agent that move lines from one file to another."""

    agent: Agent
    command: Pyconnect
    source: str
    sink: str
    read: Path
    written: Path

    def spec_of(self, job: str, connector: str) -> dict[str, object]:
        """Return the spec that `pyconnect reconcile` resolves now."""
        ended = self.command("reconcile", job, connector, "--print-spec", "-o", "json")
        assert ended.code == 0, ended.err
        spec: dict[str, object] = json.loads(ended.out)
        return spec

    def committed(self, connector: str) -> bool:
        return bool(self.agent.get(f"/connectors/{connector}/offsets")["offsets"])


@contextmanager
def steadily_appended(file: Path) -> Iterator[None]:
    """Append numbered lines while the block runs, cut at any byte."""
    enough = threading.Event()

    def append() -> None:
        number, piece = 0, b""
        with file.open("ab", buffering=0) as stream:
            while not enough.wait(PAUSE_S):
                lines = b"".join(b"line %d\n" % n for n in range(number, number + BATCH_LINES))
                stream.write(piece + lines[:-4])
                piece = lines[-4:]
                number += BATCH_LINES

    thread = threading.Thread(target=append)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@pytest.fixture(scope="module")
def running(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    tmp_path = tmp_path_factory.mktemp("running")
    agents = Agents(kafka_broker.bootstrap_servers, tmp_path)
    with contextlib.closing(agents):
        agent = agents.start(properties={"offset.flush.interval.ms": "2000"})
        running = Running(
            agent,
            Pyconnect(tmp_path, agent.url, kafka_broker.bootstrap_servers),
            unique_name("source"),
            unique_name("sink"),
            tmp_path / "in.txt",
            tmp_path / "out.txt",
        )
        topic = unique_name("lines")
        with steadily_appended(running.read):
            agent.create(running.source, source_config(running.read, topic))
            agent.create(running.sink, sink_config(running.written, topic))
            names = (running.source, running.sink)
            eventually(lambda: all(map(running.committed, names)), WAIT_S)
            yield running


def grown(file: Path) -> None:
    """Wait until a file has grown by more than one commit."""
    size = file.stat().st_size
    eventually(lambda: file.stat().st_size > size + ENOUGH_BYTES, WAIT_S)


def explained(answer: Answer) -> None:
    """Check that each row is on both sides, or is counted by a note."""
    counts = answer.outcome.counts
    assert not any(answer.outcome.totals.values()), answer.outcome.findings
    assert counts["buckets_differing"] == 0
    assert answer.verdict is Verdict.AGREE, answer.outcome.findings
    [note] = answer.of("under-way")
    assert note.count == counts["rows_under_way"] >= counts["rows_right"] - counts["rows_left"]
    ahead = counts["rows_right"] - counts["rows_left"]
    assert ahead > 0
    assert note.message.endswith(f": {ahead:,}")


def test_a_running_sink_agrees(audit: Audit, running: Running) -> None:
    """Lines that the sink wrote after its last commit, and a partial line, are under way."""
    spec = running.spec_of("topic-sink", running.sink)
    grown(running.written)
    explained(audit.run(**spec))


def test_a_running_source_agrees(audit: Audit, running: Running) -> None:
    """Records after the source's last commit, and lines not read yet, are under way."""
    spec = running.spec_of("source-topic", running.source)
    grown(running.written)
    explained(audit.run(**spec))


@pytest.mark.long(only=True)
def test_a_line_that_a_running_sink_loses_is_missing(audit: Audit, running: Running) -> None:
    """A committed line that the sink lost is missing, although other lines are under way."""
    spec = running.spec_of("topic-sink", running.sink)
    grown(running.written)
    content = running.written.read_bytes()
    (running.written.parent / "copy.txt").write_bytes(
        content.replace(b"line 77\n", b"").replace(b"line 78\n", b"line x\n")
    )
    right = {"kind": "files", "paths": [str(running.written.parent / "copy.txt")], "format": "text"}
    answer = audit.run(**{**spec, "right": right})
    assert answer.outcome.totals == {"missing": 2, "extra": 1, "repeated": 0}
    assert answer.rows("extra") == {78}
    assert answer.verdict is Verdict.DIFFER
