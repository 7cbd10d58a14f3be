"""Java plugins in the validation of configs, with a fake of the Java process."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pyconnect_agent.builtin.predicates import HasHeaderKey
from pyconnect_agent.core.config.validation import ConfigInfos, validate_connector_config
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind
from pyconnect_agent.java_processes.jar_scan import API_CLASSES
from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.plugins.class_source import (
    CatalogPluginSource,
    JavaPluginSource,
    definition_of,
)
from pyconnect_agent.plugins.java_classes import (
    is_java_connector,
    is_other_side,
    java_class,
    plugin_locations,
)
from pyconnect_agent.plugins.loading import builtin_plugins
from pyconnect_api import ConfigException, ConnectException
from pyconnect_api.configdef import ConfigValue
from tests.support.cases import cases

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def java(
    name: str, kind: PluginKind, location: str | None = "/plugins/a.jar", version: str = "1.0"
) -> PluginDesc:
    return PluginDesc(
        class_name=name,
        python_path="",
        kind=kind,
        version=version,
        search_path=location,
        is_java=True,
    )


CATALOG = Catalog(
    (
        *builtin_plugins(),
        java("a.SourceConnector", PluginKind.SOURCE),
        java("a.Change", PluginKind.TRANSFORMATION),
        java("a.Own", PluginKind.CONVERTER),
        java(STRING_CONVERTER, PluginKind.CONVERTER, None, "4.3.1"),
        java(SIMPLE_HEADERS, PluginKind.HEADER_CONVERTER, None, "4.3.1"),
        java("org.apache.kafka.connect.mirror.Mirror", PluginKind.SOURCE, None),
    )
)


def key(name: str, **changes: object) -> dict[str, object]:
    """Return a key as the Java process describes it."""
    return {
        "name": name, "type": "STRING", "required": False, "default": None, "importance": "LOW",
        "documentation": None, "group": None, "order": -1, "width": "NONE", "display": name,
        "dependents": [], "validated": False, "recommended": False, "internal": False,
    } | changes  # fmt: skip


class FakeJava:
    """Answers by class and question; without an answer it returns an empty definition."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, str]] = []
        self.keys: dict[str, list[dict[str, object]] | None] = {}
        self.kinds = {
            plugin.class_name: [
                other.kind.value
                for other in CATALOG.java.plugins
                if other.class_name == plugin.class_name
            ]
            for plugin in CATALOG.java.plugins
        }
        self.checks: Callable[[str, str | None], str | None] = lambda key, value: None

    def ask(self, method: str, **arguments: Any) -> Any:
        name = arguments["plugin"]["class"]
        self.questions.append((method, name))
        match method:
            case "load" if name not in self.kinds:
                return None
            case "load":
                kinds = {base: API_CLASSES[base].value for base in arguments["bases"]}
                bases = [base for base, kind in kinds.items() if kind in self.kinds[name]]
                return {"bases": bases, "abstract": False}
            case "config":
                return self.keys.get(name, [])
            case "check":
                if error := self.checks(arguments["key"], arguments["value"]):
                    raise ConfigException(error)
            case "recommend":
                return {"values": ["r"], "visible": arguments["parsed"].get("shown") == "yes"}
            case "validate":
                value = arguments["config"].get("own")
                return [
                    {"name": "own", "value": value, "recommended": [], "errors": ["not good"],
                     "visible": True}
                ]  # fmt: skip
            case "exactlyOnceSupport":
                return "SUPPORTED"
        return None


@pytest.fixture
def fake() -> FakeJava:
    return FakeJava()


def process_errors(config: Mapping[str, str | None]) -> Iterator[ConfigValue]:
    if config.get("agent.java.heap") == "99g":
        yield ConfigValue("agent.java.heap", "99g", error_messages=["too much"])


