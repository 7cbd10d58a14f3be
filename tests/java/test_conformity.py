"""REST, plugins, settings and validations are those of Apache's worker of the same release.

A real Java worker gets the same list of requests as the tests of our REST layer over a fake
herder. A Java worker and an agent run the same stories, and their answers are compared. Texts of
documentation are our own. Java promises no order for contents of hash maps.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import pytest

from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION, RELEASE_4_4, RELEASE_KEY, RELEASES
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.plugin_answers import definitions, is_our_own, on_both, validation
from tests.java.rest_life import Life, Told
from tests.java.rest_stories import STORIES, Story
from tests.support.agents.rest_client import call_url
from tests.support.cases import cases
from tests.support.names import unique_name
from tests.support.plugins.java_jars import file_connectors
from tests.support.rest_scenarios import SCENARIOS
from tests.support.servers.kafka import Servers, SharedBroker, SharedJavaWorker

ConfigValues = Mapping[str, str | None]

SOURCE: ConfigValues = {
    "connector.class": "FileStreamSource",
    "name": "case",
    "topic": "t",
    "file": "/tmp/file",
}
SINK: ConfigValues = {
    "connector.class": "FileStreamSink",
    "name": "case",
    "topics": "t",
    "file": "/tmp/file",
}
_TRANSFORMS = "org.apache.kafka.connect.transforms"


@dataclass(frozen=True, slots=True)
class ConfigCase:
    """A valid config of a connector class with `changes` over it."""

    base: ConfigValues
    changes: ConfigValues

    @property
    def connector_class(self) -> str:
        return str(self.base["connector.class"])

    @property
    def config(self) -> dict[str, str | None]:
        return {**self.base, **self.changes}

    @property
    def name(self) -> str:
        """Return the id of the parametrized test."""
        return " ".join(
            [self.connector_class, *(f"{key}={it}" for key, it in self.changes.items())]
        )


def _transform(class_name: str, **settings: str) -> dict[str, str]:
    return {
        "transforms": "a",
        "transforms.a.type": f"{_TRANSFORMS}.{class_name}",
        **{f"transforms.a.{key.replace('_', '.')}": value for key, value in settings.items()},
    }


def _common() -> Iterator[ConfigValues]:
    yield {}
    for key, values in {
        "name": (None, "", "a\tb", "a;b/c%"),
        "tasks.max": (None, "0", "x", " 2 "),
        "tasks.max.enforce": ("false", "perhaps"),
        "unknown.key": ("x", None),
        "connector.plugin.version": ("[4,5)", "[4.3.1]"),
        "key.converter": (
            "",
            "nope",
            "JsonConverter",
            "org.apache.kafka.connect.json.JsonConverter",
        ),
        "key.converter.plugin.version": ("1.0", "4.3.1"),
        "value.converter": ("org.apache.kafka.connect.file.FileStreamSinkConnector",),
        "header.converter": (
            "SimpleHeaderConverter",
            "org.apache.kafka.connect.storage.StringConverter",
        ),
        "errors.tolerance": ("all", "some"),
        "errors.retry.timeout": ("-1", "x"),
        "errors.retry.delay.max.ms": ("-1",),
        "errors.log.enable": ("maybe",),
        "config.action.reload": ("none", "x"),
        "predicates": ("p",),
        "transforms": ("a", "a,a"),
        "producer.override.acks": ("x",),
        "producer.override.batch.size": ("x",),
        "producer.override.unknown": ("x",),
        "producer.override.client.rack": ("x",),
        "producer.override.partitioner.rack.aware": ("true",),
        "consumer.override.metadata.cluster.check.enable": ("false",),
        "producer.override.bootstrap.resolve.timeout.ms": ("1",),
        "consumer.override.group.id": ("g",),
        "consumer.override.max.poll.records": ("x",),
        "consumer.override.auto.offset.reset": ("never",),
        "admin.override.retries": ("x",),
    }.items():
        for value in values:
            yield {key: value}
    yield {
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "x",
        "key.converter.schemas.cache.size": "y",
    }
    yield {"predicates": "p", "predicates.p.type": "nope"}
    yield {"transforms": "a", "transforms.a.type": "nope"}
    yield _transform("InsertField$Value", static_field="f")
    yield _transform("HoistField$Value")
    yield _transform("ReplaceField$Key", include="a", exclude="b")
    yield _transform("TimestampRouter", topic_format="x", predicate="p")
    yield _transform("ValueToKey", fields="a.b", field_syntax_version="V2")
    yield _transform("ValueToKey", fields="a.b", field_syntax_version="x")
    yield _transform("Filter", predicate="p") | {
        "predicates": "p",
        "predicates.p.type": f"{_TRANSFORMS}.predicates.TopicNameMatches",
        "predicates.p.pattern": "x",
    }


def _source() -> Iterator[ConfigValues]:
    for key, values in {
        "topic": (None, ""),
        "file": (None, ""),
        "topic.creation.groups": ("a", "a,a"),
        "topic.creation.default.partitions": ("0",),
        "exactly.once.support": ("required", "x"),
        "transaction.boundary": ("poll", "connector", "x"),
        "transaction.boundary.interval.ms": ("0", "x"),
        "offsets.storage.topic": ("", "own"),
    }.items():
        for value in values:
            yield {key: value}
    yield {"topic.creation.groups": "a", "topic.creation.a.include": "x"}
    yield {
        "topic.creation.groups": "a",
        "topic.creation.a.include": "x",
        "topic.creation.a.partitions": "0",
    }


def _sink() -> Iterator[ConfigValues]:
    for key, values in {
        "topics": (None, "", "a,a", "t, u ,,v"),
        "topics.regex": ("x",),
        "file": (None, ""),
        "errors.deadletterqueue.topic.name": ("t", "d"),
        "errors.deadletterqueue.topic.replication.factor": ("x",),
        "errors.deadletterqueue.context.headers.enable": ("x",),
    }.items():
        for value in values:
            yield {key: value}
    yield {"topics": None, "topics.regex": "x"}
    yield {"topics": "", "topics.regex": "x.*"}


CONFIG_CASES: tuple[ConfigCase, ...] = (
    *(ConfigCase(base, changes) for base in (SOURCE, SINK) for changes in _common()),
    *(ConfigCase(SOURCE, changes) for changes in _source()),
    *(ConfigCase(SINK, changes) for changes in _sink()),
)


# Some tests send hundreds of requests.
pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@dataclass(frozen=True, slots=True)
class Workers:
    """A Java worker and an agent of one release, kept for this pytest-xdist worker."""

    release: str
    java_url: str
    agent_url: str


@pytest.fixture(scope="module", params=RELEASES)
def workers(
    request: pytest.FixtureRequest,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workers]:
    """A Java worker and an agent of one release; those of 4.4 have a config provider, `file`."""
    if request.param != RELEASE_4_4:
        java, agent = map(request.getfixturevalue, ("java_worker", "agent_worker"))
        yield Workers(request.param, java.url, agent.url)
        return
    servers = Servers(request.getfixturevalue("kafka_4_4"), tmp_path_factory.mktemp("workers-4.4"))
    own = {**PROVIDER, "agent.restart.policy": "never", RELEASE_KEY: request.param}
    bootstrap = kafka_broker.bootstrap_servers
    try:
        yield Workers(
            request.param,
            servers.java_worker(bootstrap, unique_name("java-4.4"), properties=PROVIDER).url,
            servers.agent(bootstrap, unique_name("agents-4.4"), properties=own).url,
        )
    finally:
        servers.close()


@pytest.fixture
def provided(tmp_path: Path) -> Path:
    """A file for the config provider, with a number and with texts."""
    file = tmp_path / "provided.properties"
    file.write_text("number=1\ntext=s3cret\nconverter=nope\n")
    return file


def wrong_answers(url: str, release: str) -> dict[str, list[str]]:
    """Return the differences from the expected answers, by scenario."""
    found = {}
    for each in SCENARIOS:
        answer = call_url(url, each.method, each.target, each.body, each.headers)
        if wrong := each.of(release).differences(answer):
            found[each.name] = wrong
    return found


def test_expected_answers_are_those_of_apaches_worker(workers: Workers) -> None:
    """The expected answers in tests of the REST layer are those of a real Java worker."""
    assert wrong_answers(workers.java_url, workers.release) == {}


def test_an_agent_answers_as_expected(workers: Workers) -> None:
    """A complete agent gives the answers that the tests of the REST layer expect."""
    assert wrong_answers(workers.agent_url, workers.release) == {}


@pytest.mark.parametrize(
    "workers",
    [CONNECT_VERSION, pytest.param(RELEASE_4_4, marks=pytest.mark.long(only=True))],
    indirect=True,
)
@cases("story", *STORIES, ids=lambda story: story.__name__)
def test_each_story_is_the_same_on_both(story: Story, workers: Workers, tmp_path: Path) -> None:
    """Each step of a story has the same answer on both workers, except for masked values."""
    assert differences(*told_by(story, [workers.java_url, workers.agent_url], tmp_path)) == []


@pytest.fixture(scope="module")
def url_of_agent_with_jar(
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    module_servers: Servers,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The address of an agent that runs FileStream connectors out of Apache's jar."""
    plugin_path = tmp_path_factory.mktemp("plugins")
    file_connectors(kafka_runtime, plugin_path)
    properties = {"plugin.path": str(plugin_path), "agent.restart.policy": "never"}
    return module_servers.agent(
        kafka_broker.bootstrap_servers, unique_name("agents"), properties=properties
    ).url


