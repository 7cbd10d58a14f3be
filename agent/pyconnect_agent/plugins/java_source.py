"""Java plugins for validation: stand-in classes whose settings come from a Java process.

Implements `core.config.plugin_source.PluginSource` for Java connectors. A stand-in is a Python
class of the same kind as the Java class; it has settings, can validate, and does nothing else.
Types, defaults and texts of settings are copied when the definition is made. Validators and
recommenders ask Java: a value goes there as text, and Java parses it again by the type of the key.
Runs in child processes only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pyconnect_agent.core.config.plugin_source import PluginClass
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind
from pyconnect_agent.java_processes.jar_scan import API_CLASSES
from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.plugins.class_source import CROSSING, CatalogPluginSource, is_only
from pyconnect_agent.plugins.java_classes import class_of, java_plugin
from pyconnect_agent.plugins.loading import BASE_CLASSES
from pyconnect_api.configdef import (
    NO_DEFAULT,
    Config,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Importance,
    Password,
    Width,
    to_text,
)
from pyconnect_api.connector import (
    Connector,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
)
from pyconnect_api.errors import ConnectException


class Ask(Protocol):
    """Asks the Java process about one class."""

    def __call__(self, method: str, **arguments: object) -> Any:  # whatever JSON can hold
        """Return the answer. Raises the plugin's exception as a ConnectException."""
        ...


def definition_of(keys: Sequence[Mapping[str, Any]], ask: Ask) -> ConfigDef:
    """Return the definition that Java described."""
    definition = ConfigDef()
    for key in keys:
        name = str(key["name"])
        config_type = ConfigType(key["type"])
        definition.define_key(
            ConfigKey(
                name=name,
                type=config_type,
                default=NO_DEFAULT if key["required"] else key["default"],
                validator=_JavaValidator(name, ask) if key["validated"] else None,
                importance=Importance(key["importance"]),
                documentation=key["documentation"],
                group=key["group"],
                order_in_group=key["order"],
                width=Width(key["width"]),
                display_name=key["display"],
                dependents=tuple(key["dependents"]),
                recommender=_JavaRecommender(name, ask) if key["recommended"] else None,
                internal=key["internal"],
            )
        )
    return definition


@dataclass(frozen=True, slots=True)
class _JavaValidator:
    """`key`: the name in Java; an embedded key is checked by this name too."""

    key: str
    ask: Ask

    def ensure_valid(self, name: str, value: object) -> None:
        """Raise ConfigException with Java's text."""
        del name
        self.ask("check", key=self.key, value=_plain_text(value))

    def __str__(self) -> str:
        return "a validator of the plugin"


@dataclass(frozen=True, slots=True)
class _JavaRecommender:
    key: str
    ask: Ask

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        del name
        values = self._answer(parsed)["values"]
        assert isinstance(values, list)
        return values

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name
        return bool(self._answer(parsed)["visible"])

    def _answer(self, parsed: Mapping[str, object]) -> Mapping[str, object]:
        texts = {name: _plain_text(value) for name, value in parsed.items()}
        answer: Mapping[str, object] = self.ask("recommend", key=self.key, parsed=texts)
        return answer


def _plain_text(value: object) -> str | None:
    """Return a text that Java parses to the same value, also for a secret."""
    if value is None:
        return None
    if isinstance(value, Password):
        return value.value
    if isinstance(value, list):
        return ",".join(map(to_text, value))
    return to_text(value)


RawConfig: TypeAlias = Mapping[str, str | None]


class Questions(Protocol):
    """A Java process that answers questions about classes."""

    def ask(self, method: str, **arguments: object) -> Any:  # whatever JSON can hold
        """Return the answer. Raises ConnectException, or the counterpart of Java's exception."""
        ...