def validated(fake: FakeJava, config: Mapping[str, str], **worker: str) -> ConfigInfos:
    properties = {
        "bootstrap.servers": "b:1",
        "key.converter": STRING_CONVERTER,
        "value.converter": STRING_CONVERTER,
        **{name.replace("_", "."): value for name, value in worker.items()},
    }
    whole = {"name": "n", "connector.class": "a.SourceConnector", **config}
    is_java = is_java_connector(CATALOG, whole)
    java = JavaPluginSource(CATALOG, fake)
    return validate_connector_config(
        whole,
        plugins=java if is_java else CatalogPluginSource(CATALOG, lambda: java, in_jars=True),
        worker=WorkerConfig.parse(properties),
        raw_config=whole,
        process_errors=process_errors(whole),
    )


def errors(infos: ConfigInfos) -> dict[str, tuple[str, ...]]:
    return {
        info.value.name: info.value.errors
        for info in infos.configs
        if info.value and info.value.errors
    }


def test_a_class_whose_jars_have_gone_is_named_with_its_location(fake: FakeJava) -> None:
    """The error names the location, as jars may be removed while a worker runs."""
    del fake.kinds["a.SourceConnector"]
    with pytest.raises(ConnectException, match=r"SourceConnector is no longer in .*: put its jars"):
        validated(fake, {})


def test_a_java_connector_says_its_keys_and_values(fake: FakeJava) -> None:
    """Errors of the Java connector's keys are reported beside those of the framework."""
    fake.keys["a.SourceConnector"] = [
        key("own", type="INT", default="7", importance="HIGH", group="G"),
        key("secret", type="PASSWORD", default="x"),
    ]
    infos = validated(fake, {"own": "8", "tasks.max": "0", "agent.java.heap": "99g"})
    assert set(errors(infos)) == {"own", "tasks.max", "agent.java.heap"}
    shown = {info.definition["name"]: info for info in infos.configs if info.definition}
    own, secret = shown["own"], shown["secret"]
    assert own.definition is not None
    assert (own.definition["default_value"], own.definition["group"]) == ("7", "G")
    assert own.value is not None
    assert own.value.value == "8"
    assert secret.definition is not None
    assert secret.definition["default_value"] == "[hidden]"


def test_what_a_java_key_leaves_out_stays_out() -> None:
    """A key without a display name, as in Debezium's MongoDB connector, is shown with null."""
    definition = definition_of([key("k", display=None)], lambda method, **arguments: None)
    [found] = definition.keys.values()
    shown = found.to_json()
    assert (shown["display_name"], shown["documentation"]) == (None, None)


def test_settings_of_transformations_are_checked_by_java(fake: FakeJava) -> None:
    """Java gets the names that its class knows; recommenders get parsed values."""
    fake.keys["a.Change"] = [
        key("field", required=True, validated=True),
        key("shown", default="no", dependents=["list"]),
        key("list", type="LIST", default="a,b", recommended=True),
    ]
    fake.checks = lambda key, value: f"{key} is not {value}" if value == "bad" else None
    config = {"transforms": "t", "transforms.t.type": "Change", "transforms.t.field": "bad"}
    infos = validated(fake, config | {"transforms.t.shown": "yes"})
    assert errors(infos)["transforms.t.field"] == ("field is not bad",)
    values = {info.value.name: info.value for info in infos.configs if info.value}
    assert values["transforms.t.list"].value == "a,b"
    assert values["transforms.t.list"].recommended_values == ("r",)
    assert values["transforms.t.list"].visible


def test_names_of_both_sides_mean_the_class_of_the_connectors_side(fake: FakeJava) -> None:
    """For a name in both languages Java is asked only if the connector is in Java."""
    validated(fake, {"value.converter": "StringConverter"})
    assert ("config", STRING_CONVERTER) in fake.questions
    fake.questions.clear()
    config = {"connector.class": "FileStreamSource", "topic": "t", "value.converter": "String"}
    assert errors(validated(fake, config)) == {}
    assert fake.questions == []


