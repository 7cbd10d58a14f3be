"""`pyconnect status`: one screen, and its exit code."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_cli.overview.commands import Watcher
from pyconnect_cli.overview.status import cluster_status, short_cause, status_lines
from pyconnect_cli.session import Session
from tests.cli.conftest import Run
from tests.cli.overview.worlds import HANGING, agent, look, positions, view, worker
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving


def test_a_screen_says_what_failed_and_why() -> None:
    """The line of a failed task has its name, worker and root cause (the class without package)."""
    found = cluster_status(look(view("orders", "FAILED")), context="prod", lag_known=False)
    text = "\n".join(status_lines(found, width=80, colour=False))
    assert "prod on Kafka cluster k" in text
    assert "tasks         1: 1 FAILED" in text
    assert "orders/0  w1:8083  IllegalStateException: disk full" in text
    assert "lag           not known: give --kafka-bootstrap" in text


@cases("width", 80, 120)
def test_a_screen_fits_the_terminal(width: int) -> None:
    """No line is too wide, and a cluster with many failures takes at most 40 lines."""
    views = [view(f"connector-{n}", "FAILED", "RUNNING", kind="sink") for n in range(60)]
    lags = positions(0, **{each.name: [(0, 1_000_000)] for each in views})
    found = cluster_status(
        look(*views, positions=lags, workers=[agent(), worker("http://w2:8083", "unreachable")]),
        context=None,
        lag_known=True,
    )
    lines = status_lines(found, width=width, colour=False)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40
    assert "and 48 more: pyconnect tasks list --state FAILED" in lines


def test_health_is_of_workers_connectors_tasks_and_transactions() -> None:
    """A fault of one worker, connector, task or transaction makes the cluster unhealthy."""

    def healthy(found: object) -> bool:
        return cluster_status(found, context=None, lag_known=True).healthy  # type: ignore[arg-type]

    assert healthy(look(view("a", "RUNNING"), hanging=()))
    assert not healthy(look(view("a", "FAILED")))
    assert not healthy(look(view("a", "RUNNING", state="FAILED")))
    assert not healthy(look(workers=[worker(status="unhealthy")]))
    assert not healthy(look(hanging=(HANGING,)))


def test_tasks_of_a_worker_that_does_not_answer_are_marked() -> None:
    """The state of such a task is the last one that its worker wrote."""
    frozen = worker("http://w2:8083", "unreachable")
    seen = look(view("a", "RUNNING"), view("b", "RUNNING", worker="w2:8083"), workers=[frozen])
    found = cluster_status(seen, context=None, lag_known=False)
    text = "\n".join(status_lines(found, width=120, colour=False))
    assert "tasks         2: 1 RUNNING, 1 RUNNING (no answer)" in text
    expected = ({"RUNNING": 2}, ["b/0"])
    assert (found.to_json()["tasks"], found.to_json()["without_answer"]) == expected


def test_unknown_values_are_null_and_messages_whole() -> None:
    """Unknown values are null and not 0; only the package of an exception's class is cut."""
    document = cluster_status(look(view("a")), context=None, lag_known=False).to_json()
    assert (document["lag"], document["hanging_transactions"]) == (None, None)
    document = cluster_status(
        look(view("a", kind="sink"), positions=positions(0, a=[(3, 10)]), hanging=(HANGING,)),
        context=None,
        lag_known=True,
    ).to_json()
    assert document["lag"] == {"a": 7}
    expected = [{"topic": "t", "partition": 0, "producer_id": 7, "start_offset": 40}]
    assert document["hanging_transactions"] == expected
    assert short_cause("java.io.IOException: a.b.C is gone") == "IOException: a.b.C is gone"
    assert short_cause("ValueError: x") == "ValueError: x"
    assert short_cause("org.example.deep.$Inner") == "org.example.deep.$Inner"


@pytest.mark.wire
def test_the_command_exits_1_where_something_failed(run: Run, connect: FakeConnect) -> None:
    """With a failed task the table, and the document for programs, have its root cause."""
    outcome = run("status", code=1)
    assert "broken/1" in outcome.out
    assert "IllegalStateException: disk full" in outcome.out
    document = json.loads(run("status", "-o", "json").out)
    assert document["failed"] == [
        {
            "name": "broken/1",
            "worker": "worker-1:8083",
            "cause": "java.lang.IllegalStateException: disk full",
        }
    ]
    assert document["tasks"] == {"FAILED": 1, "RUNNING": 2}
    assert "not known: Java workers do not report it" in run("status").out


@pytest.fixture
def agent_url() -> Iterator[str]:
    with serving(rest_config(), FakeHerder(), FakeAdmin()) as server:
        yield f"http://{server.listeners[0].netloc}"


