"""A backup of a Java worker's connectors, restored after all of them are gone."""

import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.agents.agent import append_lines, sink_config, source_config
from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker
from tests.support.servers.topics import create_topics

pytestmark = [pytest.mark.java, pytest.mark.timeout(850)]

WAIT_S = 150


def test_connectors_of_a_java_worker_come_back(
    java_worker: SharedJavaWorker, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """With states and offsets: the source repeats no line. The undo takes them away again."""
    command = Command(tmp_path / "home", java_worker.url, kafka_broker.bootstrap_servers)
    lines, copied = tmp_path / "lines", tmp_path / "copied"
    topic = unique_name("lines")
    create_topics(kafka_broker.bootstrap_servers, [topic])
    append_lines(lines, 1, 10)
    names = [unique_name(name) for name in ("source", "a sink é", "paused", "stopped")]
    source, sink, paused, stopped = names
    configs = {
        source: source_config(lines, topic),
        sink: sink_config(copied, topic),
        paused: source_config(lines, unique_name("never")),
        stopped: source_config(lines, unique_name("never")),
    }
    states = {source: "RUNNING", sink: "RUNNING", paused: "PAUSED", stopped: "STOPPED"}
    with httpx.Client(base_url=f"{java_worker.url}/connectors", timeout=WAIT_S) as client:

        def ask(method: str, name: str, member: str = "", body: Any = None) -> Any:
            url = f"/{quote(name)}{member}"
            answer = eventually(
                lambda: (got := client.request(method, url, json=body)).status_code != 409 and got,
                WAIT_S,
            )
            assert answer.is_success, answer.text
            return answer.json() if answer.content else None

        def found() -> dict[str, str]:
            return {
                name: ask("GET", name, "/status")["connector"]["state"]
                for name in client.get("").json()
                if name in configs
            }

        def offsets() -> list[Any]:
            return [ask("GET", name, "/offsets")["offsets"] for name in names]

        for name, config in configs.items():
            client.post(
                "", json={"name": name, "config": config, "initial_state": states[name]}
            ).raise_for_status()
        whole = lines.read_text()
        eventually(lambda: copied.exists() and copied.read_text() == whole, WAIT_S)
        eventually(lambda: found() == states and all(offsets()[:2]), WAIT_S, offsets)
        before = offsets()

        backup = str(tmp_path / "backup")
        assert command("backup", backup, *names) == 0, command.err
        for name in names:
            ask("PUT", name, "/stop")
            eventually(lambda name=name: not ask("GET", name, "/status")["tasks"], WAIT_S)  # type: ignore[misc]
            ask("DELETE", name, "/offsets")
            ask("DELETE", name)
        eventually(lambda: not found(), WAIT_S)

        append_lines(lines, 11, 20)
        assert command("restore", backup, *names, "--yes") == 0, command.err
        undo = next(line for line in command.err.splitlines() if line.startswith("undo: "))
        eventually(lambda: found() == states, WAIT_S, found)
        whole = lines.read_text()
        eventually(lambda: copied.read_text() == whole, WAIT_S, copied.read_text)
        assert offsets()[2:] == before[2:]
        for name, config in configs.items():
            assert ask("GET", name, "/config") == {**config, "name": name}
        assert command("restore", backup, *names, "--yes", "--no-offsets") == 0, command.err
        assert found() == states

        words = shlex.split(undo.removeprefix("undo: pyconnect "))
        assert command(*words, "--yes") == 0, command.err
        eventually(lambda: not found(), WAIT_S, found)