@pytest.mark.long(only=True)
@pytest.mark.timeout(850)
@cases("story", *STORIES, ids=lambda story: story.__name__)
def test_each_story_is_the_same_with_apaches_jar(
    story: Story, java_worker: SharedJavaWorker, url_of_agent_with_jar: str, tmp_path: Path
) -> None:
    """Stories have the same answers when the agent runs connectors and tasks in Java processes."""
    assert differences(*told_by(story, [java_worker.url, url_of_agent_with_jar], tmp_path)) == []


def told_by(story: Story, urls: list[str], directory: Path) -> list[list[Told]]:
    """Run the story on all workers at once."""
    lives = [Life(url, unique_name("life"), str(directory)) for url in urls]
    with ThreadPoolExecutor(len(lives)) as tellers:
        list(tellers.map(story, lives))
    return [life.told for life in lives]


def differences(on_java: list[Told], on_agent: list[Told]) -> list[tuple[str, str]]:
    """Return the steps that were answered differently."""
    return [
        (str(java), str(agent))
        for java, agent in zip(on_java, on_agent, strict=True)
        if java != agent
    ]


def test_both_workers_have_the_same_plugins(workers: Workers) -> None:
    """An agent lists Apache's plugins with the same kinds and versions in the same order."""
    for target in ("/connector-plugins", "/connector-plugins?connectorsOnly=false"):
        on_java, on_agent = on_both(workers.java_url, workers.agent_url, "GET", target)
        shared = [p for p in on_agent.json() if not is_our_own(p["class"])]
        assert shared == on_java.json()


