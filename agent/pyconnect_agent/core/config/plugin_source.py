"""The plugins that validation needs: their look-up by name, and the settings that they add.

The implementation of `PluginSource` imports plugin code, so it lives in `pyconnect_agent.plugins`
and runs in child processes; tests use a table instead. `enriched` corresponds to
``ConnectorConfig.enrich`` and ``EnrichablePlugin`` of Kafka Connect 4.3.1; error texts are theirs.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pyconnect_agent.core.plugin_catalog import UNDEFINED, PluginKind, PluginVersionNotFoundError
from pyconnect_api.configdef import (
    ClassResolver,
    ConfigDef,
    ConfigType,
    Importance,
    LambdaValidator,
    Width,
    invalid_value,
    parse_type,
)
from pyconnect_api.errors import ConfigException, ConnectException
from pyconnect_api.transform import Predicate, Transformation


@dataclass(frozen=True, slots=True)
class Recommended:
    """A recommender: ``choose`` returns the values for a key; None hides the key."""

    choose: Callable[[Mapping[str, object]], tuple[str, ...] | None]

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> tuple[str, ...]:
        del name
        return self.choose(parsed) or ()

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name
        return self.choose(parsed) is not None


@dataclass(frozen=True, slots=True)
class PluginClass:
    """A loaded plugin class with its name in the REST API; also a value of type CLASS."""

    name: str
    python_class: type
    version: str | None = None

    def __str__(self) -> str:
        return self.name


class PluginSource(Protocol):
    """The plugins of this worker, loaded on demand.

    Every look-up raises LookupError for an unknown name (PluginVersionNotFoundError when only the
    version does not fit) and ConnectException when the class cannot be loaded.
    """

    def connector(self, name: str, version_range: str | None = None) -> PluginClass:
        """Return a connector class; the error text is Connect's."""
        ...

    def plugin(
        self, name: str, kind: PluginKind, version_range: str | None = None
    ) -> PluginClass: ...

    def find(self, name: str) -> PluginClass: ...

    def class_names(self, kind: PluginKind) -> tuple[str, ...]:
        """Return the names of all plugins of one kind, sorted; loads nothing."""
        ...

    def versions(self, name: str, kind: PluginKind) -> tuple[str, ...]:
        """Return the versions of a plugin, latest last; empty when unknown; loads nothing."""
        ...


def class_resolver(plugins: PluginSource) -> ClassResolver:
    """Return the resolver for values of type CLASS; it reports a class that cannot be loaded."""

    def resolve(name: str) -> PluginClass:
        try:
            return plugins.find(name)
        except ConnectException as error:
            raise ConfigException(str(error)) from error

    return resolve


@dataclass(frozen=True, slots=True)
class PluginClassValidator:
    """A validator: None, or a class derived from ``base`` that can be made without arguments.

    Corresponds to ``ConcreteSubClassValidator`` and ``InstantiableClassValidator``.
    """

    base: type

    def ensure_valid(self, name: str, value: object) -> None:
        # A class that could not be found is None here too; its error is reported already.
        if isinstance(value, PluginClass):
            ensure_concrete_subclass(self.base, value)
            try:
                value.python_class()
            # The constructor is the plugin's code, which may raise anything.
            except Exception as error:
                reason = f"Could not instantiate class{f': {error}' if str(error) else ''}"
                raise invalid_value(name, value.name, reason) from error

    def __str__(self) -> str:
        return (
            f"A concrete subclass of {self.base.__name__}, "
            "A class with a public, no-argument constructor"
        )


def ensure_concrete_subclass(base: type, value: PluginClass) -> None:
    """Raise ConfigException unless ``value`` can serve as a ``base``."""
    if not issubclass(value.python_class, base):
        raise ConfigException(
            f"Class class {value.name} does not implement the {base.__name__} interface"
        )
    if inspect.isabstract(value.python_class):
        raise ConfigException("This class is abstract and cannot be created.")


PREDICATE_KEY, NEGATE_KEY, VERSION_KEY = "predicate", "negate", "plugin.version"
_IMPLICIT_KEYS = frozenset({PREDICATE_KEY, NEGATE_KEY})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    """The differences between transformations and predicates."""

    key: str
    group: str
    base: type
    kind: PluginKind

    @property
    def name(self) -> str:
        return self.base.__name__


_TRANSFORMATIONS = _Role(
    key="transforms", group="Transforms", base=Transformation, kind=PluginKind.TRANSFORMATION
)
_PREDICATES = _Role(key="predicates", group="Predicates", base=Predicate, kind=PluginKind.PREDICATE)


