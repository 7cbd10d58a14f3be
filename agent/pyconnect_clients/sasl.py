"""The login of a client: the ``sasl.`` properties of Java's clients as a value. Pure.

Corresponds to ``SaslConfigs`` and the login modules of Kafka. There are PLAIN, SCRAM, GSSAPI and
OAUTHBEARER (`token_login`), to which AWS_MSK_IAM is mapped, as AWS describes it for other clients
than Java's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import JAAS_CONFIG, JaasEntry, parse_jaas
from pyconnect_clients.token_login import (
    MSK_MECHANISM,
    TOKEN_KEYS,
    TokenLogin,
    parse_token_login,
)

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_MECHANISMS = ("OAUTHBEARER", MSK_MECHANISM)
MECHANISMS = (*PASSWORD_MECHANISMS, *TOKEN_MECHANISMS, "GSSAPI")

_MECHANISM = "sasl.mechanism"
_SERVICE = "sasl.kerberos.service.name"
_RELOGIN = "sasl.kerberos.min.time.before.relogin"

SASL_KEYS = TOKEN_KEYS | {_SERVICE, _RELOGIN}
"""The ``sasl.`` properties that are read here; a token's handler is that of the mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLogin:
    """The login of PLAIN and SCRAM."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """The login of GSSAPI; None leaves a setting to the library. `relogin_ms`: a number as text."""

    service_name: str | None
    keytab: str | None
    principal: str | None
    relogin_ms: str | None


Login = PasswordLogin | TokenLogin | KerberosLogin


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """The mechanism that brokers are asked for, and what it needs."""

    mechanism: str
    login: Login

    @property
    def username(self) -> str | None:
        """The user name for the broker; None if it depends on a token or ticket."""
        return self.login.username if isinstance(self.login, PasswordLogin) else None


def parse_sasl(properties: Mapping[str, str]) -> Sasl:
    """Read trimmed properties, for a protocol with SASL.

    Raises ClientPropertyError for an unknown mechanism and for one without its credentials.
    """
    mechanism = properties.get(_MECHANISM, "GSSAPI").upper()
    text = properties.get(JAAS_CONFIG)
    entry = parse_jaas(text) if text else JaasEntry(login_module="", options={})
    match mechanism:
        case "OAUTHBEARER" | "AWS_MSK_IAM":
            login: Login = parse_token_login(mechanism, properties, entry)
            mechanism = "OAUTHBEARER"
        case "GSSAPI":
            login = KerberosLogin(
                service_name=properties.get(_SERVICE) or entry.options.get("serviceName"),
                keytab=entry.options.get("keyTab"),
                principal=entry.options.get("principal"),
                relogin_ms=properties.get(_RELOGIN),
            )
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            for needed in ("username", "password"):
                if needed not in entry.options:
                    raise ClientPropertyError(
                        JAAS_CONFIG,
                        f"{mechanism} needs a {needed}",
                        f'add {needed}="..." to the login module\'s options',
                    )
            login = PasswordLogin(
                username=entry.options["username"], password=entry.options["password"]
            )
        case _:
            raise ClientPropertyError(
                _MECHANISM, f"{mechanism} is not supported", f"use one of {', '.join(MECHANISMS)}"
            )
    return Sasl(mechanism=mechanism, login=login)
