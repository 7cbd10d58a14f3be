"""One agent with a location for each known release of Kafka: the host works with all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyconnect_clients.plugin_jars.kafka_links import kafka_api
from pyconnect_sandbox.jars import fetched
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled
from tests.support.agents.agent import STRING_CONVERTER, Agent, Agents, java_processes
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import PACKAGE, SOURCES
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.java, pytest.mark.long(only=True), pytest.mark.timeout(850)]

WAIT_S = 300
OLD, NEW = (
    f"org.apache.kafka.common.utils.{place}AppInfoParser.getVersion()"
    for place in ("", "internals.")
)
METRICS = "if (context.pluginMetrics() == null) { throw new IllegalStateException(); }"
"""Code that fails unless the task has metrics, as it has since Kafka 4.1."""


@dataclass(frozen=True, slots=True)
class Place:
    """The classes of `java_plugins` compiled for one release, and the connectors that run them."""

    version: str
    """Version of Kafka's jars in the location, and of its connectors."""
    package: str
    notes: Path
    name: str
    topic: str

    @property
    def source(self) -> Mapping[str, str]:
        return {
            "connector.class": f"{self.package}.NumberSource",
            "topic": self.topic,
            "notes": str(self.notes / "source"),
            "transforms": "mark",
            "transforms.mark.type": f"{self.package}.Marked",
            "transforms.mark.mark": "!",
        }

    @property
    def sink(self) -> Mapping[str, str]:
        return {
            "connector.class": f"{self.package}.NoteSink",
            "topics": self.topic,
            "notes": str(self.notes / "sink"),
            "key.converter": STRING_CONVERTER,
        }

    def noted(self, kind: str, word: str) -> list[str]:
        return [line for line in (self.notes / kind).read_text().splitlines() if word in line]

    def await_values(self, broker: SharedBroker, numbers: range) -> None:
        """Wait until the source has sent these numbers, each once and in order."""
        wanted = [f"{self.version} number {number}!" for number in numbers]
        eventually(lambda: self.sent(broker) == wanted, WAIT_S, lambda: self.sent(broker))

    def sent(self, broker: SharedBroker) -> list[str]:
        records = read_topic(broker.bootstrap_servers, self.topic, committed=True)
        return [(record.value() or b"").decode() for record in records]

    def await_taken(self, agent: Agent, numbers: range) -> None:
        """Wait until the sink has committed these numbers, and has taken each at least once."""
        path = f"/connectors/{self.name}-sink/offsets"
        last = numbers[-1]
        eventually(
            lambda: any(
                each["offset"]["kafka_offset"] > last for each in agent.get(path)["offsets"]
            ),
            WAIT_S,
        )
        lines = self.noted("sink", f"={self.version} number")
        # A line of notes: 31 key 30=4.2.1 number 30! …
        taken = {int(line.split()[4][:-1]) for line in lines}
        assert taken == {*numbers}
        assert self.noted("sink", "flush")


def location(runtime: KafkaRuntime, release: str, directory: Path) -> Place:
    """Compile the connectors of the tests against a release, which their records name."""
    version = kafka_api().version(release)
    number = release.replace(".", "")
    expression = OLD if kafka_api().bit(release) < kafka_api().bit("4.4") else NEW
    package = f"{PACKAGE}{number}"
    changes = {PACKAGE: package, '"1.2.3"': expression, '"number "': f'{expression} + " number "'}
    if kafka_api().bit(release) >= kafka_api().bit("4.1"):
        changes["this.config = config;"] = f"this.config = config; {METRICS}"
    sources = {}
    for file in SOURCES.glob("*.java"):
        text = file.read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        sources[f"{package}.{file.stem}"] = text
    libs = fetched(version)
    compiled(KafkaRuntime(java=runtime.java, libs=libs), sources, directory / "plugins" / release)
    notes = directory / release
    notes.mkdir()
    return Place(version, package, notes, unique_name(f"on-{number}"), unique_name("numbers"))


