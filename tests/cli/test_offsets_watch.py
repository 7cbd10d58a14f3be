"""`offsets get --watch`: a line for each change."""

import json
import threading
from collections.abc import Callable

import pytest

from pyconnect_cli.offsets.plan.change import OffsetChange
from pyconnect_cli.offsets.show import advanced
from tests.cli.conftest import Run
from tests.cli.offsets_world import sink_entry
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect


def change(before: object, after: object) -> OffsetChange:
    """Return a change of one partition."""
    partition = {"kafka_topic": "t", "kafka_partition": 0}
    return OffsetChange(partition=partition, before=before, after=after)  # type: ignore[arg-type]


def test_only_a_sinks_offsets_are_counted() -> None:
    """Only a sink's offsets have a number of records, negative for a move back."""
    assert advanced(change({"kafka_offset": 3}, {"kafka_offset": 10})) == 7
    assert advanced(change({"kafka_offset": 10}, {"kafka_offset": 3})) == -7
    assert advanced(change(None, {"kafka_offset": 3})) is None
    assert advanced(change({"position": 3}, {"position": 4})) is None


def moving(connect: FakeConnect, *offsets: int) -> Callable[[], None]:
    """Move the sink's offset after each read; return a function that waits for the end."""

    def reads() -> int:
        return connect.requests.count("GET /connectors/broken/offsets")

    def move() -> None:
        for offset in offsets:
            seen = reads()
            eventually(lambda seen=seen: reads() > seen)  # type: ignore[misc]
            connect.connectors["broken"].offsets = [sink_entry("t", 0, offset)]

    thread = threading.Thread(target=move)
    thread.start()
    return thread.join


@pytest.mark.wire
def test_each_change_is_a_line(run: Run, connect: FakeConnect) -> None:
    """The first lines are the stored offsets; each later change is a line with its rate."""
    connect.connectors["broken"].offsets = [sink_entry("t", 0, 5), sink_entry("t", 1, 9)]
    join = moving(connect, 25)
    outcome = run("offsets", "get", "broken", "--watch", "--interval", "50ms", "--timeout", "4s")
    join()
    assert outcome.code == 0, outcome.err
    lines = [line.split("  ", 1)[1] for line in outcome.out.splitlines()]
    assert lines[:2] == ["t:0  5", "t:1  9"]
    assert lines[2].startswith("t:0  5 -> 25  (+20, ")
    assert lines[3] == "t:1  9 -> -"


@pytest.mark.wire
def test_a_change_is_an_object_for_programs(run: Run, connect: FakeConnect) -> None:
    """-o ndjson prints an object for each change, whose `before` is null at first."""
    connect.connectors["broken"].offsets = [sink_entry("t", 0, 5)]
    watch = ("offsets", "get", "broken", "--watch", "--interval", "50ms", "--timeout", "3s")
    (line,) = run(*watch, "-o", "ndjson").out.splitlines()
    found = json.loads(line)
    assert found["partition"] == {"kafka_topic": "t", "kafka_partition": 0}
    assert (found["before"], found["after"]) == (None, {"kafka_offset": 5})


@pytest.mark.wire
def test_a_connector_that_does_not_exist_is_exit_3(run: Run) -> None:
    """An unknown connector is exit 3 also with --watch."""
    assert run("offsets", "get", "brokne", "--watch").code == 3
