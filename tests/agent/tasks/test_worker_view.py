"""A child's view of its worker's settings."""

from pathlib import Path

import pytest

from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import ConnectException
from tests.support.agents.worker_properties import PROPERTIES
from tests.support.cases import cases
from tests.support.plugins.java_jars import make_jar

JARS = ("connect-api", "connect-json", "connect-runtime", "connect-transforms", "kafka-clients")
SCRIPT = """#!/bin/sh
[ "$1" = -version ] && echo 'openjdk version "17.0.1"' && exit
{{ tr -d '"' < "${{1#@}}"; echo "$@ $TZ"; }} > {}
exit 1
"""


@cases("own, heap", ("-Down=2", "512m"), ("-Xrun", "128m"))
def test_validation_asks_a_java_with_the_connectors_options(
    own: str, heap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validation uses the connector's Java options, or only the worker's if those are wrong."""
    monkeypatch.setattr(
        "pyconnect_agent.java_processes.installation.user_cache_path", lambda _: tmp_path / "cache"
    )
    monkeypatch.setattr(
        "pyconnect_agent.java_processes.installation.built_host_jar",
        lambda: make_jar(tmp_path / "host.jar"),
    )
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(SCRIPT.format(tmp_path / "arguments"))
    program.chmod(0o755)
    for name in JARS:
        make_jar(tmp_path / "kafka" / f"{name}-4.3.1.jar")
    properties = PROPERTIES | {
        "agent.java.home": str(tmp_path / "java"),
        "agent.java.kafka.home": str(tmp_path / "kafka"),
        "agent.java.options": "-Dworkers=1",
        "agent.java.environment": "TZ='a zone'",
        "agent.java.heap": "128m",
    }
    connector = PluginDesc(
        class_name="a.Source",
        python_path="",
        kind=PluginKind.SOURCE,
        version=None,
        search_path=str(make_jar(tmp_path / "a.jar")),
        is_java=True,
    )
    worker = WorkerView(properties, (connector,))
    config = {"connector.class": "a.Source", "agent.java.options": own, "agent.java.heap": "512m"}
    plugins = worker.plugins_for(config)
    with pytest.raises(ConnectException, match="exit code 1"):
        plugins.connector("a.Source")
    worker.close()
    arguments = (tmp_path / "arguments").read_text().split()
    assert "-Dworkers=1" in arguments
    assert ("-Down=2" in arguments) == (own == "-Down=2")
    assert f"-Xmx{heap}" in arguments
    assert "-Xrun" not in arguments
    assert arguments[-2:] == ["a", "zone"]
