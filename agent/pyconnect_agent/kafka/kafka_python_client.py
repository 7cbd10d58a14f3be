"""Connection arguments of kafka-python's clients.

Layer: kafka. The settings were translated before (`core/kafka_python_config.py`); what needs files
or objects is made here: TLS contexts of PEM texts. What this client cannot use is refused.
"""

from __future__ import annotations

import ssl
import tempfile
from typing import Any

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.kafka_python_config import KafkaPythonConfig


def client_arguments(config: KafkaPythonConfig) -> dict[str, Any]:
    """Arguments of kafka-python's client; PEM texts become an SSL context.

    Raises WorkerConfigError for what this client cannot use.
    """
    arguments: dict[str, Any] = dict(config.arguments)
    if config.pkcs12 is not None:
        raise WorkerConfigError(
            f"ssl.keystore.location={config.pkcs12}: the group's client reads PEM only; convert it"
            " (openssl pkcs12 -in store.p12 -out store.pem -nodes) and set ssl.keystore.type=PEM"
        )
    if config.oauth:
        raise WorkerConfigError(
            "sasl.mechanism=OAUTHBEARER: the group's client cannot log in with it;"
            " use PLAIN, SCRAM or GSSAPI"
        )
    if config.pem_ca or config.pem_certificate:
        arguments["ssl_context"] = _ssl_context(config)
        arguments.setdefault("ssl_check_hostname", True)
    return arguments


def _ssl_context(config: KafkaPythonConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=config.pem_ca)
        context.check_hostname = config.arguments.get("ssl_check_hostname", True) is not False
        if config.pem_certificate:
            # The ssl module loads key pairs from files only.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(f"{config.pem_certificate}\n{config.pem_key or ''}\n")
                pair.flush()
                password = config.arguments.get("ssl_password")
                context.load_cert_chain(
                    pair.name, password=str(password) if password is not None else None
                )
    except (ssl.SSLError, ValueError) as exc:
        raise WorkerConfigError(f"ssl.*: the PEM texts cannot be used: {exc}") from exc
    return context
