"""The plugins of a sandbox's workers: those of the request, else those of a worker's last start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import javaproperties

from pyconnect_sandbox.connect_worker import WORKER_FILE
from pyconnect_sandbox.errors import InvalidSandboxRequest


def plugin_path_of(entries: Sequence[Path]) -> str:
    """Return entries as a plugin path. Raises InvalidSandboxRequest for one that does not exist."""
    for entry in entries:
        if not entry.exists():
            raise InvalidSandboxRequest(
                f"{entry.absolute()} of the plugin path does not exist",
                hint="name directories of plugins, or jars",
            )
    return ",".join(str(entry.absolute()) for entry in entries)


def former_plugin_path(directory: Path) -> str:
    """Return the plugin path in the properties of a worker's last start, "" without one."""
    try:
        properties = javaproperties.loads((directory / WORKER_FILE).read_text())
    except FileNotFoundError:
        return ""
    return properties.get("plugin.path", "")


def plugin_properties(plugin_path: str, libs: str) -> Mapping[str, str]:
    """Return the properties of a worker. `libs`: Kafka's jars, which an agent runs plugins with."""
    if not plugin_path:
        return {}
    return {
        "plugin.path": plugin_path,
        # Workers of a sandbox otherwise look at service files alone, which not all plugins have.
        "plugin.discovery": "hybrid_warn",
        "agent.java.kafka.home": libs,
    }
