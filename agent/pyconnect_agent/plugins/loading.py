"""Import plugin classes. Runs in child processes only.

Layer: plugins. Kafka Connect isolates plugins by class loaders. Here each child process imports
only from the directories of the plugins that it uses, the connector's own first.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType

from pyconnect_agent.core.plugins.catalog import PluginDesc, PluginKind
from pyconnect_agent.plugins.builtin_table import EXTRAS
from pyconnect_api.config_provider import ConfigProvider
from pyconnect_api.connector import Connector, SinkConnector, SourceConnector
from pyconnect_api.converter import Converter, HeaderConverter
from pyconnect_api.errors import ConnectException
from pyconnect_api.predicate import Predicate
from pyconnect_api.transform import Transformation
from pyconnect_clients.installation import install_command

BASE_CLASSES: dict[PluginKind, type] = {
    PluginKind.SINK: SinkConnector,
    PluginKind.SOURCE: SourceConnector,
    PluginKind.CONNECTOR: Connector,
    PluginKind.CONVERTER: Converter,
    PluginKind.HEADER_CONVERTER: HeaderConverter,
    PluginKind.TRANSFORMATION: Transformation,
    PluginKind.PREDICATE: Predicate,
    PluginKind.CONFIG_PROVIDER: ConfigProvider,
}


def load(plugin: PluginDesc) -> type:
    """Return the class of ``plugin``; its directory joins ``sys.path`` for good.

    Raises ConnectException if it cannot be imported or is not of its kind.
    """
    if plugin.search_path is not None:
        activate(plugin.search_path)
    loaded = import_class(plugin.python_path)
    base = BASE_CLASSES.get(plugin.kind)
    if base is not None and not issubclass(loaded, base):
        raise ConnectException(
            f"Class {plugin.class_name} does not implement the {base.__name__} interface"
        )
    return loaded


def activate(directory: str) -> None:
    """Let this process import from a plugin directory.

    The first activated directory is the connector's and is searched before all others; later ones
    come after it and before the worker's own libraries.
    """
    if directory in sys.path:
        return
    sys.path.insert(len(_activated), directory)
    _activated.append(directory)
    importlib.invalidate_caches()


_activated: list[str] = []
"""Owned by :func:`activate`; a process only ever adds to it."""


NEEDS_EXTRA = "install the extra `"


def import_class(path: str) -> type:
    """Return the class of ``module:Class`` or ``module.Class``; raises ConnectException.

    Nested classes are named ``module:Outer.Inner``.
    """
    module_name, colon, class_name = path.partition(":")
    if not colon:
        module_name, _, class_name = path.rpartition(".")
    found: object = import_plugin_module(module_name)
    for part in class_name.split("."):
        found = getattr(found, part, None)
    if not inspect.isclass(found):
        raise ConnectException(f"There is no class {path}")
    return found


def import_plugin_module(name: str) -> ModuleType:
    """Return the module; raises ConnectException with the cause when importing it fails."""
    try:
        return importlib.import_module(name)
    # The import runs the plugin's code, which may raise any exception.
    except Exception as error:
        extra = EXTRAS.get(name) or EXTRAS.get(name.rpartition(".")[0])
        if extra is not None and isinstance(error, ModuleNotFoundError):
            raise ConnectException(
                f"{name} needs {error.name}, which is not installed; "
                f"{NEEDS_EXTRA}{extra}`: {install_command(extra)}"
            ) from error
        raise ConnectException(
            f"Failed to load plugin module {name} or one of its dependencies: "
            f"{type(error).__name__}: {error}"
        ) from error


def instantiate(plugin_class: type) -> object:
    """Return a new instance; raises ConnectException when the class cannot be constructed."""
    try:
        return plugin_class()
    # The constructor is the plugin's code, which may raise any exception.
    except Exception as error:
        raise ConnectException(
            f"Could not construct {plugin_class.__module__}.{plugin_class.__qualname__}: "
            f"{type(error).__name__}: {error}"
        ) from error
