"""Replaces the references in a worker's own properties, in a process of its own.

Layer: plugins. Corresponds to what ``AbstractConfig`` of Kafka does in a worker's constructor. A
config provider may be third-party code, so the worker process starts this module and gives it the
properties; they pass through pipes only, since what comes back holds secrets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TextIO

from pyconnect_agent.core.plugins.catalog import Catalog, PluginDesc
from pyconnect_agent.plugins.variable_resolver import VariableResolver

MODULE = "pyconnect_agent.plugins.resolve_worker"
"""This module; its `__name__` is another when it was started as a process."""


def to_input(properties: Mapping[str, str], catalog: Catalog) -> str:
    """Return what the process reads: properties, variables unresolved, and known plugins."""
    plugins = [plugin.to_json() for plugin in catalog.plugins]
    return json.dumps({"properties": dict(properties), "plugins": plugins})


def main(given: TextIO, result: TextIO) -> int:
    """Write the properties, resolved, as a last line of JSON; 2 and a text when that fails."""
    data = json.load(given)
    catalog = Catalog(tuple(PluginDesc.from_json(item) for item in data["plugins"]))
    try:
        with VariableResolver(data["properties"], catalog) as resolver:
            resolved = resolver.resolve_worker_properties(data["properties"])
    # A provider may raise anything; its text is all the operator gets to see.
    except Exception as error:  # noqa: BLE001  plugin code
        result.write(f"\n{' '.join(str(error).split()) or type(error).__name__}\n")
        return 2
    result.write("\n" + json.dumps(resolved) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin, sys.stdout))