@pytest.fixture
def places(kafka_runtime: KafkaRuntime, tmp_path: Path) -> list[Place]:
    """A location for each release; every way to choose a release is in use, for 4.4 the classes."""
    found = [location(kafka_runtime, release, tmp_path) for release in kafka_api().releases]
    for release in ("4.0", "4.1"):
        (tmp_path / "plugins" / release / "kafka.release").write_text(f"{release}\n")
    return found


@pytest.fixture(params=["enabled", "disabled"])
def agent(
    request: pytest.FixtureRequest,
    agents: Agents,
    places: list[Place],
    kafka_broker: SharedBroker,
    tmp_path: Path,
) -> Agent:
    properties = {
        "plugin.path": str(tmp_path / "plugins"),
        "exactly.once.source.support": request.param,
        "offset.flush.interval.ms": "1000",
        "agent.java.kafka.releases": f"3.*=3.9, 4.2={fetched(kafka_api().version('4.2'))}",
    }
    create_topics(kafka_broker.bootstrap_servers, [place.topic for place in places])
    return agents.start(properties=properties)


def errors(agent: Agent, config: Mapping[str, str]) -> dict[str, list[str]]:
    name = config["connector.class"]
    infos: Any = agent.call(
        "PUT", f"/connector-plugins/{name}/config/validate", {**config, "name": "n"}
    ).json()
    found = {each["value"]["name"]: each["value"]["errors"] for each in infos["configs"]}
    return {key: texts for key, texts in found.items() if texts}


def kill_and_restart(agent: Agent, names: list[str]) -> None:
    """Kill the Java processes of all connectors and tasks at once, and restart them."""
    for process in java_processes(agent):
        process.kill()
    for name in names:
        eventually(lambda name=name: agent.states(name)[1:] == ("FAILED",), WAIT_S)
        agent.do("POST", f"/connectors/{name}/restart?includeTasks=true")


def has_ended_at(agent: Agent, name: str, number: int) -> bool:
    offsets = agent.get(f"/connectors/{name}/offsets")["offsets"]
    return [each["offset"] for each in offsets] == [{"number": number}]


def test_a_source_a_sink_and_a_transformation_run_on_each_release(
    agent: Agent, places: list[Place], kafka_broker: SharedBroker, request: pytest.FixtureRequest
) -> None:
    """Polls, commits, offsets, validations and restarts after SIGKILL work on all releases."""
    listed = {each["class"]: each for each in agent.get("/connector-plugins")}
    for place in places:
        assert listed[place.source["connector.class"]]["version"] == place.version
        assert errors(agent, {**place.source, "transforms.mark.mark": ""}) == {
            "transforms.mark.mark": [
                "Invalid value  for configuration mark: String must be non-empty"
            ]
        }
        agent.create(f"{place.name}-source", {**place.source, "limit": "20"})
        agent.create(f"{place.name}-sink", place.sink)
    for place in places:
        place.await_values(kafka_broker, range(20))
        agent.wait_for_states(f"{place.name}-source", "RUNNING", "RUNNING")
        eventually(partial(place.noted, "source", "commit"), WAIT_S)
        results = [line.split()[:2] for line in place.noted("source", " at ")]
        assert results == [["key", str(number)] for number in range(20)]

    for place in places:
        config = {**place.source, "limit": "60", "pause": "300"}
        agent.do("PUT", f"/connectors/{place.name}-source/config", config)
    last = places[-1]
    eventually(lambda: len(last.sent(kafka_broker)) > 25, WAIT_S, lambda: last.sent(kafka_broker))
    if "enabled" in request.node.name:
        # With at-least-once delivery a kill would send records twice.
        names = [f"{place.name}-{kind}" for place in places for kind in ("source", "sink")]
        kill_and_restart(agent, names)
    for place in places:
        place.await_values(kafka_broker, range(60))
        assert len(place.noted("source", "start 20")) == 1
        eventually(partial(has_ended_at, agent, f"{place.name}-source", 59), WAIT_S)
        place.await_taken(agent, range(60))
