"""Replaces the references in a worker's own properties, in a separate process.

Layer: plugins. ``AbstractConfig`` of Kafka does the same in a worker's constructor. A config
provider may be third-party code, so the worker process starts this module and sends it the
properties; they pass through pipes only, because the result holds secrets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TextIO

from pyconnect_agent.core.plugins.catalog import Catalog, PluginDesc
from pyconnect_agent.plugins.variable_resolver import VariableResolver

MODULE = "pyconnect_agent.plugins.resolve_worker"
"""This module's name; `__name__` differs in the process that runs it."""


def to_input(properties: Mapping[str, str], catalog: Catalog) -> str:
    """Return the input of the process: unresolved properties, and known plugins."""
    plugins = [plugin.to_json() for plugin in catalog.plugins]
    return json.dumps({"properties": dict(properties), "plugins": plugins})


def main(given: TextIO, result: TextIO) -> int:
    """Write the resolved properties as a last line of JSON; return 2 after a failure."""
    data = json.load(given)
    catalog = Catalog(tuple(PluginDesc.from_json(item) for item in data["plugins"]))
    try:
        with VariableResolver(data["properties"], catalog) as resolver:
            resolved = resolver.resolve_worker_properties(data["properties"])
    # A provider may raise any exception; the operator sees its text only.
    except Exception as error:  # noqa: BLE001  plugin code
        result.write(f"\n{' '.join(str(error).split()) or type(error).__name__}\n")
        return 2
    result.write("\n" + json.dumps(resolved) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin, sys.stdout))
