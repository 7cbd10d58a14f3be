"""`--all-workers`: which workers a cluster has."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.support.connect_server import FakeConnect

pytestmark = pytest.mark.wire


def asked(run: Run) -> list[str]:
    outcome = run("health", "--all-workers", "-o", "json", "--timeout", "5s")
    return [worker["url"] for worker in json.loads(outcome.out)]


def test_a_worker_is_one_by_any_name_of_its_host(run: Run, connect: FakeConnect, url: str) -> None:
    """Statuses say `localhost` where --url says `127.0.0.1`."""
    connect.worker_id = url.removeprefix("http://").replace("127.0.0.1", "localhost")
    assert asked(run) == [url]


def test_another_port_of_the_same_host_is_another_worker(
    run: Run, connect: FakeConnect, url: str
) -> None:
    """It is asked too, and told to be unreachable."""
    connect.worker_id = "localhost:9"
    assert asked(run) == [url, "http://localhost:9"]
