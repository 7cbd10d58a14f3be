"""The generated grants are enough for Apache's worker, and a missing one fails as predicted.

A broker with StandardAuthorizer, SASL users, and one Java worker with exactly-once enabled. REST
does not show a Java worker's configuration, so `acls` gets the worker's file.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pyconnect_cli.acls.plan.grants import Grant
from tests.support.agents.agent import line_count, sink_config, source_config
from tests.support.agents.rest_client import Answer, call_url
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.java_hosts import PROPERTIES
from tests.support.servers.kafka import Servers
from tests.support.servers.secured import (
    SecuredBroker,
    internal,
    overrides,
    read_grants,
    worker_file,
)

pytestmark = pytest.mark.java

WAIT_S = 150
NOBODY = "http://127.0.0.1:1"
LINES = 20
# The rule of the missing grant, and a part of the trace of the connector or task that fails.
PREDICTED = {
    "S1": "TopicAuthorizationException: Not authorized to access topics: .lacks-s1-",
    "O3": "Not authorized to get the end offsets for topic",
    "X1": "TransactionalIdAuthorizationException",
}


class JavaCluster:
    """One Java worker with the grants generated from its file, and the `acls` command for it."""

    def __init__(self, secured: SecuredBroker, servers: Servers, directory: Path) -> None:
        group = unique_name("java")
        properties = {
            **PROPERTIES,
            **internal(group),
            **secured.worker(secured.user()),
            "exactly.once.source.support": "enabled",
        }
        self._file = str(worker_file(directory, properties))
        self._pyconnect = Pyconnect(directory, NOBODY, secured.plaintext)
        secured.grant(read_grants(self._generate()))
        self._url = servers.java_worker(secured.sasl, group, properties=properties).url
        self._pyconnect = Pyconnect(directory, self._url, secured.plaintext)

    def _generate(self, *arguments: str) -> str:
        options = ("--worker-config", self._file, "--phase", "enabled", "-o", "json")
        ended = self._pyconnect("acls", "generate", *options, *arguments)
        assert ended.code == 0, ended.err
        return ended.out

    def call(self, method: str, path: str, body: object = None) -> Answer:
        text = None if body is None else json.dumps(body)
        return call_url(self._url, method, path, text, {"Content-Type": "application/json"})

    def create_stopped(self, name: str, config: Mapping[str, str]) -> None:
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        answer = self.call("POST", "/connectors", body)
        assert answer.status == 201, answer.text

    def resume(self, name: str) -> None:
        assert self.call("PUT", f"/connectors/{name}/resume").status == 202

    def parts(self, name: str) -> list[dict[str, Any]]:
        """Return the statuses of the connector and its tasks; empty if the connector has none."""
        answer = self.call("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return []
        status = answer.json()
        return [status["connector"], *status["tasks"]]

    def trace(self, name: str) -> str:
        """Return the first trace; empty while nothing has failed."""
        return next((part["trace"] for part in self.parts(name) if "trace" in part), "")

    def runs(self, name: str) -> bool:
        return [part["state"] for part in self.parts(name)] == ["RUNNING", "RUNNING"]

    def grants(self, name: str) -> list[Grant]:
        """Return the grants that a connector needs and lacks."""
        return read_grants(self._generate("--connector", name))

    def blockers(self, name: str) -> dict[str, set[tuple[str, str, str]]]:
        """Return by rule which principal lacks which operation on which resource."""
        options = ("--worker-config", self._file, "--phase", "enabled", "-o", "json")
        ended = self._pyconnect("acls", "check", *options, "--connector", name)
        found: dict[str, set[tuple[str, str, str]]] = {}
        for need in json.loads(ended.out)["grants"]:
            if need["severity"] == "blocker" and need["verdict"] not in {"proven", "predicted"}:
                lack = (need["principal"], need["operation"], need["resource"])
                found.setdefault(need["rule"], set()).add(lack)
        assert ended.code == (1 if found else 0), ended.err
        return found


@pytest.mark.long(only=True)
def test_a_java_worker_runs_with_the_generated_grants_and_fails_without_one(
    secured: SecuredBroker, servers: Servers, tmp_path: Path
) -> None:
    """A source and a sink copy a file; a source that lacks one grant fails until it gets it.

    `acls check` names that grant alone.
    """
    cluster = JavaCluster(secured, servers, tmp_path)
    lines, copied = tmp_path / "lines.txt", tmp_path / "copied.txt"
    lines.write_text("".join(f"line {number}\n" for number in range(LINES)))
    source, sink = unique_name("source"), unique_name("sink")
    lacking = {rule: unique_name(f"lacks-{rule.lower()}") for rule in PREDICTED}
    secured.create_topics(source, *lacking.values(), cleanup_policy="delete")
    for name in (source, *lacking.values()):
        settings = {**source_config(lines, name), **overrides(secured.client_users())}
        cluster.create_stopped(name, settings)
    cluster.create_stopped(
        sink, {**sink_config(copied, source), **overrides(secured.client_users())}
    )
    assert set(cluster.blockers(source)) == {"S1", "O1", "O2", "O3", "X1"}
    assert set(cluster.blockers(sink)) == {"K1", "K2"}
    taken = {}
    for name in (source, sink):
        secured.grant(cluster.grants(name))
        eventually(lambda name=name: not cluster.blockers(name), WAIT_S)
        cluster.resume(name)
    for rule, name in lacking.items():
        lack = cluster.blockers(name)[rule]
        grants = cluster.grants(name)
        taken[rule] = [
            grant
            for grant in grants
            if (grant.principal, grant.operation.value, grant.resource.name) in lack
        ]
        assert taken[rule]
        secured.grant(set(grants) - set(taken[rule]))
        eventually(lambda rule=rule, name=name: set(cluster.blockers(name)) == {rule}, WAIT_S)
        cluster.resume(name)
    eventually(lambda: line_count(copied) == LINES, WAIT_S, lambda: cluster.trace(source)[-3000:])
    eventually(lambda: cluster.runs(source), WAIT_S, lambda: cluster.parts(source))
    for rule, name in lacking.items():
        assert_fails_until_granted(cluster, secured, rule, name, taken[rule])


def assert_fails_until_granted(
    cluster: JavaCluster, secured: SecuredBroker, rule: str, name: str, taken: list[Grant]
) -> None:
    trace = eventually(lambda: cluster.trace(name), WAIT_S, lambda: cluster.parts(name))
    assert re.search(PREDICTED[rule], trace), trace
    assert set(cluster.blockers(name)) == {rule}
    secured.grant(taken)
    eventually(lambda: not cluster.blockers(name), WAIT_S)

    def repaired() -> bool:
        if cluster.trace(name):
            cluster.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
        return cluster.runs(name)

    eventually(repaired, WAIT_S, lambda: cluster.parts(name))
