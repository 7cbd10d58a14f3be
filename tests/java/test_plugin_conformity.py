"""Plugins, their settings, and the validation of configurations are those of Apache's worker. Texts
of documentation are our own. Java promises no order for contents of hash maps.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.java.config_cases import CONFIG_CASES, ConfigCase
from tests.java.our_own_plugins import is_our_own
from tests.java.plugin_answers import definitions, on_both, validation
from tests.support.agents.rest_client import call_url
from tests.support.servers.kafka import SharedAgentWorker, SharedJavaWorker

pytestmark = pytest.mark.java


def test_both_workers_have_the_same_plugins(
    java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker
) -> None:
    """All of Apache's own, with the same kinds and versions, in the same order."""
    for target in ("/connector-plugins", "/connector-plugins?connectorsOnly=false"):
        on_java, on_agent = on_both(java_worker.url, agent_worker.url, "GET", target)
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
        on_java, on_agent = on_both(java_worker.url, agent_worker.url, "GET", target)
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
    on_java, on_agent = on_both(java_worker.url, agent_worker.url, "GET", target)
    assert (on_agent.status, on_agent.json()) == (on_java.status, on_java.json())
    assert on_java.status in (400, 404)


@pytest.mark.parametrize("case", CONFIG_CASES, ids=lambda case: case.name)
def test_configurations_are_validated_alike(
    case: ConfigCase, java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker
) -> None:
    """Every key's definition, value, recommendations, errors and visibility."""
    target = f"/connector-plugins/{case.connector_class}/config/validate"
    on_java, on_agent = on_both(java_worker.url, agent_worker.url, "PUT", target, case.config)
    assert validation(on_agent) == validation(on_java)
