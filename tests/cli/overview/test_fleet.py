"""`pyconnect fleet`: all contexts at once, failures first; no cluster delays another."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pyconnect_cli.overview.status import LATE, ClusterRow, cluster_status
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.session import Session, kept
from tests.cli.conftest import Run
from tests.cli.overview.worlds import look, view, worker
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, frozen, serve

pytestmark = pytest.mark.wire

Contexts = Callable[..., None]


@pytest.fixture
def contexts(environ: dict[str, str]) -> Contexts:
    """Define contexts by name, without credentials."""

    def define(**urls: str) -> None:
        file = Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'[contexts.{name}]\nurls = ["{url}"]\n' for name, url in urls.items()]
        file.write_text("".join(lines))

    return define


@pytest.fixture
def well() -> Iterator[str]:
    """Address of a cluster without a fault."""
    connect = FakeConnect(connectors={"a": FakeConnector(config={"name": "a"})})
    with serve(connect) as url:
        connect.worker_id = url.removeprefix("http://")
        yield url


def rows(run: Run, *arguments: str) -> tuple[int, list[dict[str, object]]]:
    outcome = run("fleet", *arguments, "-o", "json", address=None)
    return outcome.code, json.loads(outcome.out)


def test_failures_come_first_with_their_causes(
    run: Run, connect: FakeConnect, url: str, well: str, contexts: Contexts
) -> None:
    """A cluster without an answer is first, then one with a failed task, then others by name."""
    connect.worker_id = url.removeprefix("http://")
    contexts(b=well, a=well, failing=url, gone="http://127.0.0.1:1")
    code, found = rows(run)
    assert code == 1
    assert [row["context"] for row in found] == ["gone", "failing", "a", "b"]
    assert [row["health"] for row in found] == ["unreachable", "FAILED", "healthy", "healthy"]
    assert "Connection refused" in str(found[0]["cause"])
    assert found[1]["cause"] == "broken/1: IllegalStateException: disk full"
    expected = [{"name": "broken/1", "cause": "java.lang.IllegalStateException: disk full"}]
    assert found[1]["failed"] == expected
    assert (found[2]["healthy_workers"], found[2]["connectors"]) == (1, 1)
    assert found[2]["versions"] == ["4.3.1"]
    table = run("fleet", address=None).out.splitlines()
    assert table[0].split()[:4] == ["CLUSTER", "HEALTH", "WORKERS", "CONNECTORS"]
    assert [line.split()[0] for line in table[1:]] == ["gone", "failing", "a", "b"]


def test_silent_clusters_delay_no_others(run: Run, well: str, contexts: Contexts) -> None:
    """Frozen clusters are asked at once and become unreachable when the time is over."""
    with ExitStack() as servers:
        dead = {f"dead{number}": servers.enter_context(frozen()) for number in range(12)}
        contexts(**dead, well=well)
        began = time.monotonic()
        code, found = rows(run, "--within", "2s")
        took_s = time.monotonic() - began
    assert code == 1
    assert [row["health"] for row in found] == ["unreachable"] * 12 + ["healthy"]
    assert took_s < 12, "twelve one after the other take 24 s"


def test_a_hundred_clusters_are_one_look(run: Run, well: str, contexts: Contexts) -> None:
    """A hundred clusters are asked at once and take about 2 s of processor time."""
    urls = {f"c{number:03}": well for number in range(100)}
    contexts(**urls)
    code, found = rows(run, "--within", "60s")
    assert code == 0
    assert [row["context"] for row in found] == [*urls]


def test_a_worker_that_hangs_hides_no_connectors(
    run: Run, connect: FakeConnect, url: str, contexts: Contexts
) -> None:
    """The row has the connectors known in time, and the cluster does not count as healthy."""
    connect.connectors.pop("broken")
    with frozen() as hanging:
        connect.worker_id = hanging.removeprefix("http://")
        contexts(one=url)
        code, found = rows(run, "--within", "3s")
        assert (code, found[0]["connectors"]) == (1, 1)
        assert found[0]["health"] in {"unknown", "unhealthy"}


def test_brokers_that_hang_are_the_cause_of_unknown_lag() -> None:
    """The workers are healthy, and the cause names the question without an answer."""
    late = look(view("a", "RUNNING"), workers=[worker()], doubts=(f"{LATE}no answer within 5s",))
    row = ClusterRow(name="one", status=cluster_status(late, context="one", lag_known=False))
    assert (row.health, row.lag) == ("healthy", None)
    assert row.cause == "lag and transactions: no answer within 5s"


def test_each_cluster_gets_the_credentials_of_its_context_only(
    run: Run, connect: FakeConnect, url: str, environ: dict[str, str]
) -> None:
    """A context whose secret cannot be fetched is unreachable; others go on without it."""
    connect.worker_id = url.removeprefix("http://")
    file = Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[contexts.open]\nurls = ["{url}"]\n'
        f'[contexts.closed]\nurls = ["{url}"]\ntoken_command = "false"\n'
    )
    _, found = rows(run)
    assert [row["context"] for row in found] == ["closed", "open"]
    assert found[0]["health"] == "unreachable"
    assert set(connect.authorizations) == {None}


def test_the_fleet_is_watched_for_a_time(run: Run, well: str, contexts: Contexts) -> None:
    """Each look prints its rows with their time."""
    contexts(one=well)
    outcome = run(
        "fleet", "--watch", "--interval", "100ms", "--timeout", "3s", "-o", "ndjson", address=None
    )
    seen = [json.loads(line) for line in outcome.out.splitlines()]
    assert len(seen) >= 2
    assert {row["context"] for row in seen} == {"one"}
    assert all(row["time"] for row in seen)


def test_the_contexts_are_the_arguments(run: Run, well: str, contexts: Contexts) -> None:
    """Without contexts the exit code is 3; --context is refused with a hint to the arguments."""
    assert run("fleet", address=None).code == 3
    contexts(one=well, two=well)
    assert [row["context"] for row in rows(run, "two")[1]] == ["two"]
    assert run("fleet", "nobody", address=None).code == 3
    refused = run("fleet", "--context", "one", address=None)
    assert (refused.code, "as arguments" in refused.err) == (2, True)
    assert run("fleet", "-q", address=None).out == ""


def test_a_slow_cluster_is_known_at_the_next_look(
    run: Run, connect: FakeConnect, url: str, contexts: Contexts
) -> None:
    """The look at a slow cluster goes on while the table is shown, and does not start twice."""
    connect.connectors.pop("broken")
    connect.worker_id = url.removeprefix("http://")
    connect.slow["GET /connectors"] = threading.Event()
    threading.Timer(3, connect.slow["GET /connectors"].set).start()
    contexts(slow=url)
    outcome = run(
        "fleet", "--watch", "--within", "2s", "--request-timeout", "60s", "--interval", "100ms",
        "--timeout", "9s", "-o", "ndjson", address=None,
    )  # fmt: skip
    seen = [json.loads(line)["health"] for line in outcome.out.splitlines()]
    assert seen[0] in {"unreachable", "unknown"}
    assert "healthy" in seen, connect.requests


def test_a_secret_that_does_not_come_holds_up_its_own_cluster_only() -> None:
    """Unlike Python 3.11's cached_property, `kept` has no lock that all sessions share."""
    entered, leave = threading.Event(), threading.Event()

    class Slow(Session):
        @kept
        def secret(self) -> str:
            if self.heading == "slow":
                entered.set()
                assert leave.wait(60)
            return self.heading

    slow, quick = Slow({}), Slow({})
    slow.heading = "slow"
    waiting = in_background(lambda: slow.secret)
    assert entered.wait(60)
    assert in_background(lambda: quick.secret).result(60) == ""
    leave.set()
    assert waiting.result(60) == "slow"
