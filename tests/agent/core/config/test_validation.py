"""Rules of connector validation beyond the recorded answers of Connect."""

from collections.abc import Mapping

import pytest

from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.core.config.client_overrides import OverridePolicy, check_overrides
from pyconnect_agent.core.config.validation import (
    ConfigInfos,
    connector_key_infos,
    validate_connector_config,
)
from pyconnect_agent.core.config.worker_config import StandaloneConfig, WorkerConfig
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.plugin_catalog import PluginKind
from pyconnect_api import (
    NULL,
    Config,
    ConfigDef,
    ConfigException,
    ConnectException,
    ConnectorTransactionBoundaries,
    Converter,
    ExactlyOnceSupport,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
)
from tests.agent.plugins.plugin_table import HoistField, PlainSink, PlainSource, TablePluginSource
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases

ConnectorConfig = Mapping[str, str | None]
POLICIES = "org.apache.kafka.connect.connector.policy"


class ExactlyOnceSource(PlainSource):
    """A source whose hooks of KIP-618 answer as its configuration says."""

    def exactly_once_support(self, connector_configs: ConnectorConfig) -> ExactlyOnceSupport | None:
        answer = connector_configs.get("support")
        if answer == "raise":
            raise RuntimeError(" no idea ")
        return None if answer is None else ExactlyOnceSupport(answer)

    def can_define_transaction_boundaries(
        self, connector_configs: ConnectorConfig
    ) -> ConnectorTransactionBoundaries:
        answer = connector_configs.get("boundaries")
        if answer == "raise":
            raise RuntimeError
        return None if answer is None else ConnectorTransactionBoundaries(answer)  # type: ignore[return-value]


class WithoutDefinition(PlainSource):
    """A source that breaks the contract of `config`."""

    def config(self) -> ConfigDef:
        return None  # type: ignore[return-value]


class WithoutResult(PlainSource):
    """A source that breaks the contract of `validate`."""

    def validate(self, connector_configs: ConnectorConfig) -> Config:
        return None  # type: ignore[return-value]


class NotConstructible(PlainSource):
    """A source whose constructor raises."""

    def __init__(self) -> None:
        raise RuntimeError("no database")


class WithoutLibrary(Converter):
    """A converter that needs a library that is not installed."""

    def config(self) -> ConfigDef:
        raise ConfigException("install the extra")

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None: ...

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        return None

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        return NULL


PLUGINS = TablePluginSource(
    [
        ("a.WithoutLibrary", PluginKind.CONVERTER, WithoutLibrary),
        ("a.Source", PluginKind.SOURCE, PlainSource),
        ("a.Sink", PluginKind.SINK, PlainSink),
        ("a.ExactlyOnceSource", PluginKind.SOURCE, ExactlyOnceSource),
        ("a.WithoutDefinition", PluginKind.SOURCE, WithoutDefinition),
        ("a.WithoutResult", PluginKind.SOURCE, WithoutResult),
        ("a.NotConstructible", PluginKind.SOURCE, NotConstructible),
        ("a.Hoist", PluginKind.TRANSFORMATION, HoistField),
    ]
)


def validate(worker: WorkerConfig | None = None, **config: str | None) -> ConfigInfos:
    """Validate a connector named c; underscores in keys stand for dots."""
    named = {key.replace("_", "."): value for key, value in config.items()}
    return validate_connector_config(
        {"name": "c"} | named, plugins=PLUGINS, worker=worker or distributed()
    )


def errors(infos: ConfigInfos) -> dict[str, tuple[str, ...]]:
    """Return the messages of every key with errors."""
    return {
        info.value.name: info.value.errors
        for info in infos.configs
        if info.value is not None and info.value.errors
    }


def test_the_refusal_lists_every_message_and_where_to_find_them() -> None:
    """The text of the 400 response is Connect's, with every message."""
    text = validate(connector_class="a.Sink", tasks_max="x").error_text()
    assert text is not None
    lines = text.split("\n")
    assert lines[0] == "Connector configuration is invalid and contains the following 4 error(s):"
    assert lines[1:5].count("Must configure one of topics or topics.regex") == 2
    assert lines[-1] == (
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )
    assert validate(connector_class="a.Source").error_text() is None


def test_a_missing_connector_class_is_refused_with_the_submitted_map() -> None:
    """The refusal shows references instead of resolved values."""
    with pytest.raises(BadRequestError) as refused:
        validate_connector_config(
            {"name": "c", "password": "s3cret", "none": None},
            plugins=PLUGINS,
            worker=distributed(),
            raw_config={"name": "c", "password": "${f:p:k}", "none": None},
        )
    expected = "Connector config {name=c, password=${f:p:k}, none=null} contains no connector type"
    assert str(refused.value) == expected
    with pytest.raises(BadRequestError, match=r"^Connector config contains no connector type$"):
        validate_connector_config(
            {"name": "c"}, plugins=PLUGINS, worker=distributed(agent_connect_release="4.4.0")
        )