class JavaPluginSource:
    """Java plugins, for one connector or for the description of one plugin."""

    def __init__(self, catalog: Catalog, questions: Questions, jars: tuple[str, ...] = ()) -> None:
        """`catalog` has all plugins: a name of a Python class is refused with the reason.

        `jars`: where unlisted classes are, before a connector is looked up.
        """
        self._catalog = catalog
        self._python = CatalogPluginSource(catalog)
        self._questions = questions
        self._classes: dict[JavaClass, type] = {}
        self._connector_jars = jars

    def connector(self, name: str, version_range: str | None = None) -> PluginClass:
        """Return a connector class; unlisted classes are then looked up in its jars."""
        found = self._catalog.java.connector(name, version_range=version_range)
        return self.plugin(found.class_name, found.kind, version_range)

    def plugin(self, name: str, kind: PluginKind, version_range: str | None = None) -> PluginClass:
        """Return a class of one kind; ConnectException if only Python has it."""
        if is_only(self._catalog, name, kind, java=False):
            return self._python.plugin(name, kind, version_range)
        found = java_plugin(
            self._catalog, name, kind, version_range=version_range, jars=self._connector_jars
        )
        if kind.is_connector:
            self._connector_jars = class_of(found).jars
        return self._loaded(found)

    def find(self, name: str) -> PluginClass:
        """Return a class of any kind, listed or not."""
        if is_only(self._catalog, name, *CROSSING, java=False):
            return self._python.find(name)
        try:
            return self._loaded(java_plugin(self._catalog, name, jars=self._connector_jars))
        except LookupError:
            # Raises LookupError when there is none.
            return PluginClass(name, self._class(JavaClass(name, self._connector_jars)))

    def class_names(self, kind: PluginKind) -> tuple[str, ...]:
        """Return the names of all Java plugins of one kind, sorted."""
        return tuple(dict.fromkeys(item.class_name for item in self._catalog.java.of_kind(kind)))

    def versions(self, name: str, kind: PluginKind) -> tuple[str, ...]:
        """Return the listed versions of a plugin, latest last."""
        if kind is PluginKind.CONNECTOR:
            return self._catalog.java.versions(name, PluginKind.SOURCE, PluginKind.SINK)
        if is_only(self._catalog, name, kind, java=False):
            return self._python.versions(name, kind)
        return self._catalog.java.versions(name, kind)

    def _loaded(self, plugin: PluginDesc) -> PluginClass:
        """Return the class of a listed plugin. Raises ConnectException if its jars are gone."""
        try:
            made = self._class(class_of(plugin))
        except LookupError as error:
            place = plugin.search_path or "Kafka's own jars"
            raise ConnectException(
                f"Class {plugin.class_name} is no longer in {place}, where the worker found it at "
                "its start: put its jars back, or restart the worker."
            ) from error
        return PluginClass(plugin.class_name, made, plugin.version)

    def _class(self, java_class: JavaClass) -> type:
        made = self._classes.get(java_class)
        if made is None:
            made = self._classes[java_class] = _stand_in(java_class, self._questions)
        return made


def _stand_in(java_class: JavaClass, questions: Questions) -> type:
    """Return a stand-in for a Java class, with all of its kinds.

    Raises LookupError if its jars do not hold it.
    """
    plugin = java_class.to_json()

    def ask(method: str, **arguments: object) -> Any:
        return questions.ask(method, plugin=plugin, **arguments)

    loaded = ask("load", bases=[name for name, kind in API_CLASSES.items() if kind in BASE_CLASSES])
    if loaded is None:
        raise LookupError(java_class.name)
    bases = tuple(BASE_CLASSES[API_CLASSES[name]] for name in loaded["bases"])
    own = _JavaConnector if any(issubclass(base, Connector) for base in bases) else _JavaPlugin
    members = {"ask": staticmethod(ask)}
    name = java_class.name.rpartition(".")[2]
    made: Any = type(name, (own, *bases), members)
    if not loaded["abstract"]:
        # Only tasks call the missing methods, and tasks never get this class.
        made.__abstractmethods__ = frozenset()
    assert isinstance(made, type)
    return made


class _JavaPlugin:
    """The part of any plugin that validation needs."""

    ask: Any
    """A function; set by `_stand_in`."""

    def __init__(self) -> None:
        self.ask("construct")

    def config(self) -> ConfigDef | None:
        keys = self.ask("config")
        return None if keys is None else definition_of(keys, self.ask)


class _JavaConnector(_JavaPlugin):
    """A connector also validates whole configs."""

    def validate(self, config: RawConfig) -> Config | None:
        found = self.ask("validate", config=dict(config))
        if found is None:
            return None
        return Config(
            [
                ConfigValue(
                    name=value["name"],
                    value=value["value"],
                    recommended_values=value["recommended"],
                    error_messages=value["errors"],
                    visible=value["visible"],
                )
                for value in found
            ]
        )

    def exactly_once_support(self, config: RawConfig) -> ExactlyOnceSupport | None:
        answer = self.ask("exactlyOnceSupport", config=dict(config))
        return None if answer is None else ExactlyOnceSupport[answer]

    def can_define_transaction_boundaries(
        self, config: RawConfig
    ) -> ConnectorTransactionBoundaries | None:
        answer = self.ask("canDefineTransactionBoundaries", config=dict(config))
        return None if answer is None else ConnectorTransactionBoundaries[answer]
