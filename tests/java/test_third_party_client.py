"""kafka-connect-py's client `kc` works with an agent unchanged."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.java.plugin_answers import is_our_own
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedAgentWorker, SharedJavaWorker

pytestmark = pytest.mark.java

KC = Path(sys.executable).with_name("kc")
Text = Callable[[str], bool]
MOMENTARY = ("momentarily", "a rebalance is expected")
"""Texts of refusals during a rebalance, because `kc` does not repeat a request."""


class Kc:
    """The command `kc` on one worker, with its outputs."""

    def __init__(self, url: str, directory: Path) -> None:
        self._url = url
        self._directory = directory
        self.connector = unique_name("kc")
        self.said: list[tuple[str, str]] = []

    def config(self, **changes: str) -> str:
        """Return the config, as JSON, of a source that waits for its file."""
        settings = {
            "connector.class": "FileStreamSource",
            "topic": f"{self.connector}-topic",
            "file": str(self._directory / "absent"),
        }
        return json.dumps(settings | {name.replace("_", "."): it for name, it in changes.items()})

    def run(self, *arguments: str, until: Text = lambda _: True, only_code: bool = False) -> None:
        """Run a command until its output fits and no rebalance prevents it.

        `only_code` records the exit code alone, because the output depends on the moment.
        """

        def output() -> str | None:
            done = subprocess.run(
                [str(KC), *arguments],
                env={**os.environ, "KAFKA_CONNECT_URL": self._url},
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
            )
            text = f"{done.returncode} {_in_order(done.stdout)}{done.stderr}"
            return text if until(text) and not any(part in text for part in MOMENTARY) else None

        found = eventually(output, describe=f"kc {' '.join(arguments)}")
        assert found is not None
        told = found.partition(" ")[0] if only_code else found
        self.said.append((self._masked(" ".join(arguments)), self._masked(told)))

    def _masked(self, text: str) -> str:
        address = self._url.removeprefix("http://")
        text = text.replace(address, "<worker>").replace(self.connector, "<connector>")
        # Jetty has a phrase of its own for status 500.
        text = text.replace("Internal Server Error", "Server Error")
        return re.sub(r'"commit": "[^"]*"', '"commit": "<commit>"', text)


def _in_order(output: str) -> str:
    """Return JSON with sorted members and without our own plugins; other text unchanged."""
    try:
        found = json.loads(output)
    except ValueError:
        return output
    if isinstance(found, list):
        found = [it for it in found if not (isinstance(it, dict) and is_our_own(it.get("class")))]
    return json.dumps(found, sort_keys=True)


def running(text: str) -> bool:
    return text.count("RUNNING") == 2


def use_every_command(kc: Kc) -> None:
    """Run every command that `kc` has for one connector."""
    name = kc.connector
    create = json.dumps({"name": name, "config": json.loads(kc.config())})
    kc.run("info")
    kc.run("list-plugins")
    # Refused by both: this version of `kc` encodes the config twice.
    kc.run("validate-config", "FileStreamSource", "-d", kc.config(name=name, topic=""))
    kc.run("create", "-d", create)
    kc.run("create", "-d", create)
    kc.run("status", name, until=running)
    kc.run("get", name)
    kc.run("config", name)
    kc.run("list", "-p", name)
    kc.run("list", "-e", "status", "-p", name)
    kc.run("list", "-e", "info", "-p", name)
    kc.run("list", "-s", "RUNNING", "-p", name)
    kc.run("list-tasks", name)
    kc.run("task-status", name, "0")
    kc.run("task-status", name, "9")
    kc.run("pause", name, only_code=True)
    kc.run("status", name, until=lambda text: text.count("PAUSED") == 2)
    kc.run("resume", "--all", "-p", name, only_code=True)
    kc.run("status", name, until=running)
    kc.run("restart", name, only_code=True)
    kc.run("restart", name, "--include-tasks", only_code=True)
    kc.run("status", name, until=running)
    kc.run("restart", name, "--include-tasks", "--only-failed", only_code=True)
    kc.run("restart-task", name, "0", only_code=True)
    kc.run("update", name, "-d", kc.config(batch_size="10"))
    kc.run("config", name, until=lambda text: "batch.size" in text)
    kc.run("list-topics", name)
    kc.run("reset-topics", name)
    kc.run("delete", name)
    kc.run("get", name, until=lambda text: "not found" in text.lower())
    kc.run("delete", name)


@pytest.mark.long(only=True)
def test_kc_says_the_same_of_an_agent_as_of_a_java_worker(
    java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker, tmp_path: Path
) -> None:
    """Each command has the same output and exit code on an agent and a Java worker."""
    on_java, on_agent = (Kc(worker.url, tmp_path) for worker in (java_worker, agent_worker))
    with ThreadPoolExecutor(2) as users:
        list(users.map(use_every_command, (on_java, on_agent)))
    different = [
        (java, agent)
        for java, agent in zip(on_java.said, on_agent.said, strict=True)
        if java != agent
    ]
    assert different == []
