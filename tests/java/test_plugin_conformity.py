"""Plugins, their settings, and the validation of configurations are those of Apache's worker of the
same release. Texts of documentation are our own. Java promises no order for contents of hash maps.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from pyconnect_agent.core.apache_release import RELEASE_4_4
from tests.java.config_cases import CONFIG_CASES, SOURCE, ConfigCase
from tests.java.conftest import Workers
from tests.java.our_own_plugins import is_our_own
from tests.java.plugin_answers import definitions, on_both, validation
from tests.support.agents.rest_client import call_url

pytestmark = pytest.mark.java


def test_both_workers_have_the_same_plugins(workers: Workers) -> None:
    """All of Apache's own, with the same kinds and versions, in the same order."""
    for target in ("/connector-plugins", "/connector-plugins?connectorsOnly=false"):
        on_java, on_agent = on_both(workers.java_url, workers.agent_url, "GET", target)
        shared = [p for p in on_agent.json() if not is_our_own(p["class"])]
        assert shared == on_java.json()


def test_every_plugin_has_the_same_settings(workers: Workers) -> None:
    """Types, defaults, importance, groups and the like of each key."""
    listed = call_url(workers.java_url, "GET", "/connector-plugins?connectorsOnly=false").json()
    names = dict.fromkeys(plugin["class"] for plugin in listed)
    assert len(names) > 30
    different = []
    for name in names:
        target = f"/connector-plugins/{quote(name)}/config"
        on_java, on_agent = on_both(workers.java_url, workers.agent_url, "GET", target)
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
def test_a_plugin_that_is_not_there_is_refused_alike(workers: Workers, plugin: str) -> None:
    """Unknown names, unknown versions, kinds that have no settings to show."""
    name, mark, query = plugin.partition("?")
    target = f"/connector-plugins/{name}/config{mark}{query}"
    on_java, on_agent = on_both(workers.java_url, workers.agent_url, "GET", target)
    assert (on_agent.status, on_agent.json()) == (on_java.status, on_java.json())
    assert on_java.status in (400, 404)


@pytest.mark.parametrize("case", CONFIG_CASES, ids=lambda case: case.name)
def test_configurations_are_validated_alike(case: ConfigCase, workers: Workers) -> None:
    """Every key's definition, value, recommendations, errors and visibility."""
    target = f"/connector-plugins/{case.connector_class}/config/validate"
    config = {key: of_release(text, workers.release) for key, text in case.config.items()}
    on_java, on_agent = on_both(workers.java_url, workers.agent_url, "PUT", target, config)
    assert validation(on_agent) == validation(on_java)


def of_release(text: str | None, release: str) -> str | None:
    return None if text is None else text.replace("4.3.1", release)


@pytest.mark.parametrize("workers", [RELEASE_4_4], indirect=True)
@pytest.mark.parametrize(
    "changes",
    [
        {"tasks.max": "number"},
        {"tasks.max": "text"},
        {"tasks.max": "text", "errors.tolerance": "number"},
        {"file": "text", "key.converter": "converter"},
        {"connector.class": "text"},
        {"connector.plugin.version": "text"},
        {"producer.override.linger.ms": "number"},
        {"config.providers.file.class": "text", "config.providers": "number"},
        {"config.providers": "x", "config.providers.x.class": "text", "tasks.max": "number"},
    ],
    ids=str,
)
def test_references_to_config_providers_are_validated_alike(
    changes: dict[str, str], workers: Workers, provided: Path
) -> None:
    """Neither shows values of providers, nor errors that may quote them; 4.3.1 does."""
    names = ("number", "text", "converter")
    given = {key: f"${{file:{provided}:{v}}}" if v in names else v for key, v in changes.items()}
    config = {**SOURCE, **given}
    target = "/connector-plugins/FileStreamSource/config/validate"
    on_java, on_agent = on_both(workers.java_url, workers.agent_url, "PUT", target, config)
    # Java's worker quotes a value in an error of another key; the agent has the reference there.
    without_secret = on_java.text.replace("s3cret", f"${{file:{provided}:text}}")
    assert validation(on_agent) == validation(replace(on_java, body=without_secret.encode()))
    assert "s3cret" not in on_agent.text
