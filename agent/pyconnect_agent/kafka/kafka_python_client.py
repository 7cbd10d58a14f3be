"""Connection arguments of kafka-python's clients.

Layer: kafka. The settings were translated before (`core/kafka_python_config.py`); what needs files
or objects is made here. What this client cannot use is refused.
"""

from __future__ import annotations

from typing import Any

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.kafka_python_config import KafkaPythonConfig
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.kafka_python import kafka_python_arguments
from pyconnect_clients.tls import client_context


def client_arguments(config: KafkaPythonConfig) -> dict[str, Any]:
    """Return all arguments; raises WorkerConfigError for what this client cannot use."""
    security = config.security
    try:
        arguments = {**config.arguments, **kafka_python_arguments(security)}
        if security.tls is not None:
            arguments["ssl_context"] = client_context(security.tls)
    except ClientPropertyError as exc:
        raise WorkerConfigError(f"Invalid client configuration: {exc}") from exc
    return arguments
