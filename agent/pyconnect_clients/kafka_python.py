"""Security as arguments of kafka-python's clients. Pure.

`connections.secured_arguments` adds the objects: the context of TLS and the provider of tokens.
"""

from __future__ import annotations

from pyconnect_clients.sasl import KerberosLogin, PasswordLogin
from pyconnect_clients.security import Security
from pyconnect_clients.token_login import TokenLogin


def kafka_python_arguments(security: Security) -> dict[str, object]:
    arguments: dict[str, object] = {"security_protocol": security.protocol.value}
    if security.sasl is None:
        return arguments
    arguments["sasl_mechanism"] = security.sasl.mechanism
    match security.sasl.login:
        case PasswordLogin(username=username, password=password):
            arguments |= {"sasl_plain_username": username, "sasl_plain_password": password}
        case KerberosLogin(service_name=service_name):
            if service_name is not None:
                arguments["sasl_kerberos_service_name"] = service_name
        case TokenLogin():
            pass
    return arguments
