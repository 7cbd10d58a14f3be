"""Plugin classes by name, of Python and of Java. Used in child processes only.

Kafka: the look-up half of `Plugins`. Both sources implement
`core.config.plugin_source.PluginSource`. Python classes are imported on demand. For validation a
Java class has a stand-in: a Python class of the same kind, which only has settings and can
validate. Types, defaults and texts of settings are copied when the definition is made. Validators
and recommenders ask Java: a value goes there as text, and Java parses it again by the type of the
key.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from pyconnect_agent.core.config.plugin_source import PluginClass, PluginSource
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind, PluginNotFoundError
from pyconnect_agent.java_processes.jar_scan import API_CLASSES
from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.plugins.java_classes import class_of, java_plugin, refuse_other_side
from pyconnect_agent.plugins.loading import BASE_CLASSES, import_class, load
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
from pyconnect_api.connector import Connector, ConnectorTransactionBoundaries, ExactlyOnceSupport
from pyconnect_api.errors import ConnectException

CROSSING = frozenset({PluginKind.TRANSFORMATION, PluginKind.PREDICATE})
"""Kinds of plugins that may be in the other language than the connector."""


class CatalogPluginSource:
    """Loads the Python plugins that the catalog lists; unlisted classes work by their full path.

    `java` returns the Java plugins, for transformations and predicates that only Java has; with
    `in_jars` also for classes that are in no list. Any other name that only a Java class has raises
    ConnectException, as do these names without `java`.
    """

    def __init__(
        self,
        catalog: Catalog,
        java: Callable[[], PluginSource] | None = None,
        *,
        in_jars: bool = False,
    ) -> None:
        self.catalog = catalog
        self._in_jars = in_jars
        self._python = catalog.python
        self._java = java

    def connector(self, name: str, version_range: str | None = None) -> PluginClass:
        """Return a connector class. Raises PluginNotFoundError with Connect's text."""
        try:
            desc = self.catalog.connector(name, version_range=version_range)
        except PluginNotFoundError:
            unlisted = _unlisted(name)
            if unlisted is None or not issubclass(unlisted.python_class, Connector):
                raise
            return unlisted
        if desc.is_java:
            raise ConnectException(f"{desc.class_name} is a Java connector")
        return _loaded(desc)

    def plugin(self, name: str, kind: PluginKind, version_range: str | None = None) -> PluginClass:
        if self._java is not None and is_only(self.catalog, name, kind, java=True):
            return self._java().plugin(name, kind, version_range)
        try:
            return _loaded(self._python.plugin(name, kind, version_range=version_range))
        except PluginNotFoundError:
            unlisted = None if self._python.find(name) else self._elsewhere(name, kind)
            if unlisted is None:
                raise
            return unlisted

    def find(self, name: str) -> PluginClass:
        if self._java is not None and is_only(self.catalog, name, *CROSSING, java=True):
            return self._java().find(name)
        try:
            return _loaded(self._python.plugin(name))
        except PluginNotFoundError:
            unlisted = self._elsewhere(name)
            if unlisted is None and self._java is not None and self._in_jars:
                return self._java().find(name)
            if unlisted is None:
                raise
            return unlisted

    def _elsewhere(self, name: str, *kinds: PluginKind) -> PluginClass | None:
        """Return an unlisted Python class; refuse a name that only Java has."""
        found = _unlisted(name)
        if found is None:
            refuse_other_side(self.catalog.java, name, *kinds, wanted="Python", found="Java")
        return found

    def class_names(self, kind: PluginKind) -> tuple[str, ...]:
        """Return the names of all plugins of one kind, sorted."""
        return tuple(dict.fromkeys(desc.class_name for desc in self._python.of_kind(kind)))

    def versions(self, name: str, kind: PluginKind) -> tuple[str, ...]:
        """Return the listed versions of a plugin, latest last."""
        if kind is PluginKind.CONNECTOR:
            return self._python.versions(
                name, PluginKind.CONNECTOR, PluginKind.SOURCE, PluginKind.SINK
            )
        return self._python.versions(name, kind)