@pytest.mark.wire
def test_the_command_shows_what_agents_report(run: Run, agent_url: str) -> None:
    """An agent reports phase and leadership; without a failure the exit code is 0."""
    outcome = run("status", address=agent_url, code=0)
    assert "preparing" in outcome.out
    assert "active, leader" in outcome.out
    assert "1 of 1 worker healthy" in outcome.out


@pytest.fixture
def separate_admin() -> Iterator[tuple[str, str]]:
    """Return the REST and the admin address of an agent that serves them on two listeners."""
    config = rest_config(admin_listeners="http://127.0.0.1:0")
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        found = (*server.listeners, *server.admin_listeners)
        rest, admin = (f"http://{listener.netloc}" for listener in found)
        yield rest, admin


@pytest.mark.wire
def test_an_agent_whose_admin_interface_has_another_address_is_no_java_worker(
    run: Run, separate_admin: tuple[str, str]
) -> None:
    """Messages name the agent and the address to give, also for an admin address as --url."""
    rest, admin = separate_admin
    outcome = run("status", address=rest, code=0)
    reason = f"{rest} serves its admin interface at another address (admin.listeners)"
    assert f"not known: {reason}; name it as `admin` in the context's inventory" in outcome.out
    assert json.loads(run("status", "-o", "json", address=rest).out)["workers"][0]["agent"] is True
    hanging = run("transactions", "list", "--kafka-bootstrap", "127.0.0.1:1", address=rest)
    assert f"the admin interface of {rest}, which reports the group, has another" in hanging.err
    assert hanging.code == 2
    outcome = run("connectors", "list", address=admin, code=9)
    assert f"{admin} has no REST interface of Kafka Connect" in outcome.err
    assert "give an address of the worker's `listeners`" in outcome.err


@pytest.mark.wire
def test_an_inventory_has_admins(run: Run, separate_admin: tuple[str, str], tmp_path: Path) -> None:
    """With `admin` in the inventory, commands that ask workers need no other option."""
    rest, admin = separate_admin
    inventory = tmp_path / "inventory.toml"
    inventory.write_text(f'[[workers]]\nurl = "{rest}"\nadmin = "{admin}"\n')
    run("context", "set", "eu", "--url", rest, "--inventory", str(inventory), address=None, code=0)
    outcome = run("--context", "eu", "status", address=None)
    assert "exactly once  preparing" in outcome.out
    assert "cluster       eu on" in outcome.out
    # Another address does not belong to the context.
    assert "cluster       on" in run("--context", "eu", "status", address=rest).out
    outcome = run("--context", "eu", "agent", "status", address=None)
    assert (outcome.code, rest.removeprefix("http://") in outcome.out) == (0, True), outcome.err


@cases("kind, said", ("source", "no sinks"), ("unknown", "1 connector"))
def test_a_connector_of_unknown_type_may_be_a_sink(kind: str, said: str) -> None:
    """The lag counts a connector whose class is in no plugin list as a possible sink."""
    found = look(view("a", "RUNNING", kind=kind), positions=positions(0))
    status = cluster_status(found, context="one", lag_known=True)
    (line,) = (
        line for line in status_lines(status, width=100, colour=False) if line.startswith("lag ")
    )
    assert said in line


@pytest.mark.wire
def test_one_reason_of_unknown_lag_is_one_line(
    connect: FakeConnect, url: str, environ: dict[str, str]
) -> None:
    """Sinks whose offsets do not come in time share one line; the others are not asked."""
    config = {"connector.class": "org.example.Sink", "topics": "t"}
    names = [f"sink-{number:02}" for number in range(20)]
    for name in names:
        connect.connectors[name] = FakeConnector(config=dict(config), type="sink")
        connect.slow[f"GET /connectors/{name}/offsets"] = threading.Event()
    session = Session(environ)
    session.given |= {"url": (url,), "request_timeout": "300ms"}
    doubts: list[str] = []
    sinks = [view(name, kind="sink") for name in names]
    assert Watcher(session).positions(sinks, doubts).places == {}
    session.close()
    assert len(doubts) == 1
    assert doubts[0].startswith("lag of sink-00, sink-01, sink-02 and 17 more: no worker answers")
    assert sum(request.endswith("/offsets") for request in connect.requests) <= 8
    for event in connect.slow.values():
        event.set()


@pytest.mark.wire
def test_missing_credentials_are_the_reason_of_an_unknown_phase(run: Run, tmp_path: Path) -> None:
    """The reason names the options for credentials."""
    passwords = tmp_path / "passwords"
    passwords.write_text("operator=secret\n")
    config = rest_config(agent_admin_basic_auth_file=str(passwords))
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        outcome = run("status", address=f"http://{server.listeners[0].netloc}")
    assert "not known: " in outcome.out
    assert "needs credentials" in outcome.out
    assert "--username with --password-file" in outcome.out
