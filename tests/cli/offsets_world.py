"""Connectors with offsets on the Connect server in memory, for the tests of `pyconnect offsets`."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.fakes.connect_server import FakeConnect, FakeConnector

A = {"filename": "a.txt"}
B = {"filename": "b.txt"}


def entry(partition: dict[str, Any], position: int) -> dict[str, Any]:
    return {"partition": partition, "offset": {"position": position}}


def sink_entry(topic: str, partition: int, offset: int) -> dict[str, Any]:
    return {
        "partition": {"kafka_topic": topic, "kafka_partition": partition},
        "offset": {"kafka_offset": offset},
    }


@pytest.fixture(autouse=True)
def stored(connect: FakeConnect) -> FakeConnector:
    """Return a running source with two partitions, beside a stopped sink with two."""
    orders = connect.connectors["orders"]
    orders.offsets = [entry(A, 30), entry(B, 7)]
    broken = connect.connectors["broken"]
    broken.type, broken.state, broken.tasks = "sink", "STOPPED", []
    broken.offsets = [sink_entry("t", 0, 100), sink_entry("t", 1, 200)]
    return orders


def stop(connect: FakeConnect) -> None:
    connect.connectors["orders"].state = "STOPPED"
    connect.connectors["orders"].tasks = []


def changes(connect: FakeConnect) -> list[str]:
    """Return the requests that may have changed something: not a PUT that validates."""
    return [
        request
        for request in connect.requests
        if not (request.startswith("GET ") or request.endswith("/config/validate"))
    ]


def backups(environ: dict[str, str]) -> list[Path]:
    return sorted((Path(environ["XDG_STATE_HOME"]) / "pyconnect" / "offsets").glob("*.json"))
