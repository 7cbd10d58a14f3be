"""The plugin classes that validation needs, by name, and their names for user interfaces.

The implementation imports plugin code, so it lives in `pyconnect_agent.plugins` and runs in child
processes; tests pass a table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pyconnect_agent.core.plugin_catalog import PluginKind
from pyconnect_api.configdef import ClassResolver, invalid_value
from pyconnect_api.errors import ConfigException, ConnectException


@dataclass(frozen=True, slots=True)
class Recommended:
    """Recommends what ``choose`` returns for the values of all keys; None hides the key."""

    choose: Callable[[Mapping[str, object]], tuple[str, ...] | None]

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> tuple[str, ...]:
        del name
        return self.choose(parsed) or ()

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name
        return self.choose(parsed) is not None


@dataclass(frozen=True, slots=True)
class PluginClass:
    """A loaded plugin class under the name the REST API shows; also a value of type CLASS."""

    name: str
    python_class: type
    version: str | None = None

    def __str__(self) -> str:
        return self.name


class PluginSource(Protocol):
    """The plugins of this worker, loaded on demand.

    Every look-up raises LookupError when nothing answers to the name (PluginVersionNotFoundError
    when only the version does not fit) and ConnectException when the class cannot be loaded.
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
    """Return the resolver for values of type CLASS; a class that cannot be loaded is an error."""

    def resolve(name: str) -> PluginClass:
        try:
            return plugins.find(name)
        except ConnectException as error:
            raise ConfigException(str(error)) from error

    return resolve


@dataclass(frozen=True, slots=True)
class PluginClassValidator:
    """None, or a class that derives from ``base`` and can be constructed without arguments.

    Corresponds to ``ConcreteSubClassValidator`` and ``InstantiableClassValidator``.
    """

    base: type

    def ensure_valid(self, name: str, value: object) -> None:
        # Also None when the class could not be found, which is an error of its own already.
        if isinstance(value, PluginClass):
            ensure_concrete_subclass(self.base, value)
            new_instance(name, value)

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


def new_instance(name: str, value: PluginClass) -> object:
    """Return an instance; ``name`` is the key to blame in the ConfigException."""
    try:
        return value.python_class()
    # The constructor is the plugin's code, which may raise anything.
    except Exception as error:
        text = f": {error}" if str(error) else ""
        raise invalid_value(name, value.name, f"Could not instantiate class{text}") from error
