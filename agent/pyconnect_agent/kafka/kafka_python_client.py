"""Connection arguments of kafka-python's clients.

Layer: kafka. The settings were translated before (`core/clients/kafka_python.py`); this module adds
arguments that need files or objects. It refuses settings that this client cannot use.
"""

from __future__ import annotations

from typing import Any

from pyconnect_agent.core.clients.kafka_python import KafkaPythonConfig
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_clients.connections import secured_arguments
from pyconnect_clients.errors import ClientPropertyError


def client_arguments(config: KafkaPythonConfig) -> dict[str, Any]:
    """Return all arguments; raises WorkerConfigError for settings that this client cannot use."""
    servers = config.arguments.get("bootstrap_servers")
    bootstrap = ",".join(servers) if isinstance(servers, list) else ""
    try:
        return {**config.arguments, **secured_arguments(config.security, bootstrap)}
    except ClientPropertyError as exc:
        raise WorkerConfigError(f"Invalid client configuration: {exc}") from exc
