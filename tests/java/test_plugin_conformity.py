"""Plugins, their settings, and the validation of configurations are those of Apache's worker.

Texts of documentation are our own. Java's order of what came out of hash maps is nobody's promise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.config_cases import CONFIG_CASES, ConfigCase
from tests.support.kafka import SharedAgentWorker, SharedJavaWorker
from tests.support.our_own_plugins import is_our_own
from tests.support.rest_client import Answer, call_url

pytestmark = pytest.mark.java

JSON = {"Content-Type": "application/json"}
OUR_OWN_KEYS = frozenset({"on.truncate"})
"""Settings that connectors of Apache's do not have; see docs/reference/compatibility.md."""


def on_both(
    java_worker: SharedJavaWorker,
    agent_worker: SharedAgentWorker,
    method: str,
    target: str,
    body: object = None,
) -> tuple[Answer, Answer]:
    text, headers = (None, {}) if body is None else (json.dumps(body), JSON)
    answers = [
        call_url(worker.url, method, target, text, headers)
        for worker in (java_worker, agent_worker)
    ]
    return answers[0], answers[1]


def definition(key: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A key's definition without its prose."""
    if key is None:
        return None
    return {name: value for name, value in key.items() if name != "documentation"}


def without_our_own(value: Mapping[str, Any]) -> dict[str, Any]:
    """A key's value without the plugins of ours among what is recommended."""
    recommended = [v for v in value["recommended_values"] if not is_our_own(v)]
    return {**value, "recommended_values": recommended}


def definitions(answer: Answer) -> list[dict[str, Any] | None]:
    assert answer.status == 200, answer.text
    keys = sorted(answer.json(), key=lambda key: str(key["name"]))
    return [definition(key) for key in keys if key["name"] not in OUR_OWN_KEYS]


def validation(answer: Answer) -> Any:
    """What validation found, in an order of its own; any other answer as it is."""
    body = answer.json()
    if "configs" not in body:
        return answer.status, body
    found = {
        info["value"]["name"]: (definition(info["definition"]), without_our_own(info["value"]))
        for info in body["configs"]
        if info["value"]["name"] not in OUR_OWN_KEYS
    }
    return answer.status, body["name"], body["error_count"], sorted(body["groups"]), found


def test_both_workers_have_the_same_plugins(
    java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker
) -> None:
    """All of Apache's own, with the same kinds and versions, in the same order."""
    for target in ("/connector-plugins", "/connector-plugins?connectorsOnly=false"):
        on_java, on_agent = on_both(java_worker, agent_worker, "GET", target)
        shared = [p for p in on_agent.json() if not is_our_own(p["class"])]
        assert shared == on_java.json()


def test_every_plugin_has_the_same_settings(
    java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker
) -> None:
    """Types, defaults, importance, groups and the like of each key."""
    listed = call_url(java_worker.url, "GET", "/connector-plugins?connectorsOnly=false").json()
    names = dict.fromkeys(plugin["class"] for plugin in listed)
    assert len(names) > 30
    different = []
    for name in names:
        target = f"/connector-plugins/{quote(name)}/config"
        on_java, on_agent = on_both(java_worker, agent_worker, "GET", target)
        if definitions(on_java) != definitions(on_agent):
            different.append(name)
    assert different == []


@pytest.mark.parametrize(
    "plugin",
    [
        "nope",
        "FileStreamSource?version=1",
        "nope?version=1",
        "InsertField",
        "org.apache.kafka.common.config.provider.FileConfigProvider",
    ],
)
def test_a_plugin_that_is_not_there_is_refused_alike(
    java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker, plugin: str
) -> None:
    """Unknown names, unknown versions, kinds that have no settings to show."""
    name, mark, query = plugin.partition("?")
    target = f"/connector-plugins/{name}/config{mark}{query}"
    on_java, on_agent = on_both(java_worker, agent_worker, "GET", target)
    assert (on_agent.status, on_agent.json()) == (on_java.status, on_java.json())
    assert on_java.status in (400, 404)


@pytest.mark.parametrize("case", CONFIG_CASES, ids=lambda case: case.name)
def test_configurations_are_validated_alike(
    case: ConfigCase, java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker
) -> None:
    """Every key's definition, value, recommendations, errors and visibility."""
    target = f"/connector-plugins/{case.connector_class}/config/validate"
    on_java, on_agent = on_both(java_worker, agent_worker, "PUT", target, case.config)
    assert validation(on_agent) == validation(on_java)