def is_only(catalog: Catalog, name: str, *kinds: PluginKind, java: bool) -> bool:
    """Return whether all plugins of a name are of one language, and of kinds that may cross."""
    found = catalog.find(name)
    return bool(found) and all(
        plugin.is_java is java and plugin.kind in CROSSING.intersection(kinds) for plugin in found
    )


def _loaded(desc: PluginDesc) -> PluginClass:
    return PluginClass(desc.class_name, load(desc), desc.version)


def _unlisted(name: str) -> PluginClass | None:
    """Return the class of a full Python path; None when there is no such module or class.

    Raises ConnectException when the module exists and fails to be imported.
    """
    module = name.partition(":")[0] if ":" in name else name.rpartition(".")[0]
    if not module:
        return None
    try:
        loaded = import_class(name)
    except ConnectException as error:
        missing = error.__cause__
        is_absent = isinstance(missing, ModuleNotFoundError) and f"{module}.".startswith(
            f"{missing.name or ''}."
        )
        if missing is None or is_absent:
            return None
        raise
    version = None
    if issubclass(loaded, Connector) and not inspect.isabstract(loaded):
        # Both calls run the plugin's code; a plugin without a version is still usable.
        with suppress(Exception):
            version = loaded().version()
    return PluginClass(f"{loaded.__module__}.{loaded.__qualname__}", loaded, version)


Ask: TypeAlias = Callable[..., Any]
"""Asks the Java process about one class, by method and arguments. Returns a value of JSON, and
raises the plugin's exception as a ConnectException.
"""


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
    """A validator that asks Java; `key` is its name in Java, also for an embedded key."""

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

    def ask(self, method: str, **arguments: object) -> Any:  # any value of JSON
        """Return the answer. Raises ConnectException, or the counterpart of Java's exception."""
        ...


class JavaPluginSource:
    """Java plugins, for one connector or for the description of one plugin."""

    def __init__(self, catalog: Catalog, questions: Questions, jars: tuple[str, ...] = ()) -> None:
        """Keep the `catalog` of all plugins: a Python class's name is refused with the reason.

        `jars`: where unlisted classes are, before a connector is looked up.
        """
        self._catalog = catalog
        self._python = CatalogPluginSource(catalog)
        self._questions = questions
        self._classes: dict[JavaClass, type] = {}
        self._connector_jars = jars

    def connector(self, name: str, version_range: str | None = None) -> PluginClass:
        """Return a connector class; later look-ups of unlisted classes search its jars."""
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
            # Raises LookupError when there is no such class.
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
        """Return a stand-in for a Java class, with all of its kinds.

        Raises LookupError if its jars do not hold it.
        """
        if java_class in self._classes:
            return self._classes[java_class]
        ask = partial(self._questions.ask, plugin=java_class.to_json())
        wanted = [name for name, kind in API_CLASSES.items() if kind in BASE_CLASSES]
        loaded = ask("load", bases=wanted)
        if loaded is None:
            raise LookupError(java_class.name)
        bases = tuple(BASE_CLASSES[API_CLASSES[name]] for name in loaded["bases"])
        own = _JavaConnector if any(issubclass(base, Connector) for base in bases) else _JavaPlugin
        name = java_class.name.rpartition(".")[2]
        made: Any = type(name, (own, *bases), {"ask": staticmethod(ask)})
        if not loaded["abstract"]:
            # Only tasks call the missing methods, and tasks never get this class.
            made.__abstractmethods__ = frozenset()
        assert isinstance(made, type)
        self._classes[java_class] = made
        return made


class _JavaPlugin:
    """The part of any plugin that validation needs."""

    ask: Any
    """The function that asks Java, set where the class is made."""

    def __init__(self) -> None:
        self.ask("construct")

    def config(self) -> ConfigDef | None:
        keys = self.ask("config")
        return None if keys is None else definition_of(keys, self.ask)


class _JavaConnector(_JavaPlugin):
    """A connector, which also validates whole configs."""

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