def enriched(
    definition: ConfigDef, config: Mapping[str, str | None], plugins: PluginSource
) -> ConfigDef:
    """Return ``definition`` with the keys of every transformation and predicate in ``config``.

    A missing or wrong class adds only its ``type`` key, whose validator reports the error.
    """
    result = ConfigDef(definition)
    for role in (_TRANSFORMATIONS, _PREDICATES):
        aliases = parse_type(role.key, config.get(role.key), ConfigType.LIST)
        assert aliases is None or isinstance(aliases, list)
        for alias in dict.fromkeys(aliases or ()):
            _add(result, role, alias, config, plugins)
    return result


def _add(
    result: ConfigDef,
    role: _Role,
    alias: str,
    config: Mapping[str, str | None],
    plugins: PluginSource,
) -> None:
    prefix, group = f"{role.key}.{alias}.", f"{role.group}: {alias}"
    own, version = _own_definition(role, prefix, config, plugins)
    result.define(
        f"{prefix}type",
        ConfigType.CLASS,
        validator=LambdaValidator(
            _type_check(role, prefix, config), f"valid configs for {alias} {role.name.lower()}"
        ),
        importance=Importance.HIGH,
        documentation=f"Class of the {role.name.lower()} '{alias}'.",
        group=group,
        order_in_group=0,
        width=Width.LONG,
        display_name=f"{role.name} type for {alias}",
        recommender=Recommended(lambda _: plugins.class_names(role.kind)),
    )
    result.define(
        f"{prefix}{VERSION_KEY}",
        ConfigType.STRING,
        default=version,
        validator=LambdaValidator(_version_check(role, prefix, config, plugins), "version range"),
        importance=Importance.HIGH,
        documentation=f"Version or version range of the {role.name.lower()} '{alias}'.",
        group=group,
        order_in_group=1,
        width=Width.LONG,
        display_name=f"{role.name} version for {alias}",
        recommender=Recommended(
            lambda parsed: (
                ()
                if (chosen := parsed.get(f"{prefix}type")) is None
                else plugins.versions(str(chosen), role.kind)
            )
        ),
    )
    if own is not None:
        result.embed(prefix, group, 2, own)


def _own_definition(
    role: _Role, prefix: str, config: Mapping[str, str | None], plugins: PluginSource
) -> tuple[ConfigDef | None, str | None]:
    """Return the plugin's own settings and its version; None and None for a class with an error."""
    try:
        found = parse_type(
            f"{prefix}type", config.get(f"{prefix}type"), ConfigType.CLASS, class_resolver(plugins)
        )
        plugin = _plugin_definition(role, f"{prefix}type", found)
    except ConfigException:
        return None, None
    own = ConfigDef()
    if role is _TRANSFORMATIONS:
        own.define(
            PREDICATE_KEY,
            ConfigType.STRING,
            default=None,
            documentation="Alias of the predicate that says which records are transformed.",
        )
        own.define(
            NEGATE_KEY,
            ConfigType.BOOLEAN,
            default=False,
            documentation="Whether to transform the records the predicate does not hold for.",
        )
    for name, key in plugin.keys.items():
        # A key of the framework hides a key of the same name in the transformation.
        if role is _PREDICATES or name not in _IMPLICIT_KEYS:
            own.define_key(key)
    assert isinstance(found, PluginClass)
    return own, found.version or UNDEFINED


def _plugin_definition(role: _Role, key: str, value: object) -> ConfigDef:
    """Return the plugin's definition; raises ConfigException, or ConnectException for None."""
    if not isinstance(value, PluginClass):
        raise invalid_value(key, None, f"Not a {role.name}")
    ensure_concrete_subclass(role.base, value)
    try:
        definition = value.python_class().config()
    # Both calls are the plugin's code, which may raise anything.
    except Exception as error:
        raise invalid_value(
            key, f"class {value.name}", f"Error getting config definition from {role.name}: {error}"
        ) from error
    if not isinstance(definition, ConfigDef):
        raise ConnectException(f"{value.name}.config() must return a ConfigDef that is not null.")
    return definition


def _type_check(
    role: _Role, prefix: str, config: Mapping[str, str | None]
) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        negate, predicate = f"{prefix}{NEGATE_KEY}", f"{prefix}{PREDICATE_KEY}"
        if role is _TRANSFORMATIONS and negate in config and predicate not in config:
            raise ConfigException(
                f"Config '{negate}' was provided but there is no config '{predicate}' "
                "defining a predicate to be negated."
            )
        if value is not None:
            _plugin_definition(role, name, value)

    return check


def _version_check(
    role: _Role, prefix: str, config: Mapping[str, str | None], plugins: PluginSource
) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        class_name = config.get(f"{prefix}type")
        if config.get(name) is None or class_name is None:
            return
        try:
            plugins.plugin(class_name, role.kind, str(value))
        except PluginVersionNotFoundError as error:
            raise ConfigException(str(error)) from error
        except (LookupError, ConnectException):
            return  # The key `type` reports the error.

    return check
