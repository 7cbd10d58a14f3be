"""Security as arguments of kafka-python's clients. Pure.

TLS is one object for them, which `tls.client_context` makes of the same value.
"""

from __future__ import annotations

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.sasl import KerberosLogin, PasswordLogin
from pyconnect_clients.security import Security


def kafka_python_arguments(security: Security) -> dict[str, object]:
    """Return all arguments but `ssl_context`; raises ClientPropertyError for OAUTHBEARER."""
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
        case _:
            raise ClientPropertyError(
                "sasl.mechanism",
                "OAUTHBEARER is not possible with this protocol's client",
                "use PLAIN, SCRAM, GSSAPI or a certificate",
            )
    return arguments
