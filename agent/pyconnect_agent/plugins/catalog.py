"""The catalog as the worker process gets it: from metadata, without importing plugin code.

Layer: plugins. The values live in `pyconnect_agent.core.plugins.catalog`, where the herder may use
them too.
"""

from pyconnect_agent.core.plugins.catalog import (
    Catalog,
    PluginDesc,
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_agent.plugins.discovery import installed_catalog

__all__ = [
    "Catalog",
    "PluginDesc",
    "PluginKind",
    "PluginNotFoundError",
    "PluginVersionNotFoundError",
    "installed_catalog",
]
