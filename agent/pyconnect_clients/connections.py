"""The arguments of clients, with objects among them. Edge.

Stores become PEM or a TLS context. A login by token becomes a provider or a callback that returns
the token held by `token_source`. Neither waits for an authorization server, so kafka-python's
network loop and librdkafka's background thread go on. This module waits for the first token, so
that creating the client fails with the reason of a refusal.

All clients of one process with the same login share a `TokenSource`, whose thread alone waits for
the authorization server (Kafka: ``LoginManager``, ``ExpiringCredentialRefreshingLogin``). `token`
returns the held token at once, and `wait` is for the creation of a client; any thread may call
them. When no client refers to a source any more, its thread ends; a failed fetch does not end it.
"""

import logging
import random
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import client_context
from pyconnect_clients.security import (
    TOKEN_MECHANISMS,
    Security,
    kafka_python_arguments,
    parse_sasl,
)
from pyconnect_clients.token_fetch import Fetch, Token, TokenError, fetcher
from pyconnect_clients.token_login import (
    TOKEN_KEYS,
    RefreshSettings,
    TokenLogin,
    next_fetch_ms,
    retry_ms,
)

LOG = logging.getLogger(__name__)

FIRST_TOKEN_S = 30.0
_LONGEST_WAIT_S = 60.0


class TokenSource:
    """The tokens of one login; `token_source` creates it."""

    def __init__(self, fetch: Fetch, settings: RefreshSettings) -> None:
        self._held = _Held()
        held = self._held
        # The thread must not refer to the source: the end of the source ends the thread.
        self._thread = threading.Thread(
            target=_keep_fresh, args=(fetch, settings, held), name="token-refresh", daemon=True
        )
        self._thread.start()
        weakref.finalize(self, held.end.set)

    def token(self) -> Token:
        """Return the held token without waiting; raise TokenError if there is none."""
        with self._held.changed:
            token, failure = self._held.token, self._held.failure
        if token is not None and token.lifetime.expiry_ms > _now_ms():
            return token
        reason = "no answer yet" if failure is None else str(failure)
        kind = "the token has expired" if token else "there is no token"
        raise TokenError(
            f"OAUTHBEARER: {kind}: {reason}", retriable=failure is None or failure.retriable
        )

    def wait(self, timeout_s: float) -> Token:
        """Return a token as soon as one is held.

        Raises TokenError if the first fetch is refused, and after `timeout_s`.
        """
        with self._held.changed:
            self._held.changed.wait_for(self._held.is_decided, timeout_s)
        return self.token()


class _Held:
    """The state that a source shares with its thread."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.end = threading.Event()
        self.token: Token | None = None
        self.failure: TokenError | None = None

    def is_decided(self) -> bool:
        refused = self.failure is not None and not self.failure.retriable
        return refused or (self.token is not None and self.token.lifetime.expiry_ms > _now_ms())


_SOURCES: weakref.WeakValueDictionary[TokenLogin, TokenSource] = weakref.WeakValueDictionary()
_MAKING = threading.Lock()


def token_source(login: TokenLogin) -> TokenSource:
    """Return the source of a login, the same for equal logins; raises ClientPropertyError."""
    with _MAKING:
        source = _SOURCES.get(login)
        if source is None:
            source = TokenSource(fetcher(login), login.refresh)
            _SOURCES[login] = source
        return source


def _keep_fresh(fetch: Fetch, settings: RefreshSettings, held: _Held) -> None:
    failures = 0
    while True:
        try:
            token = fetch()
        # A signer or a parser may raise anything, which must not end the login.
        except BaseException as exc:  # noqa: BLE001
            failures += 1
            if isinstance(exc, TokenError):
                failure = exc
            else:
                # The text of an unexpected error may quote parts of the request.
                failure = TokenError(f"unexpected {type(exc).__name__}")
            LOG.warning(
                "a token could not be fetched", extra={"attempt": failures, "reason": str(failure)}
            )
            with held.changed:
                held.failure = failure
                held.changed.notify_all()
            due_ms = retry_ms(
                settings, failures, _now_ms(), random.random(), retriable=failure.retriable
            )
        else:
            if failures:
                LOG.info("tokens can be fetched again", extra={"attempts": failures + 1})
            failures = 0
            with held.changed:
                held.token, held.failure = token, None
                held.changed.notify_all()
            due_ms = next_fetch_ms(settings, token.lifetime, _now_ms(), random.random())
        # The wall clock may be set meanwhile, and the monotonic one stops while the machine sleeps.
        due_s = time.monotonic() + (due_ms - _now_ms()) / 1000
        while (remaining_s := min(due_s - time.monotonic(), (due_ms - _now_ms()) / 1000)) > 0:
            if held.end.wait(min(remaining_s, _LONGEST_WAIT_S)):
                break
        if held.end.is_set():
            return


def _now_ms() -> int:
    return int(time.time() * 1000)


def secured_arguments(security: Security, bootstrap: str) -> dict[str, Any]:
    """Return arguments of kafka-python's clients that reach `bootstrap`.

    Raises ClientPropertyError for stores that cannot be read, or without a first token.
    """
    arguments = kafka_python_arguments(security)
    if security.tls is not None:
        arguments["ssl_context"] = client_context(security.tls)
    if security.sasl is not None and isinstance(security.sasl.login, TokenLogin):
        login = security.sasl.login.near(bootstrap)
        source = _ready(login)
        from kafka.errors import KafkaConnectionError
        from kafka.net.sasl.oauth import AbstractTokenProvider

        # The library has no types.
        class HeldTokens(AbstractTokenProvider):  # type: ignore[misc]
            """A provider of the held token; the library calls it on its network thread."""

            def token(self) -> str:
                try:
                    return source.token().text
                except TokenError as exc:
                    # The library takes this error for a failed connection, and tries again.
                    raise KafkaConnectionError(str(exc)) from exc

            def extensions(self) -> dict[str, str]:
                return dict(login.extensions)

        arguments["sasl_oauth_token_provider"] = HeldTokens()
    return arguments


def with_token_callback(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties with a callback in place of a login by token.

    Raises ClientPropertyError without a first token.
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