@cases("name", "no.such.Class", "", "a.Hoist")
def test_an_unknown_connector_class_is_refused(name: str) -> None:
    """The error names the available connectors."""
    with pytest.raises(BadRequestError) as refused:
        validate(connector_class=name)
    assert str(refused.value).startswith(
        "org.apache.kafka.connect.errors.ConnectException: Failed to find any class that "
        f"implements Connector and which name matches {name}, available connectors are: "
        "PluginDesc{klass=class a."
    )


def test_connectors_that_break_their_contract_are_refused() -> None:
    """A connector must return a definition and a result, and its constructor must not raise."""
    with pytest.raises(BadRequestError, match=r"a\.WithoutDefinition\.config\(\) must return"):
        validate(connector_class="a.WithoutDefinition")
    with pytest.raises(BadRequestError, match=r"a\.WithoutResult\.validate\(\) must return"):
        validate(connector_class="a.WithoutResult")
    with pytest.raises(ConnectException, match="no database"):
        validate(connector_class="a.NotConstructible")


def test_resolved_references_are_shown_as_submitted() -> None:
    """Neither values nor messages show the text that a provider returned."""
    infos = validate_connector_config(
        {"name": "c", "connector.class": "a.Source", "tasks.max": "s3cret", "other": "s3cret"},
        plugins=PLUGINS,
        worker=distributed(),
        raw_config={
            "name": "c",
            "connector.class": "a.Source",
            "tasks.max": "${f:p:k}",
            "other": "s3cret",
        },
        secrets={"s3cret": "${f:p:k}"},
    )
    assert "s3cret" not in str(infos.to_json())
    expected = "Invalid value ${f:p:k} for configuration tasks.max: Not a number of type INT"
    assert errors(infos)["tasks.max"][0] == expected


@cases(
    "hook, answer, worker_support, expected",
    ("support", "SUPPORTED", "enabled", []),
    ("support", "SUPPORTED", "preparing", ["This worker does not have"]),
    ("support", "UNSUPPORTED", "enabled", ["The connector does not support exactly-once"]),
    ("support", None, "disabled", ["This worker does not have", "The connector does not implem"]),
    ("support", "raise", "enabled", ["An unexpected error occurred during validation: no idea"]),
    ("boundaries", "SUPPORTED", "disabled", []),
    ("boundaries", "UNSUPPORTED", "disabled", ["The connector does not support connector-defined"]),
    ("boundaries", None, "disabled", ["This connector has returned a null value"]),
    ("boundaries", "raise", "disabled", ["An unexpected error occurred during validation; please"]),
)
def test_exactly_once_is_checked_on_both_sides(
    hook: str, answer: str | None, worker_support: str, expected: list[str]
) -> None:
    """Required support needs the worker and the connector; own boundaries need the connector."""
    key, wanted = {
        "support": ("exactly.once.support", "Required"),
        "boundaries": ("transaction.boundary", "CONNECTOR"),
    }[hook]
    infos = validate(
        distributed(exactly_once_source_support=worker_support),
        connector_class="a.ExactlyOnceSource",
        **{key: wanted},
        **({} if answer is None else {hook: answer}),
    )
    found = errors(infos).get(key, ())
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_clients_of_an_exactly_once_source_must_reach_one_cluster() -> None:
    """Fencing on one cluster would not protect records on another, so all clients need the same."""
    enabled = distributed(exactly_once_source_support="enabled", bootstrap_servers="a:1,b:1")
    override = {"producer_override_bootstrap_servers": "c:1"}
    apart = validate(enabled, connector_class="a.Source", **override)
    assert "must reach the same Kafka" in errors(apart)["producer.override.bootstrap.servers"][0]
    override |= {f"{kind}_override_bootstrap_servers": "c:1" for kind in ("consumer", "admin")}
    assert validate(enabled, connector_class="a.Source", **override).error_count == 0
    same = validate(
        enabled, connector_class="a.Source", producer_override_bootstrap_servers="b:1, a:1"
    )
    assert same.error_count == 0
    assert validate(distributed(), connector_class="a.Source", **override).error_count == 0


def test_a_standalone_worker_does_not_check_exactly_once_or_groups() -> None:
    """Checks of exactly-once and consumer groups belong to distributed mode."""
    worker = StandaloneConfig.parse(
        {
            "key.converter": "K",
            "value.converter": "V",
            "offset.storage.file.filename": "/tmp/o",
            "group.id": "connect-c",
        }
    )
    source = validate(worker, connector_class="a.Source", exactly_once_support="required")
    sink = validate(worker, connector_class="a.Sink", topics="t")
    assert source.error_count == sink.error_count == 0