def test_every_plugin_has_the_same_settings(workers: Workers) -> None:
    """Types, defaults, importance and groups of each key are those of Apache's worker."""
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


@cases(
    "plugin",
    "nope",
    "FileStreamSource?version=1",
    "nope?version=1",
    "InsertField",
    "org.apache.kafka.common.config.provider.FileConfigProvider",
)
def test_a_plugin_that_is_not_there_is_refused_alike(workers: Workers, plugin: str) -> None:
    """An unknown name, an unknown version, and a kind without settings are refused alike."""
    name, mark, query = plugin.partition("?")
    target = f"/connector-plugins/{name}/config{mark}{query}"
    on_java, on_agent = on_both(workers.java_url, workers.agent_url, "GET", target)
    assert (on_agent.status, on_agent.json()) == (on_java.status, on_java.json())
    assert on_java.status in (400, 404)


def test_configurations_are_validated_alike(workers: Workers) -> None:
    """Both workers validate with the same definitions, values, errors and visibility of keys."""
    different = {}
    for case in CONFIG_CASES:
        target = f"/connector-plugins/{case.connector_class}/config/validate"
        config = {key: of_release(text, workers.release) for key, text in case.config.items()}
        on_java, on_agent = on_both(workers.java_url, workers.agent_url, "PUT", target, config)
        if validation(on_agent) != validation(on_java):
            different[case.name] = (validation(on_agent), validation(on_java))
    assert different == {}


def of_release(text: str | None, release: str) -> str | None:
    return None if text is None else text.replace("4.3.1", release)


@pytest.mark.parametrize("workers", [RELEASE_4_4], indirect=True)
@cases(
    "changes",
    {"tasks.max": "number"},
    {"tasks.max": "text"},
    {"tasks.max": "text", "errors.tolerance": "number"},
    {"file": "text", "key.converter": "converter"},
    {"connector.class": "text"},
    {"connector.plugin.version": "text"},
    {"producer.override.linger.ms": "number"},
    {"config.providers.file.class": "text", "config.providers": "number"},
    {"config.providers": "x", "config.providers.x.class": "text", "tasks.max": "number"},
    ids=str,
)
def test_references_to_config_providers_are_validated_alike(
    changes: dict[str, str], workers: Workers, provided: Path
) -> None:
    """Neither worker shows a provider's values, nor errors that may quote them; 4.3.1 does."""
    names = ("number", "text", "converter")
    given = {key: f"${{file:{provided}:{v}}}" if v in names else v for key, v in changes.items()}
    config = {**SOURCE, **given}
    target = "/connector-plugins/FileStreamSource/config/validate"
    on_java, on_agent = on_both(workers.java_url, workers.agent_url, "PUT", target, config)
    # A Java worker quotes the value in an error of another key; the agent quotes the reference.
    without_secret = on_java.text.replace("s3cret", f"${{file:{provided}:text}}")
    assert validation(on_agent) == validation(replace(on_java, body=without_secret.encode()))
    assert "s3cret" not in on_agent.text
