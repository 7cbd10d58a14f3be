"""Security in the words of both client libraries. Pure.

What librdkafka cannot read stays under Java's names until a client is made: `key_stores.with_pem`
replaces stores by PEM, `connections.with_token_callback` a login by token by a callback.
`connections.secured_arguments` adds kafka-python's objects: the context of TLS and the provider of
tokens.
"""

from __future__ import annotations

from pyconnect_clients.security import (
    KerberosLogin,
    PasswordLogin,
    PemCertificates,
    PemFile,
    PemIdentity,
    Security,
    StoreFile,
    Tls,
)
from pyconnect_clients.token_login import TokenLogin


def librdkafka_settings(security: Security) -> dict[str, str]:
    """Return the properties of librdkafka; stores and tokens are still in Java's words."""
    settings = {"security.protocol": security.protocol.value.lower()}
    if security.tls is not None:
        settings |= tls_settings(security.tls)
    if security.sasl is None:
        return settings
    match security.sasl.login:
        case TokenLogin(properties=properties):
            return settings | dict(properties)
        case PasswordLogin(username=username, password=password):
            login: dict[str, str | None] = {"sasl.username": username, "sasl.password": password}
        case KerberosLogin() as kerberos:
            login = {
                "sasl.kerberos.service.name": kerberos.service_name,
                "sasl.kerberos.keytab": kerberos.keytab,
                "sasl.kerberos.principal": kerberos.principal,
                "sasl.kerberos.min.time.before.relogin": kerberos.relogin_ms,
            }
    settings["sasl.mechanism"] = security.sasl.mechanism
    return settings | {name: text for name, text in login.items() if text is not None}


def tls_settings(tls: Tls) -> dict[str, str]:
    """Return the `ssl.` properties of librdkafka."""
    settings = {
        "ssl.endpoint.identification.algorithm": "https" if tls.checks_host_name else "none"
    }
    match tls.trust:
        case PemCertificates(text=text):
            settings["ssl.ca.pem"] = text
        case PemFile(location=location):
            settings["ssl.ca.location"] = location
        case StoreFile() as store:
            settings |= _store(store)
    match tls.identity:
        case PemIdentity(key=key, chain=chain):
            settings |= {"ssl.key.pem": key, "ssl.certificate.pem": chain}
        case PemFile(location=location):
            settings |= {"ssl.certificate.location": location, "ssl.key.location": location}
        case StoreFile() as store:
            settings |= _store(store)
    if tls.identity is not None and tls.key_password is not None:
        settings["ssl.key.password"] = tls.key_password
    return settings


def _store(store: StoreFile) -> dict[str, str]:
    named = {"location": store.location, "type": store.type, "password": store.password}
    return {f"{store.store}.{what}": text for what, text in named.items() if text is not None}


def kafka_python_arguments(security: Security) -> dict[str, object]:
    """Return the arguments of kafka-python's clients that are texts."""
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