def test_a_sink_must_not_use_the_workers_group() -> None:
    """A sink whose group is the worker's is refused, by its name or by its override."""
    by_name = validate(distributed(group_id="connect-c"), connector_class="a.Sink", topics="t")
    assert errors(by_name)["name"] == (
        "Consumer group for sink connector named c conflicts with Connect worker group connect-c",
    )
    by_override = validate(
        distributed(group_id="g"),
        connector_class="a.Sink",
        topics="t",
        consumer_override_group_id="g",
    )
    assert errors(by_override)["consumer.override.group.id"] == (
        "Consumer group g conflicts with Connect worker group g",
    )


@cases(
    "policy, allowlist, refused",
    ("All", "", set()),
    ("None", "", {"acks", "sasl.mechanism"}),
    ("Principal", "", {"acks"}),
    ("Allowlist", "acks", {"sasl.mechanism"}),
    (f"{POLICIES}.NoneConnectorClientConfigOverridePolicy", "", {"acks", "sasl.mechanism"}),
)
def test_the_policy_decides_which_client_settings_may_be_overridden(
    policy: str, allowlist: str, refused: set[str]
) -> None:
    """A client setting that the policy refuses counts as one error."""
    infos = validate(
        distributed(
            connector_client_config_override_policy=policy,
            connector_client_config_override_allowlist=allowlist,
        ),
        connector_class="a.Source",
        producer_override_acks="1",
        producer_override_sasl_mechanism="PLAIN",
    )
    prefix = "producer.override."
    assert {key.removeprefix(prefix) for key in errors(infos)} == refused
    assert infos.error_count == len(refused)
    name = policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    for key, [message] in errors(infos).items():
        assert message == (
            f"The '{name}' policy does not allow '{key.removeprefix(prefix)}' to be overridden "
            "in the connector configuration."
        )


def test_the_policy_is_known_and_checked_at_start_too() -> None:
    """A policy may change after a connector's creation, so the start checks overrides again."""
    with pytest.raises(ConfigException, match="must be one of All, None, Principal, Allowlist"):
        OverridePolicy.parse("Everything")
    with pytest.raises(ConfigException, match=r"Client Config Overrides not allowed \[The 'None'"):
        check_overrides(
            {"admin.override.retries": "1"}, ClientKind.ADMIN, OverridePolicy.parse("None")
        )


def test_only_clients_the_connector_uses_are_checked() -> None:
    """Overrides of unused clients are not checked: most sources have no admin client."""
    worker = distributed(connector_client_config_override_policy="None")
    unused = validate(worker, connector_class="a.Source", admin_override_retries="1")
    used = validate(
        worker, connector_class="a.Source", admin_override_retries="1", topic_creation_groups=""
    )
    assert (unused.error_count, used.error_count) == (0, 1)


def test_key_definitions_begin_with_the_connectors_own() -> None:
    """A connector's own keys come first, framework keys follow, and PASSWORD values are hidden."""
    names = [info["name"] for info in connector_key_infos(PLUGINS.connector("a.Sink"), PLUGINS)]
    assert names[:3] == ["secret", "name", "connector.class"]
    assert "topics.regex" in names
    assert len(set(names)) == len(names)
    infos = validate(connector_class="a.Source", secret="s3cret")
    assert "s3cret" not in str(infos.to_json())
    assert "[hidden]" in str(infos.to_json())


@cases("named_by", "connector", "worker")
def test_a_converter_that_lacks_its_library_is_refused_at_creation(named_by: str) -> None:
    """The converter's key has the reason, whether the connector or the worker names it."""
    if named_by == "connector":
        infos = validate(connector_class="a.Source", value_converter="a.WithoutLibrary")
    else:
        worker = distributed(**{"value.converter": "a.WithoutLibrary"})
        infos = validate(worker, connector_class="a.Source")
    (message,) = errors(infos)["value.converter"]
    assert message == "Failed to load ConfigDef from value converter: install the extra"


def test_the_agents_own_keys_are_validated_where_they_are_given() -> None:
    """The agent's keys are validated if the config has them; otherwise the answer is Java's."""
    source = {"connector_class": "a.Source", "tasks_max": "1"}
    names = {info.value.name for info in validate(**source).configs if info.value}
    assert not any(name.startswith("agent.") for name in names)
    given = validate(
        **source,
        agent_restart_policy="sometimes",
        agent_restart_backoff_ms="0",
        agent_limit_memory_bytes="1000",
    )
    assert errors(given).keys() == {"agent.restart.policy", "agent.restart.backoff.ms"}
    assert given.error_count == 2
    assert "agent.limit.memory.bytes" in {info.value.name for info in given.configs if info.value}


def test_the_agents_own_keys_take_no_references() -> None:
    """References in the agent's keys are refused: the worker process never resolves secrets."""
    config = {"name": "c", "connector.class": "a.Source", "agent.restart.policy": "never"}
    infos = validate_connector_config(
        config,
        raw_config={**config, "agent.restart.policy": "${file:x:y}"},
        plugins=PLUGINS,
        worker=distributed(),
    )
    (error,) = errors(infos)["agent.restart.policy"]
    assert "references to config providers are not resolved here" in error
