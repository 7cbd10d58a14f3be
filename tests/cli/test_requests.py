"""The number of requests of each verb: a verb that names connectors requests only these."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, every_command
from tests.cli.offsets_world import stop, stored
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

__all__ = ["stored"]

MOST = 7
NAMING = {
    "connectors list": "orders",
    "connectors get": "orders",
    "connectors describe": "orders",
    "connectors wait": "orders --for STOPPED",
    "connectors watch": "orders --timeout 10ms --interval 1s",
    "connectors create": "new -s connector.class=org.example.FileSource",
    "connectors apply": "-f orders.json",
    "connectors patch": "orders --set a=b",
    "connectors validate": "orders",
    "connectors export": "orders",
    "connectors diff": "-f orders.json",
    "connectors promote": "orders --to-context other --map a=b --yes",
    "connectors edit": "orders",
    "connectors pause": "orders",
    "connectors resume": "orders",
    "connectors stop": "orders --wait",
    "connectors restart": "orders",
    "connectors delete": "orders --yes --wait",
    "backup": "saved orders",
    "tasks list": "broken",
    "tasks describe": "broken/0",
    "tasks restart": "broken-0",
    "tasks kill": "broken-0 --yes",
    "tasks stacks": "broken/0",
    "offsets get": "orders broken",
    "offsets diff": "orders broken",
    "offsets export": "orders",
    "offsets reset": "orders --yes",
    "offsets alter": """orders --set {"filename":"a.txt"}={"position":1} --yes""",
    "offsets seek": "orders --to-start --yes",
    "offsets import": "orders -f saved.json --yes",
    "offsets copy": "orders other-orders --yes --force",
    "topics list": "orders",
    "topics reset": "orders --yes",
}
"""Command lines that name one of many connectors."""
NAMING_TWO = {"connectors promote", "offsets copy"}
"""Verbs that read one connector and change another one."""
WITHOUT_NAMES = {
    "offsets undo": "it takes the newest change of the cluster in use",
    "offsets history": "it reads files only",
    "offsets lag": "it needs brokers",
    "connectors logs": "it asks all workers, because the connector may have moved",
    "connectors dlq": "it needs brokers",
    "dlq": "it needs brokers",
    "connectors init": "it names a plugin",
    "connectors try": "it needs no worker",
    "offsets orphans": "deleted connectors are those that no list names",
    "topics read": "it names a topic",
    "acls": "grants concern all workers",
    "transactions": "ids belong to a cluster",
    "restore": "it compares the cluster with the backup's",
    "plugins": "it names a plugin",
    "loggers": "it names a logger",
    "reconcile": "audits read topics",
    "upgrade": "it concerns all workers",
    "agent": "it names a worker",
    "connectors history": "it asks agents for their journal",
    "connectors rollback": "it asks agents for their journal",
    "journal": "it asks agents for their journal",
    "status": "it shows all connectors",
    "fleet": "it names contexts",
    "top": "it shows all connectors",
    "health": "it asks workers",
    "info": "it counts all connectors",
    "doctor": "it examines all connectors",
    "context": "it sends no request",
    "config": "it sends no request",
    "sandbox": "it sends no request",
    "completion": "it sends no request",
    "version": "it sends no request",
    "help": "it sends no request",
}
"""Other verbs, and all verbs of some nouns."""
FAILING = {
    "tasks kill": 9,
    "tasks stacks": 9,
    "connectors edit": 9,
    "connectors diff": 1,
    "offsets diff": 1,
}
"""Exit codes other than 0: only agents kill tasks, no editor is set, there is a difference."""


@pytest.fixture(autouse=True)
def many_connectors(connect: FakeConnect, stored: FakeConnector) -> None:
    """Add a stopped source with offsets to many other connectors."""
    stop(connect)
    for name in ("other-orders", *(f"further-{number}" for number in range(20))):
        config = {"name": name, "connector.class": "org.example.FileSource"}
        connect.connectors[name] = FakeConnector(config=config, state="STOPPED", tasks=[])
    connect.connectors["broken"].tasks = ["FAILED"]


@pytest.mark.wire
@pytest.mark.parametrize("verb", NAMING)
def test_verbs_ask_for_the_named(run: Run, connect: FakeConnect, url: str, verb: str) -> None:
    """A verb that names a connector sends at most 7 requests and does not list all connectors."""
    assert run("offsets", "export", "orders", "-f", "saved.json").code == 0
    config = {"connector.class": "org.example.FileSource", "tasks.max": "2"}
    Path("orders.json").write_text(json.dumps({"name": "orders", "config": config}))
    assert run("context", "set", "other", "--url", url.replace("127.0.0.1", "localhost")).code == 0
    connect.requests.clear()
    outcome = run(*verb.split(), *NAMING[verb].split())
    assert outcome.code == FAILING.get(verb, 0), outcome.err
    named = 2 if verb in NAMING_TWO else 1
    assert len(connect.requests) <= MOST * named, connect.requests
    assert "GET /connectors" not in connect.requests


@pytest.mark.wire
def test_a_name_unfit_for_paths_is_looked_up(run: Run, connect: FakeConnect) -> None:
    """A name with a slash, which Kafka 4.0 refuses in a path, is found in the list."""
    connect.connectors["a/b"] = FakeConnector(config={"name": "a/b"})
    for verb in ("connectors list", "tasks list"):
        connect.requests.clear()
        assert run(*verb.split(), "a/b").code == 0
        assert set(connect.requests) == {"GET /connectors"}


def test_every_verb_has_a_count_or_a_reason() -> None:
    """A new verb must have a count of requests or a reason for none."""
    known = {*NAMING, *WITHOUT_NAMES}
    verbs = [path for path, command in every_command() if not getattr(command, "commands", ())]
    assert [path for path in verbs if not {path, path.rpartition(" ")[0]} & known] == []


@pytest.mark.wire
@cases("new", 0, 1, 11)
def test_connectors_without_a_status_count(run: Run, connect: FakeConnect, new: int) -> None:
    """Connectors that the list with statuses leaves out are requested one by one."""
    for number in range(new):
        connect.connectors[f"new-{number}"] = FakeConnector(config={"topic": "t"}, state="")
    assert run("connectors", "list", "-o", "name").out.split() == sorted(connect.connectors)
    state = run("connectors", "list", "--jq", ".orders.status.connector.state").out
    assert state == f"{connect.connectors['orders'].state}\n"
    if not new:
        assert connect.requests[:2] == ["GET /connectors", "GET /connectors"]
        assert len(connect.requests) == 4
