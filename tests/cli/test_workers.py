"""Several workers: their discovery, and workers that accept connections and never answer."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Outcome, Run
from tests.support.fakes.connect_server import FakeConnect, frozen

pytestmark = pytest.mark.wire


def asked(run: Run) -> list[str]:
    outcome = run("health", "--all-workers", "-o", "json", "--timeout", "5s")
    return [worker["url"] for worker in json.loads(outcome.out)]


def test_a_worker_is_known_by_host_and_port(run: Run, connect: FakeConnect, url: str) -> None:
    """A worker with another name of the same host and port is not asked twice."""
    connect.worker_id = url.removeprefix("http://").replace("127.0.0.1", "localhost")
    assert asked(run) == [url]
    connect.worker_id = "localhost:9"
    assert asked(run) == [url, "http://localhost:9"]


@pytest.fixture
def first_is_frozen(run: Run, url: str) -> Iterator[Run]:
    """Yield `run` with three workers, the first of which accepts connections and never answers."""
    with frozen() as hung:

        def invoke(*arguments: str) -> Outcome:
            urls = (hung, url, url.replace("127.0.0.1", "localhost"))
            return run(*arguments, *(f"--url={each}" for each in urls), "--request-timeout", "2s")

        yield invoke


def test_a_frozen_worker_does_not_hide_the_others(first_is_frozen: Run) -> None:
    """`health` asks all workers at once, so one that does not answer delays them by one limit."""
    started = time.monotonic()
    outcome = first_is_frozen("health", "-o", "json", "--timeout", "2s")
    statuses = [worker["status"] for worker in json.loads(outcome.out)]
    assert statuses == ["unreachable", "healthy", "healthy"]
    assert outcome.code == 1
    assert time.monotonic() - started < 30


def test_a_frozen_worker_leaves_the_others_their_share(run: Run, url: str) -> None:
    """An address that does not answer uses only its share of --timeout."""
    with frozen() as hung:
        outcome = run(
            "connectors", "list", "-o", "name", "--url", hung, "--url", url, "--timeout", "6s"
        )
    assert outcome.code == 0, outcome.err


def test_a_frozen_worker_gets_no_change(first_is_frozen: Run, connect: FakeConnect) -> None:
    """A creation is sent once, to a worker that has answered; reads go on to the next worker."""
    outcome = first_is_frozen(
        "connectors", "create", "c", "-s", "connector.class=org.example.FileSource"
    )
    assert outcome.code == 0, outcome.err
    assert connect.requests.count("POST /connectors") == 1
    outcome = first_is_frozen("connectors", "list", "-o", "name")
    assert (outcome.code, outcome.out) == (0, "broken\nc\norders\n")


def test_every_frozen_worker_is_reported(run: Run) -> None:
    """Workers that do not answer are each reported after one request's limit: exit 7."""
    started = time.monotonic()
    with frozen() as one, frozen() as two:
        outcome = run("agent", "status", "--url", one, "--url", two, "--request-timeout", "2s")
    assert outcome.code == 7
    assert outcome.err.count("no answer within 2s (--request-timeout)") == 2
    assert time.monotonic() - started < 30
