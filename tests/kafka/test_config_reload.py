"""`config.action.reload` of an agent whose config provider is a plugin."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.agents.agent import Agent, Agents, closing, sink_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.plugin_directories import EXPIRING_PROVIDER, make_provider_plugin
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

WAIT_S = 150


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    root = tmp_path / "plugins"
    make_provider_plugin(root)
    return root


@pytest.fixture
def agent(kafka_broker: SharedBroker, plugins: Path, tmp_path: Path) -> Iterator[Agent]:
    """Its own properties need both providers: without them its interval would be no number."""
    interval = tmp_path / "interval"
    interval.write_text("500")
    properties = {
        "plugin.path": str(plugins),
        "config.providers": "vault, path",
        "config.providers.vault.class": "vault_plugin.VaultProvider",
        "config.providers.vault.param.ttl.ms": "1000",
        "config.providers.path.class": EXPIRING_PROVIDER,
        "config.providers.path.param.ttl.ms": "1000",
        # Neither lost nor repeated: nothing is killed that is only slow to stop.
        "task.shutdown.graceful.timeout.ms": "60000",
        "offset.flush.interval.ms": f"${{vault:{interval}:value}}",
        "offset.flush.timeout.ms": f"${{path:{interval}:value}}",
    }
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path)):
        yield agents.start(properties=properties)


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def wait_for_end(file: Path, line: str) -> None:
    eventually(lambda: text_of(file).endswith(line), WAIT_S, lambda: text_of(file))


def test_a_new_value_restarts_connector_and_tasks_unless_the_config_says_none(
    agent: Agent, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """One sink of two moves on to the new directories; what is stored stays the reference."""
    topic, secret = unique_name("reload"), tmp_path / "secret"
    first, *others = directories = [tmp_path / name for name in ("a", "b", "c")]
    for directory in directories:
        directory.mkdir()
    secret.write_text(str(first))
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    numbers = count()

    def produce() -> str:
        line = f"{next(numbers)}\n"
        producer.produce(topic, line.rstrip().encode())
        assert producer.flush(30) == 0
        return line

    def wait_until_delivered_to(file: Path) -> None:
        def delivered() -> bool:
            produce()
            return bool(text_of(file))

        eventually(delivered, WAIT_S)

    line = produce()
    names = {action: unique_name(action) for action in ("restart", "none")}
    for action, name in names.items():
        reference = Path(f"${{vault:{secret}:value}}/{action}")
        agent.create(name, sink_config(reference, topic, config_action_reload=action))
        wait_for_end(first / action, line)
    # Twice, so that the other one's time is over in any case.
    for directory in others:
        secret.write_text(str(directory))
        wait_until_delivered_to(directory / "restart")
    line = produce()
    for file in (others[-1] / "restart", first / "none"):
        wait_for_end(file, line)
    assert not any((directory / "none").exists() for directory in others)
    for action, name in names.items():
        agent.wait_for_states(name, "RUNNING", "RUNNING")
        (task,) = agent.get(f"/connectors/{name}/tasks")
        assert task["config"]["file"] == f"${{vault:{secret}:value}}/{action}"
    # Neither lost nor repeated by the restarts.
    restarted = "".join(text_of(directory / "restart") for directory in directories)
    assert restarted == text_of(first / "none")