@cases(
    "config, worker, at, sides",
    ({"value.converter": "io.confluent.connect.avro.AvroConverter"}, {}, "value.converter",
         "is a Python class and the connector is a Java class"),
    ({}, {"key_converter": "io.confluent.connect.avro.AvroConverter"}, "key.converter",
         "is a Python class and the connector is a Java class"),
    ({"connector.class": "FileStreamSource", "topic": "t", "value.converter": "a.Own"}, {},
         "value.converter", "is a Java class and the connector is a Python class"),
)  # fmt: skip
def test_a_converter_of_the_other_side_is_refused_with_the_reason(
    fake: FakeJava, config: dict[str, str], worker: dict[str, str], at: str, sides: str
) -> None:
    """The error is at the key that names the class, also for the worker's converter."""
    found = errors(validated(fake, config, **worker))[at]
    assert sides in found[0]
    assert "must all be" in found[0]


def test_a_python_connector_may_have_java_transformations(fake: FakeJava) -> None:
    """Validation has the settings and versions of the Java class, and asks Java about no other."""
    fake.keys["a.Change"] = [key("field", required=True), key("other", default="7")]
    stage = {"connector.class": "FileStreamSource", "topic": "t", "transforms": "u, t"}
    stage |= {"transforms.u.type": "HoistField$Value", "transforms.u.field": "f"}
    latest = {"transforms.t.type": "Change", "transforms.t.plugin.version": "1.0"}
    infos = validated(fake, stage | latest)
    assert set(errors(infos)) == {"transforms.t.field"}
    values = {info.value.name: info.value for info in infos.configs if info.value}
    assert values["transforms.t.other"].value == "7"
    assert {name for _, name in fake.questions} == {"a.Change"}
    wanted = {"transforms.t.type": "a.Change", "transforms.t.plugin.version": "[7,8]"}
    found = errors(validated(fake, {**stage, **wanted, "transforms.t.field": "f"}))
    assert "[1.0]" in found["transforms.t.plugin.version"][0]


def test_a_java_connector_may_have_python_transformations(fake: FakeJava) -> None:
    """A transformation and its predicate must be in one language."""
    stage = {"transforms": "t", "transforms.t.type": "org.apache.kafka.connect.transforms.Cast$Key"}
    found = errors(validated(fake, stage))
    assert "transforms.t.spec" in found
    assert "transforms.t.type" not in found
    config = {**stage, "transforms.t.predicate": "p", "predicates.p.type": "a.When"}
    connector = {"connector.class": "a.SourceConnector"}
    assert is_other_side(CATALOG, connector | stage, "t")
    catalog = Catalog((*CATALOG.plugins, java("a.When", PluginKind.PREDICATE)))
    for predicate in ("a.When", "a.Unlisted"):
        config["predicates.p.type"] = predicate
        with pytest.raises(ConnectException, match=r"'t' and its predicate 'p' have no language"):
            is_other_side(catalog, connector | config, "t")
    for predicate in (f"{__name__}.Unlisted", "HasHeaderKey"):
        config["predicates.p.type"] = predicate
        assert is_other_side(catalog, connector | config, "t")


class Unlisted(HasHeaderKey):
    """A Python class that is in no list of plugins."""


def test_an_unlisted_predicate_is_in_the_language_of_its_transformation(fake: FakeJava) -> None:
    """A Java transformation cannot have a predicate in Python."""
    fake.kinds["a.Unlisted"] = ["predicate"]
    fake.keys["a.Unlisted"] = [key("field", required=True)]
    config = {"connector.class": "FileStreamSource", "topic": "t", "transforms": "t"}
    config |= {"transforms.t.type": "a.Change", "transforms.t.predicate": "p", "predicates": "p"}
    for predicate, wrong in (("Unlisted", "field"), ("Missing", "type")):
        config["predicates.p.type"] = f"a.{predicate}"
        assert is_other_side(CATALOG, config, "t")
        assert set(errors(validated(fake, config))) == {f"predicates.p.{wrong}"}
    config["predicates.p.type"] = f"{__name__}.Unlisted"
    with pytest.raises(ConnectException, match="no language in common"):
        is_other_side(CATALOG, config, "t")


def test_classes_that_no_plugin_lists_are_looked_for_in_the_connectors_jars(fake: FakeJava) -> None:
    """An unlisted class in the connector's jars is valid, as in Java's worker."""
    fake.kinds["a.Unlisted"] = ["converter"]
    assert "value.converter" not in errors(validated(fake, {"value.converter": "a.Unlisted"}))
    found = errors(validated(fake, {"value.converter": "a.Missing"}))["value.converter"]
    assert "Class a.Missing could not be found." in found[0]


