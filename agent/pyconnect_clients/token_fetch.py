"""Gets one token for a login: from an authorization server, a file, or AWS's signer. Edge.

Corresponds to ``HttpJwtRetriever``, ``FileJwtRetriever`` and ``ClientJwtValidator`` of Kafka. An
exchange with the server has a deadline as a whole, however slowly the answer arrives. Redirects are
not followed and no proxy is used: the credentials go to the address that was given. Errors name the
address and the status, but no secrets, no tokens and not the server's answer.
"""

import base64
import http.client
import io
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, assert_never
from urllib.parse import quote_plus, unquote, urlsplit

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.installation import install_command
from pyconnect_clients.jaas import JAAS_CONFIG
from pyconnect_clients.key_stores import client_context
from pyconnect_clients.security import Tls, parse_security
from pyconnect_clients.token_login import (
    FILE_SCHEME,
    EndpointTokens,
    FileTokens,
    Lifetime,
    MskTokens,
    TokenLogin,
    UnsecuredTokens,
)

_MOST_BYTES = 1 << 20
_RETRIABLE = (408, 425, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token, and the facts that its text states."""

    text: str = field(repr=False)
    lifetime: Lifetime
    principal: str


class TokenError(Exception):
    """The error of a fetch; `retriable` unless the same request would be refused again."""

    def __init__(self, message: str, *, retriable: bool = True) -> None:
        super().__init__(message)
        self.retriable = retriable


Fetch = Callable[[], Token]
"""Returns a new token, or raises TokenError, within the login's timeouts."""


def fetcher(login: TokenLogin) -> Fetch:
    """Return the function that fetches a login's tokens; ClientPropertyError for wrong settings."""
    get: Callable[[], tuple[str, float | None]]
    match login.tokens:
        case EndpointTokens() as endpoint:
            context = None
            if urlsplit(endpoint.url).scheme.lower() == "https":
                tls = parse_security({"security.protocol": "SSL", **dict(endpoint.tls_options)}).tls
                context = client_context(tls or Tls())
            get = partial(_from_endpoint, endpoint, context)
        case FileTokens(url=url):
            get = partial(_from_file, Path(unquote(url[len(FILE_SCHEME) :].removeprefix("//"))))
        case UnsecuredTokens() as unsecured:
            get = partial(_unsecured, unsecured)
        case MskTokens() as msk:
            try:
                from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            except ImportError as exc:
                raise ClientPropertyError(
                    "sasl.mechanism",
                    "AWS MSK IAM needs the signer of AWS, which is not installed",
                    install_command("msk"),
                ) from exc
            return partial(_from_signer, msk, MSKAuthTokenProvider, login)
        case _:
            assert_never(login.tokens)
    return lambda: _read(*get(), login)


def _from_endpoint(
    endpoint: EndpointTokens, context: ssl.SSLContext | None
) -> tuple[str, float | None]:
    """Return a token, and the seconds for which the server says that it is valid."""
    try:
        parts = urlsplit(endpoint.url)
        host = parts.hostname or ""
        port = parts.port or (443 if context else 80)
        connected = socket.create_connection(
            (host, port), timeout=endpoint.connect_timeout_ms / 1000
        )
        with connected as plain:
            stream = context.wrap_socket(plain, server_hostname=host) if context else plain
            with stream:
                deadline_s = time.monotonic() + endpoint.read_timeout_ms / 1000
                stream.settimeout(endpoint.read_timeout_ms / 1000)
                stream.sendall(_request(endpoint))
                received = io.BytesIO(_received(stream, deadline_s))
        # HTTPResponse uses only the file of a socket.
        response = http.client.HTTPResponse(SimpleNamespace(makefile=lambda _mode: received))  # type: ignore[arg-type]
        response.begin()
        status, body = response.status, response.read()
    except (OSError, http.client.HTTPException, ValueError) as exc:
        reason = "no answer in time" if isinstance(exc, TimeoutError) else _reason(exc)
        raise TokenError(f"{endpoint.url}: {reason}") from exc
    answer = _json_object(body)
    if status != http.client.OK:
        # The answer's code is RFC 6749's; other parts may repeat the request.
        code = answer.get("error")
        known = isinstance(code, str) and len(code) < 64 and code.replace("_", "").isalpha()
        raise TokenError(
            f"{endpoint.url}: the authorization server answered with status {status}"
            f"{f' ({code})' if known else ''}",
            retriable=status >= 500 or status in _RETRIABLE,
        )
    text = answer.get("access_token") or answer.get("id_token")
    if not isinstance(text, str):
        raise TokenError(f"{endpoint.url}: the answer contains no access_token")
    seconds = answer.get("expires_in")
    return text, seconds if isinstance(seconds, (int, float)) else None


def _request(endpoint: EndpointTokens) -> bytes:
    parts = urlsplit(endpoint.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    credentials = [endpoint.client_id, endpoint.client_secret]
    if endpoint.url_encoded:
        credentials = [quote_plus(text) for text in credentials]
    basic = base64.b64encode(":".join(credentials).encode()).decode()
    body = "grant_type=client_credentials"
    if endpoint.scope:
        body += f"&scope={quote_plus(endpoint.scope)}"
    lines = (
        f"POST {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Authorization: Basic {basic}",
        "Accept: application/json",
        "Cache-Control: no-cache",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "",
        body,
    )
    return "\r\n".join(lines).encode()


def _received(stream: socket.socket, deadline_s: float) -> bytes:
    """Return all bytes until the server closes the connection."""
    received = bytearray()
    while len(received) <= _MOST_BYTES:
        remaining_s = deadline_s - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        stream.settimeout(remaining_s)
        data = stream.recv(65536)
        if not data:
            return bytes(received)
        received += data
    raise ValueError("the answer is too long")


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _from_file(path: Path) -> tuple[str, None]:
    try:
        return path.read_text().strip(), None
    except (OSError, UnicodeDecodeError) as exc:
        raise TokenError(f"{path}: the token cannot be read: {_reason(exc)}") from exc


def _unsecured(tokens: UnsecuredTokens) -> tuple[str, None]:
    now_s = time.time()
    claims = {**dict(tokens.claims), "iat": now_s, "exp": now_s + tokens.lifetime_s}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    encoded = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return "".join(f"{part}." for part in encoded), None


def _read(text: str, valid_s: float | None, login: TokenLogin) -> Token:
    """Return a token with the lifetime and subject that it states, if it does."""
    parts = text.split(".")
    claims: Mapping[str, Any] = {}  # of a token that is no JWT
    if len(parts) == 3:
        with suppress(ValueError):
            claims = _json_object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    now_s = time.time()
    expiry_s = claims.get("exp", None if valid_s is None else now_s + valid_s)
    issued_s = claims.get("iat", now_s)
    if not isinstance(expiry_s, (int, float)) or not isinstance(issued_s, (int, float)):
        raise TokenError("the token does not state when it expires")
    if any(character.isspace() or ord(character) < 32 for character in text):
        raise TokenError("the token contains characters that no token may contain")
    return Token(
        text=text,
        lifetime=Lifetime(start_ms=int(issued_s * 1000), expiry_ms=int(expiry_s * 1000)),
        principal=str(claims.get(login.subject_claim, "")),
    )


def _from_signer(tokens: MskTokens, signer: Any, login: TokenLogin) -> Token:
    region = tokens.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise TokenError(
            "AWS MSK IAM: the brokers' names contain no region; set AWS_REGION", retriable=False
        )
    if tokens.role_arn:
        session = (tokens.role_session,) if tokens.role_session else ()
        make = partial(signer.generate_auth_token_from_role_arn, region, tokens.role_arn, *session)
        problem = f"the role {tokens.role_arn} could not be assumed"
        others = "the role's trust policy and the credentials of this machine"
        way_out = f"check awsRoleArn in {JAAS_CONFIG}, and {others}"
    elif tokens.profile:
        make = partial(signer.generate_auth_token_from_profile, region, tokens.profile)
        problem = f"the credentials of profile {tokens.profile} could not be used"
        way_out = f"check awsProfileName in {JAAS_CONFIG}, and the configuration files of AWS"
    else:
        make = partial(signer.generate_auth_token, region)
        problem = "no credentials of AWS could be used"
        keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        way_out = f"set {keys}, give this machine a role, or name awsProfileName in {JAAS_CONFIG}"
    try:
        text, expiry_ms = make()
    # The signer raises botocore's errors, and the text of either may quote a request.
    except Exception as exc:
        raise TokenError(f"AWS MSK IAM: {problem} ({type(exc).__name__}); {way_out}") from exc
    return Token(
        text=text,
        lifetime=Lifetime(start_ms=int(time.time() * 1000), expiry_ms=int(expiry_ms)),
        principal=dict(login.extensions).get("principal", ""),
    )


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return type(error).__name__
