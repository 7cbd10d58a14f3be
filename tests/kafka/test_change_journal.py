"""The journal of changes that a cluster of agents keeps in a topic."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pyconnect_agent.core.rest_access import token_hash
from tests.support.agents.agent import Agents, source_config
from tests.support.agents.rest_client import Answer, call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import LONG
from tests.support.servers.cluster import QUICK_GROUP

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(1000)]

CLIENTS = 20
CONNECTORS = 5
CHANGES = 1_000 if LONG else 100
SECRET = "planted-hunter2"
WAIT_S = 150


def call(url: str, user: str, method: str, path: str, body: object = None) -> Answer:
    headers = {"Authorization": f"Bearer {user}", "Content-Type": "application/json"}
    return call_url(url, method, path, None if body is None else json.dumps(body), headers)


@pytest.fixture
def urls(agents: Agents, tmp_path: Path) -> list[str]:
    """Addresses of three agents with users and a journal."""
    users = [f"client-{number}" for number in range(CLIENTS)]
    file = tmp_path / "users.toml"
    file.write_text(
        "\n".join(f'[{user}]\nrole = "editor"\ntokens = ["{token_hash(user)}"]' for user in users)
    )
    properties = {
        **QUICK_GROUP,
        "agent.rest.users": str(file),
        "agent.journal.topic": unique_name("journal"),
    }
    group_id = unique_name("journaling")
    return [agents.start(group_id=group_id, properties=properties).url for _ in range(3)]


def settled(url: str, name: str, config: dict[str, str]) -> Answer | None:
    """Create a connector without tasks; None while workers join the group."""
    body = {"name": name, "config": config, "initial_state": "STOPPED"}
    answer = call(url, "client-0", "POST", "/connectors", body)
    return answer if answer.status == 201 else None


def test_every_change_by_many_clients_is_recorded_in_order(urls: list[str], tmp_path: Path) -> None:
    """The journal has one record for each answer, and a connector's records link to each other.

    A worker that gets a forwarded request knows the user.
    """
    names = [unique_name("lines") for _ in range(CONNECTORS)]
    config = {**source_config(tmp_path / "in.txt", "t"), "db.password": SECRET}
    for name in names:
        eventually(lambda name=name: settled(urls[0], name, config), WAIT_S)
    created = len(records_of(urls[0]))

    def change(client: int) -> list[tuple[str, str, int]]:
        random, done = Random(client), []
        for number in range(CHANGES // CLIENTS):
            mark, name = f"{client}-{number}", random.choice(names)
            body = {**config, "topic": mark}
            path = f"/connectors/{name}/config"
            answer = call(random.choice(urls), f"client-{client}", "PUT", path, body)
            done.append((name, mark, answer.status))
        return done

    with ThreadPoolExecutor(CLIENTS) as pool:
        answered = list(pool.map(change, range(CLIENTS)))
    records = records_of(urls[1])[created:]
    assert len(records) == CHANGES
    for client, done in enumerate(answered):
        own = [record for record in records if record["user"] == f"client-{client}"]
        found = [(r["connector"], _mark(r), r["status"]) for r in own]
        assert found == done
        assert {record["address"] for record in own} == {"127.0.0.1"}
    for name in names:
        linked = [record for record in records if record["connector"] == name]
        for first, second in pairwise(linked):
            assert first["after"] == second["before"], (first, second)
        now = call(urls[2], "client-0", "GET", f"/connectors/{name}/config").json()
        assert linked[-1]["after"] == {**now, "db.password": "[hidden]"}
    assert SECRET not in json.dumps(records)
    assert {status for done in answered for *_, status in done} == {200}


def records_of(url: str) -> list[dict[str, Any]]:
    answer = call(url, "client-0", "GET", "/agent/journal?limit=100000")
    assert answer.status == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    assert [record["number"] for record in found] == sorted({r["number"] for r in found})
    return found


def _mark(record: dict[str, Any]) -> str:
    """Return the topic in the config that was requested."""
    shown = record["after"] if record["body"] is None else record["body"]
    return str(shown["topic"])