def test_a_connector_of_both_sides_is_javas_if_plugin_path_brings_it() -> None:
    """A connector in Kafka's jars gives way to Python's; a Python path means Python's."""
    in_path = Catalog((*CATALOG.plugins, java(FILE_SOURCE, PluginKind.SOURCE)))
    in_kafka = Catalog((*CATALOG.plugins, java(FILE_SOURCE, PluginKind.SOURCE, None)))
    python_path = "pyconnect_agent.builtin.connectors.file_stream.FileStreamSourceConnector"
    for name in (FILE_SOURCE, "FileStreamSource"):
        assert is_java_connector(in_path, {"connector.class": name})
        assert not is_java_connector(in_kafka, {"connector.class": name})
    assert not is_java_connector(in_path, {"connector.class": python_path})
    version = {"connector.class": FILE_SOURCE, "connector.plugin.version": "[4.3.1]"}
    assert not is_java_connector(in_path, version)
    assert is_java_connector(
        in_path, {"connector.class": "a.SourceConnector"} | {"connector.plugin.version": "[7]"}
    )
    mirror = {"connector.class": "org.apache.kafka.connect.mirror.Mirror"}
    assert is_java_connector(in_kafka, mirror)
    assert not is_java_connector(in_kafka, {"connector.class": "nope"})


def test_a_java_config_provider_is_refused_with_the_reason() -> None:
    """References are resolved in Python, so a Java config provider raises ConnectException."""
    catalog = Catalog((*CATALOG.plugins, java("a.Vault", PluginKind.CONFIG_PROVIDER)))
    with pytest.raises(ConnectException, match="resolves references in Python"):
        CatalogPluginSource(catalog).plugin("a.Vault", PluginKind.CONFIG_PROVIDER)


def test_a_copy_in_a_location_counts_for_its_own_connectors_only() -> None:
    """A connector uses its own location's class, else the latest version, as in Apache's worker."""
    copy = java(STRING_CONVERTER, PluginKind.CONVERTER, "/plugins/copy.jar", "2.6.0")
    catalog = Catalog((*CATALOG.plugins, copy))
    own = java_class(catalog, STRING_CONVERTER, PluginKind.CONVERTER, jars=("/plugins/copy.jar",))
    other = java_class(catalog, STRING_CONVERTER, PluginKind.CONVERTER, jars=("/plugins/a.jar",))
    assert (own.jars, other.jars) == (("/plugins/copy.jar",), ())
    wanted = java_class(catalog, "StringConverter", PluginKind.CONVERTER, "[2,3]", jars=other.jars)
    assert wanted.jars == ("/plugins/copy.jar",)


def test_plugins_belong_to_locations_with_jars() -> None:
    """A location offers the classes of which it has the latest version, as in Apache's worker."""
    change, connector = PluginKind.TRANSFORMATION, PluginKind.SOURCE
    copies = (
        java("a.Change", change, "/plugins/new.jar", "2.0"),
        java("a.SourceConnector", connector, "/plugins/new.jar", "0.9"),
    )
    assert plugin_locations(Catalog((*CATALOG.plugins, *copies))) == [
        {"jars": ("/plugins/a.jar",), "classes": ["a.SourceConnector", "a.Own"]},
        {"jars": ("/plugins/new.jar",), "classes": ["a.Change"]},
    ]
    assert java_class(CATALOG, "Change", PluginKind.TRANSFORMATION).jars == ("/plugins/a.jar",)
    assert java_class(CATALOG, "StringConverter", PluginKind.CONVERTER).jars == ()
    unlisted = java_class(CATALOG, "a.Unlisted", PluginKind.CONVERTER, jars=("/plugins/a.jar",))
    assert unlisted == JavaClass("a.Unlisted", ("/plugins/a.jar",))
    with pytest.raises(ConnectException, match="is a Python class"):
        java_class(CATALOG, "HoistField$Value", PluginKind.TRANSFORMATION)
