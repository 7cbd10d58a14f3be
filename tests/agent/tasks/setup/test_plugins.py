"""Which plugins convert and change a task's records, by the worker's and the connector's config."""

import pytest

from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from pyconnect_agent.tasks.plugins import converter_of, stages_of
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import STRING_SCHEMA, ConfigException
from tests.support.agents.worker_properties import PROPERTIES

OLD_AND_NEW = {
    PluginKind.CONVERTER: ("converters.json:JsonConverter", "converters.base:StringConverter"),
    PluginKind.HEADER_CONVERTER: (
        "converters.base:StringConverter",
        "converters.base:SimpleHeaderConverter",
    ),
    PluginKind.TRANSFORMATION: ("transforms.routers:Filter", "transforms.routers:TimestampRouter"),
    PluginKind.PREDICATE: ("predicates:RecordIsTombstone", "predicates:TopicNameMatches"),
}
"""Versions 1.0 and 2.0 of a plugin `v.<kind>`: different classes, so that they can be told."""
PLUGINS = tuple(
    PluginDesc(
        class_name=f"v.{kind.value}",
        python_path=f"pyconnect_agent.builtin.{path}",
        kind=kind,
        version=version,
    )
    for kind, paths in OLD_AND_NEW.items()
    for path, version in zip(paths, ("1.0", "2.0"), strict=True)
)
CONVERTERS = {"key.converter": "v.converter", "value.converter": "v.converter"}


def view(**properties: str) -> WorkerView:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return WorkerView(
        PROPERTIES | CONVERTERS | {"header.converter": "v.header_converter"} | given, PLUGINS
    )


def name(plugin: object) -> str:
    return type(plugin).__name__


def test_a_connectors_plugins_have_the_versions_it_asks_for() -> None:
    """Converters, transformations and predicates; without a wish it is the latest."""
    config = CONVERTERS | {
        "key.converter.plugin.version": "1.0",
        "header.converter": "v.header_converter",
        "header.converter.plugin.version": "[1,2)",
        "transforms": "old,new",
        "transforms.old.type": "v.transformation",
        "transforms.old.plugin.version": "(,1.5]",
        "transforms.old.predicate": "old",
        "transforms.new.type": "v.transformation",
        "transforms.new.predicate": "new",
        "predicates": "old,new",
        "predicates.old.type": "v.predicate",
        "predicates.old.plugin.version": "1.0",
        "predicates.new.type": "v.predicate",
        "predicates.new.pattern": ".*",
    }
    worker = view()
    assert name(converter_of(worker, "key", config)) == "JsonConverter"
    assert name(converter_of(worker, "value", config)) == "StringConverter"
    assert name(converter_of(worker, "header", config)) == "StringConverter"
    old, new = stages_of(worker, config)
    assert (name(old.transformation), name(old.predicate)) == ("Filter", "RecordIsTombstone")
    expected = ("TimestampRouter", "TopicNameMatches")
    assert (name(new.transformation), name(new.predicate)) == expected


def test_the_workers_converters_have_the_versions_it_asks_for() -> None:
    """They count where the connector names none; a version alone is not enough for that."""
    worker = view(value_converter_plugin_version="1.0", header_converter_plugin_version="1.0")
    assert name(converter_of(worker, "key", {})) == "StringConverter"
    assert name(converter_of(worker, "value", {})) == "JsonConverter"
    assert name(converter_of(worker, "value", {"value.converter.plugin.version": "2.0"})) == (
        "JsonConverter"
    )
    assert name(converter_of(worker, "header", {})) == "StringConverter"


def test_versions_and_classes_that_are_not_there_are_refused() -> None:
    """The text lists those that are, or what the class should have been."""
    config = CONVERTERS | {"key.converter.plugin.version": "[3,]"}
    with pytest.raises(ConfigException, match=r"available versions: \[1\.0, 2\.0\]"):
        converter_of(view(), "key", config)
    with pytest.raises(ConfigException, match="Struct does not implement the Converter interface"):
        converter_of(view(), "key", {"key.converter": "pyconnect_api.Struct"})


def test_options_come_from_whichever_names_the_converter() -> None:
    """Those of connector and worker are not merged."""
    worker = view(value_converter="v.converter", value_converter_converter_encoding="utf-16")
    text = "é"
    for config, encoding in (({}, "utf-16"), (CONVERTERS, "utf-8")):
        written = converter_of(worker, "value", config).from_connect_data(
            "t", None, STRING_SCHEMA, text
        )
        assert written is not None
        assert written.decode(encoding) == text
