"""Plugins by the worker's and the connector's config, and checks of the values that they return."""

from collections import UserDict, deque
from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest

from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from pyconnect_agent.tasks.plugins import converter_of, plain_task_configs, plain_version, stages_of
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import STRING_SCHEMA, ConfigException, ConnectException
from tests.support.agents.worker_properties import PROPERTIES
from tests.support.cases import cases

OLD_AND_NEW = {
    PluginKind.CONVERTER: ("converters.json:JsonConverter", "converters.base:StringConverter"),
    PluginKind.HEADER_CONVERTER: (
        "converters.base:StringConverter",
        "converters.base:SimpleHeaderConverter",
    ),
    PluginKind.TRANSFORMATION: ("transforms.routers:Filter", "transforms.routers:TimestampRouter"),
    PluginKind.PREDICATE: ("predicates:RecordIsTombstone", "predicates:TopicNameMatches"),
}
"""Versions 1.0 and 2.0 of a plugin `v.<kind>`, with different classes."""
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
    """Each converter, transformation and predicate has the configured version, else the latest."""
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
    """The worker's converter keeps its version when the connector's config has only a version."""
    worker = view(value_converter_plugin_version="1.0", header_converter_plugin_version="1.0")
    assert name(converter_of(worker, "key", {})) == "StringConverter"
    assert name(converter_of(worker, "value", {})) == "JsonConverter"
    assert name(converter_of(worker, "value", {"value.converter.plugin.version": "2.0"})) == (
        "JsonConverter"
    )
    assert name(converter_of(worker, "header", {})) == "StringConverter"


def test_versions_and_classes_that_are_not_there_are_refused() -> None:
    """The error lists the available versions, or the type that the class should implement."""
    config = CONVERTERS | {"key.converter.plugin.version": "[3,]"}
    with pytest.raises(ConfigException, match=r"available versions: \[1\.0, 2\.0\]"):
        converter_of(view(), "key", config)
    with pytest.raises(ConfigException, match="Struct does not implement the Converter interface"):
        converter_of(view(), "key", {"key.converter": "pyconnect_api.Struct"})


def test_options_come_from_whichever_names_the_converter() -> None:
    """Options of connector and worker are not merged."""
    worker = view(value_converter="v.converter", value_converter_converter_encoding="utf-16")
    text = "é"
    for config, encoding in (({}, "utf-16"), (CONVERTERS, "utf-8")):
        written = converter_of(worker, "value", config).from_connect_data(
            "t", None, STRING_SCHEMA, text
        )
        assert written is not None
        assert written.decode(encoding) == text


class Mode(StrEnum):
    FAST = "fast"


class Level(IntEnum):
    LOW = 1


class Quoted(str):
    """A text that `str` shows in another form, like numpy's."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"np.{self!r}"


def test_mappings_and_texts_of_any_class_become_plain() -> None:
    """Task configs may be mappings and texts of any class, with null values as in Java."""
    found = deque(
        [MappingProxyType({Mode.FAST: Quoted("x")}), UserDict({"a": None}), {Quoted("k"): "ä"}]
    )
    configs = plain_task_configs(found, "Source")
    assert configs == ({"fast": "x"}, {"a": None}, {"k": "ä"})
    kinds = {type(text) for config in configs for pair in config.items() for text in pair}
    assert kinds == {str, type(None)}
    assert {type(config) for config in configs} == {dict}
    assert plain_task_configs((), "Source") == ()


@cases(
    "found, text",
    (None, r"Source\.task_configs\(\) returned NoneType, expected a list of mappings"),
    ({"a": "b"}, "returned dict, expected a list of mappings"),
    ("ab", "returned str, expected a list"),
    ((config for config in ()), "returned generator, expected a list"),
    ([{}, "x"], r"Source\.task_configs\(\)\[1\] is of type str, expected a mapping"),
    ([{1: "x"}], r"\[0\]: the key 1 is of type int, expected str"),
    ([{None: "x"}], r"\[0\]: the key None is of type NoneType, expected str"),
    ([{b"k": "x"}], r"\[0\]: the key b'k' is of type bytes, expected str"),
    ([{}, {"port": 5432}], r"\[1\]: the value of 'port' is of type int, expected str"),
    ([{"low": Level.LOW}], r"the value of 'low' is of type .*test_plugins\.Level"),
    ([{"list": ["a"]}], "the value of 'list' is of type list, expected str"),
    ([{"file": "caf\udce9"}], "the value of 'file' is not valid Unicode"),
)
def test_unfit_values_are_refused_with_key_and_type(found: object, text: str) -> None:
    """A task config with a value other than a text is refused, as no worker could read it."""
    with pytest.raises(ConnectException, match=text):
        plain_task_configs(found, "Source")


def test_a_refusal_does_not_quote_values() -> None:
    """An error about a value does not show it, as it may be a secret."""
    with pytest.raises(ConnectException) as raised:
        plain_task_configs([{"password": b"sesame"}, {"password": "sesame\ud800"}], "Source")
    assert "sesame" not in str(raised.value)


def test_a_version_is_a_text_or_none() -> None:
    """A version that is neither a text nor None raises, such as a package's version object."""
    assert plain_version(None, "task") is None
    assert type(plain_version(Mode.FAST, "task")) is str
    with pytest.raises(ConnectException, match=r"version\(\) of the task is of type tuple"):
        plain_version((1, 2), "task")
