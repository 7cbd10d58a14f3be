"""How a client logs in: the ``sasl.`` properties of Java's clients as a value. Pure.

Corresponds to ``SaslConfigs`` and the login modules of Kafka. There are PLAIN, SCRAM, OAUTHBEARER
(client credentials, KIP-768, and unsecured tokens for trials) and GSSAPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.jaas import JAAS_CONFIG, JaasEntry, parse_jaas

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI")

_MECHANISM = "sasl.mechanism"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials."
_SCOPE = "sasl.oauthbearer.scope"
_SERVICE = "sasl.kerberos.service.name"
_RELOGIN = "sasl.kerberos.min.time.before.relogin"
_UNSECURED_PRINCIPAL = "unsecuredLoginStringClaim_sub"
_EXTENSION = "extension_"

SASL_KEYS = frozenset(
    {
        _MECHANISM,
        JAAS_CONFIG,
        "sasl.login.callback.handler.class",
        _ENDPOINT,
        _SCOPE,
        f"{_CREDENTIALS}client.id",
        f"{_CREDENTIALS}client.secret",
        _SERVICE,
        _RELOGIN,
    }
)
"""The ``sasl.`` properties that are read here; a token's handler is that of the mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLogin:
    """Of PLAIN and SCRAM."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """Of OAUTHBEARER: credentials that an authorization server takes in exchange for a token."""

    endpoint_url: str
    client_id: str | None
    client_secret: str | None = field(repr=False)
    scope: str | None
    extensions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredLogin:
    """Of OAUTHBEARER: a token that the client writes itself, for a broker that believes it."""

    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """Of GSSAPI; None leaves a setting to the library. `relogin_ms` is a number as text."""

    service_name: str | None
    keytab: str | None
    principal: str | None
    relogin_ms: str | None


Login = PasswordLogin | TokenLogin | UnsecuredLogin | KerberosLogin


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """A mechanism of `MECHANISMS` and what it needs."""

    mechanism: str
    login: Login

    @property
    def username(self) -> str | None:
        """Whom the broker takes the client for; None when only tokens or tickets tell."""
        return self.login.username if isinstance(self.login, PasswordLogin) else None


def parse_sasl(properties: Mapping[str, str]) -> Sasl:
    """Read trimmed properties, for a protocol with SASL.

    Raises ClientPropertyError for an unknown mechanism and for one without its credentials.
    """
    mechanism = properties.get(_MECHANISM, "GSSAPI").upper()
    text = properties.get(JAAS_CONFIG)
    entry = parse_jaas(text) if text else JaasEntry(login_module="", options={})
    match mechanism:
        case "OAUTHBEARER":
            login: Login = _token(properties, entry.options)
        case "GSSAPI":
            login = _kerberos(properties, entry.options)
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            login = _password(mechanism, entry.options)
        case _:
            raise ClientPropertyError(
                _MECHANISM, f"{mechanism} is not supported", f"use one of {', '.join(MECHANISMS)}"
            )
    return Sasl(mechanism=mechanism, login=login)


def _password(mechanism: str, options: Mapping[str, str]) -> PasswordLogin:
    for needed in ("username", "password"):
        if needed not in options:
            raise ClientPropertyError(
                JAAS_CONFIG,
                f"{mechanism} needs a {needed}",
                f'add {needed}="..." to the login module\'s options',
            )
    return PasswordLogin(username=options["username"], password=options["password"])


def _kerberos(properties: Mapping[str, str], options: Mapping[str, str]) -> KerberosLogin:
    return KerberosLogin(
        service_name=properties.get(_SERVICE) or options.get("serviceName"),
        keytab=options.get("keyTab"),
        principal=options.get("principal"),
        relogin_ms=properties.get(_RELOGIN),
    )


def _token(
    properties: Mapping[str, str], options: Mapping[str, str]
) -> TokenLogin | UnsecuredLogin:
    endpoint = properties.get(_ENDPOINT)
    if not endpoint:
        principal = options.get(_UNSECURED_PRINCIPAL)
        if principal is None:
            raise ClientPropertyError(
                _ENDPOINT,
                "it is missing, and OAUTHBEARER needs a token from somewhere",
                "name the authorization server's https URL for tokens",
            )
        return UnsecuredLogin(principal=principal)
    if not endpoint.lower().startswith(("https://", "http://")):
        raise ClientPropertyError(
            _ENDPOINT,
            "only http and https are supported",
            "tokens in files cannot be read: name the authorization server",
        )
    return TokenLogin(
        endpoint_url=endpoint,
        client_id=properties.get(f"{_CREDENTIALS}client.id") or options.get("clientId"),
        client_secret=properties.get(f"{_CREDENTIALS}client.secret") or options.get("clientSecret"),
        scope=properties.get(_SCOPE) or options.get("scope"),
        extensions={
            name.removeprefix(_EXTENSION): value
            for name, value in options.items()
            if name.startswith(_EXTENSION)
        },
    )
