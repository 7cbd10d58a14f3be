"""The arguments of clients, objects included. Edge.

Stores become PEM or a TLS context; a login by token becomes a provider or a callback that returns
the token held by `token_source`. Neither waits for an authorization server, so kafka-python's
network loop and librdkafka's background thread go on. The first token is waited for here, so that
a refusal is an error of the client's making, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.sasl import TOKEN_MECHANISMS, parse_sasl
from pyconnect_clients.security import Security
from pyconnect_clients.security_settings import kafka_python_arguments
from pyconnect_clients.tls import client_context
from pyconnect_clients.token_fetch import TokenError
from pyconnect_clients.token_login import TOKEN_KEYS, TokenLogin
from pyconnect_clients.token_source import TokenSource, token_source

FIRST_TOKEN_S = 30.0


def secured_arguments(security: Security, bootstrap: str) -> dict[str, Any]:
    """Return arguments of kafka-python's clients that reach `bootstrap`.

    Raises ClientPropertyError for stores that cannot be read and a first token that cannot be had.
    """
    arguments = kafka_python_arguments(security)
    if security.tls is not None:
        arguments["ssl_context"] = client_context(security.tls)
    if security.sasl is not None and isinstance(security.sasl.login, TokenLogin):
        login = security.sasl.login.near(bootstrap)
        arguments["sasl_oauth_token_provider"] = _provider(_ready(login), login)
    return arguments


def with_token_callback(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties with a callback in the place of a login by token.

    Raises ClientPropertyError when no first token can be had.
    """
    if config.get("sasl.mechanism") not in TOKEN_MECHANISMS:
        return dict(config)
    given = {name: str(value) for name, value in config.items() if name in TOKEN_KEYS}
    login = parse_sasl(given).login
    assert isinstance(login, TokenLogin)
    login = login.near(str(config.get("bootstrap.servers", "")))
    others = {name: value for name, value in config.items() if name not in given}
    source = _ready(login)

    def held(_config: str) -> tuple[str, float, str, dict[str, str]]:
        token = source.token()
        return token.text, token.lifetime.expiry_ms / 1000, token.principal, dict(login.extensions)

    return {**others, "sasl.mechanism": "OAUTHBEARER", "oauth_cb": held}


def _ready(login: TokenLogin) -> TokenSource:
    source = token_source(login)
    try:
        source.wait(FIRST_TOKEN_S)
    except TokenError as exc:
        raise ClientPropertyError(login.source_key, str(exc)) from exc
    return source


def _provider(source: TokenSource, login: TokenLogin) -> object:
    from kafka.errors import KafkaConnectionError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    # The library has no types.
    class HeldTokens(AbstractTokenProvider):  # type: ignore[misc]
        """Hands out the token that is held; the library calls it on its network thread."""

        def token(self) -> str:
            try:
                return source.token().text
            except TokenError as exc:
                # The library takes this error for a failed connection, and tries again.
                raise KafkaConnectionError(str(exc)) from exc

        def extensions(self) -> dict[str, str]:
            return dict(login.extensions)

    return HeldTokens()
