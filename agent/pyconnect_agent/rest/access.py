"""The user of a request: by password, token, certificate, or the signature of another worker.

`core.rest_access` decides what a user may do. Files are read at each request, so that they can be
changed while the worker runs. A worker that passes a request on signs the name of its user with the
session key; the signature covers method, target and body, and is valid for a while.

The admin interface has credentials of its own in files: user names and passwords as properties
(`name=password`), tokens one a line.

Without credentials only a listener on a loopback address serves the interface, and never to web
pages: a browser on this machine must not obey a foreign page.

Apache's REST extension asks for passwords, as ``JaasBasicAuthFilter``: the path, the method and the
media types are checked before, requests of workers (which are signed) and separate admin listeners
are exempt, and health is not. Unlike Apache's, this one reads the credentials at each request,
admits no client with an empty file, and names the scheme in the 401.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import logging
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from starlette.requests import Request

from pyconnect_agent.core.errors import ForbiddenError, RequestError, WorkerConfigError
from pyconnect_agent.core.rest_access import (
    User,
    credentials_file,
    is_password,
    jaas_file,
    read_users,
    token_hash,
)
from pyconnect_agent.process.config_file import load_properties
from pyconnect_agent.rest.errors import UnauthorizedError
from pyconnect_api.errors import ConfigException


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """Return user and password of a Basic header, None for another header."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(given.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if user and colon else None


def basic_header(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def is_same(given: str, expected: str | None) -> bool:
    """Compare in the same time for every wrong value."""
    matches = hmac.compare_digest(given.encode(), (expected or "").encode())
    return matches and bool(expected)


CHALLENGE = 'Basic realm="Kafka Connect", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class BasicAuthExtension:
    """Apache's REST extension; `credentials` is a properties file of `user=password`."""

    credentials: str

    def admits(self, given: tuple[str, str] | None) -> bool:
        """Return whether the file has this user with this password."""
        return given is not None and is_same(given[1], self.password_of(given[0]))

    def password_of(self, user: str) -> str | None:
        try:
            return load_properties(self.credentials).get(user)
        except ConfigException as error:
            LOG.error("users of REST cannot be read", extra={"reason": str(error)})
            return None


def extension_of(configured: str | None) -> BasicAuthExtension:
    """Return the extension with the JAAS file's credentials.

    `configured` is the worker's key that names the JAAS file. Raises ConfigException.
    """
    file = jaas_file(configured, os.environ)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"{file}: the JAAS file cannot be read ({error}).") from error
    credentials = credentials_file(text, source=file)
    if not load_properties(credentials):
        raise ConfigException(
            f"{credentials}: there are no users. A Java worker would then admit every client; write"
            " user=password."
        )
    return BasicAuthExtension(credentials)


LOG = logging.getLogger(__name__)

USERS = "agent.rest.users"
USER_HEADER = "Pyconnect-User"
CERTIFICATE = "certificate_subject"
"""Key in a connection's state for the subject of the client's certificate."""
_SIGNED_FOR_MS = 600_000
"""Time for which a signature is valid: clocks of workers may differ."""
_REMEMBERED_PASSWORDS = 1_000
_NO_PASSWORD = f"scrypt:{'A' * 22}==:{'A' * 86}=="
"""A hash that no password has: 16 and 64 zero bytes."""


class Signer(Protocol):
    """The part of the herder that signs for other workers."""

    def sign(self, content: bytes) -> dict[str, str]: ...

    def verify_signature(self, content: bytes, headers: Mapping[str, str]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The user of a request. `name` None: the worker has no users. `user` None: no role limits it.

    `body_sha256`: of the body that another worker has signed.
    """

    address: str
    name: str | None = None
    user: User | None = None
    authorization: str | None = field(default=None, repr=False)
    body_sha256: str | None = None

    @property
    def sees_secrets(self) -> bool:
        return self.user is None or self.user.sees_secrets

    def may_see(self, connector: str) -> bool:
        return self.user is None or self.user.has_connector(connector)

    def require_connector(self, connector: str) -> None:
        """Raise ForbiddenError for a connector that is not one of the user's."""
        if self.user is not None and not self.user.has_connector(connector):
            raise ForbiddenError(self.user.no_connector(connector))

    def require_body(self, body: bytes) -> None:
        """Raise ForbiddenError for a body other than the one that the other worker has signed."""
        if self.body_sha256 not in (None, hashlib.sha256(body).hexdigest()):
            raise ForbiddenError("The body is not the one that the forwarding worker has signed.")

    def signed(self, signer: Signer, method: str, target: str, body: bytes) -> dict[str, str]:
        """Return the headers of a request to another worker, which name the user."""
        headers = {} if self.authorization is None else {"Authorization": self.authorization}
        if self.name is None:
            return headers
        claims = {
            "user": self.name,
            "from": self.address,
            "at_ms": round(time.time() * 1000),
            "body": hashlib.sha256(body).hexdigest(),
        }
        value = base64.b64encode(json.dumps(claims).encode()).decode()
        signature = signer.sign(_signed_content(method, target, value))
        return {**headers, **({USER_HEADER: value, **signature} if signature else {})}


class RestAccess:
    """Access by `extension` (Apache's passwords) or `users` (`agent.rest.users`); one is given."""

    def __init__(self, extension: BasicAuthExtension | None, users: str | None) -> None:
        self._extension = extension
        self._users = users
        self._key = secrets.token_bytes(32)
        self._verified: dict[bytes, str] = {}
        self._refused: dict[bytes, str] = {}

    @property
    def has_roles(self) -> bool:
        return self._users is not None

    def check(self) -> None:
        """Raise WorkerConfigError for users that cannot be read, or if there are none."""
        try:
            if self._users is not None and not self._read():
                raise WorkerConfigError(f"{USERS}: there are no users.")
        except (OSError, UnicodeDecodeError, ConfigException) as error:
            raise WorkerConfigError(f"{USERS}: {error}") from error

    @property
    def has_certificates(self) -> bool:
        return self.has_roles and any(user.certificates for user in self._read())

    async def caller(self, request: Request, signer: Signer) -> Caller:
        """Return the user of a request; raise UnauthorizedError if there is none."""
        if USER_HEADER in request.headers:
            return forwarded_caller(request, signer)
        authorization = request.headers.get("authorization")
        subject = getattr(request.state, CERTIFICATE, None)
        address = address_of(request)
        found = await asyncio.to_thread(self._find, authorization or "", subject, address)
        if found is None:
            raise UnauthorizedError("User cannot access the resource.", self._challenge())
        name, user, password = found
        if password is not None:
            authorization = basic_header(name, password)
        return Caller(address=address, name=name, user=user, authorization=authorization)

    def _find(
        self, authorization: str, subject: str | None, address: str
    ) -> tuple[str, User | None, str | None] | None:
        """Return name, user, and a password that a Java worker knows for users without one."""
        given = basic_credentials(authorization)
        if self._users is None:
            assert self._extension is not None
            admits = self._extension.admits(given)
            return (given[0], None, None) if given is not None and admits else None
        try:
            users = self._read()
        except (OSError, UnicodeDecodeError, ConfigException) as error:
            LOG.error("users of REST cannot be read", extra={"reason": str(error)})
            return None
        if given is not None:
            user = next((user for user in users if user.name == given[0]), None)
            is_right = self._has_password(user, given, address)
            return (user.name, user, None) if user is not None and is_right else None
        scheme, _, token = authorization.partition(" ")
        hashed = token_hash(token.strip()) if scheme.lower() == "bearer" else None
        for user in users:
            if hashed in user.tokens or (not authorization and subject in user.certificates):
                extension = self._extension
                known = None if extension is None else extension.password_of(user.name)
                return user.name, user, known
        return None

    def _has_password(self, user: User | None, given: tuple[str, str], address: str) -> bool:
        """Return whether the password is the user's; a right one is remembered as a digest.

        A wrong password is remembered for its address alone: a quick refusal must not reveal what a
        client elsewhere has mistyped. Guesses do not displace right passwords. Refusing an unknown
        user takes as long as refusing a known one: the time does not reveal which users exist.
        """
        if self._extension is not None and self._extension.admits(given):
            return True
        expected = (user and user.password) or _NO_PASSWORD
        digest, refused = (
            hmac.digest(self._key, "\0".join(parts).encode(), "sha256")
            for parts in (given, (address, *given))
        )
        if self._verified.get(digest) == expected:
            return True
        if self._refused.get(refused) == expected:
            return False
        right = is_password(given[1], expected)
        kept, key = (self._verified, digest) if right else (self._refused, refused)
        if len(kept) >= _REMEMBERED_PASSWORDS:
            kept.clear()
        kept[key] = expected
        return right

    def _read(self) -> tuple[User, ...]:
        """Return the users of the file, or of the text behind a reference."""
        assert self._users is not None
        if "=" in self._users:
            return _parsed(self._users, "the value")
        return _parsed(Path(self._users).read_text(encoding="utf-8"), self._users)

    def _challenge(self) -> str:
        return CHALLENGE if self._users is None else f'{CHALLENGE}, Bearer realm="Kafka Connect"'


@lru_cache(maxsize=2)
def _parsed(text: str, source: str) -> tuple[User, ...]:
    return read_users(text, source=source)


def address_of(request: Request) -> str:
    return request.client.host if request.client else "-"


def forwarded_caller(request: Request, signer: Signer) -> Caller:
    """Return the user that another worker names; raise UnauthorizedError unless it has signed.

    The other worker has decided that its user may send the request.
    """
    value = request.headers[USER_HEADER]
    raw_path, query = request.scope["raw_path"], request.scope["query_string"]
    target = (raw_path + (b"?" + query if query else b"")).decode("latin-1")
    try:
        signer.verify_signature(_signed_content(request.method, target, value), request.headers)
        claims: dict[str, Any] = json.loads(base64.b64decode(value))
    except (RequestError, ValueError) as error:
        raise UnauthorizedError(
            f"The name of the user is not signed by a worker of this group: {error}", CHALLENGE
        ) from error
    if abs(time.time() * 1000 - claims["at_ms"]) > _SIGNED_FOR_MS:
        raise UnauthorizedError(
            "The name of the user was signed too long ago: compare the clocks of the workers.",
            CHALLENGE,
        )
    return Caller(address=claims["from"], name=claims["user"], body_sha256=claims["body"])


def _signed_content(method: str, target: str, value: str) -> bytes:
    return f"pyconnect-user\n{method}\n{target}\n{value}".encode()


BASIC_FILE = "agent.admin.basic.auth.file"
TOKEN_FILE = "agent.admin.bearer.token.file"  # noqa: S105  the name of a key

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminAccess:
    """Access to the admin interface; `loopback`: bound addresses that no other host reaches."""

    basic_file: str | None = None
    token_file: str | None = None
    loopback: frozenset[Address] = frozenset()

    def check_files(self) -> None:
        """Raise WorkerConfigError for a file that cannot be read or names no user."""
        for key, file, read in (
            (BASIC_FILE, self.basic_file, load_properties),
            (TOKEN_FILE, self.token_file, _tokens),
        ):
            if file is None:
                continue
            try:
                found = read(file)
            except (OSError, ConfigException) as error:
                raise WorkerConfigError(f"{key}: {error}") from error
            if not found:
                raise WorkerConfigError(f"{key}: {file} holds no credentials.")

    async def check(self, request: Request) -> None:
        """Raise UnauthorizedError if this request must not be answered."""
        if self.has_credentials:
            authorization = request.headers.get("authorization", "")
            if not await asyncio.to_thread(self._admits, authorization):
                raise UnauthorizedError(
                    "The admin interface of this worker needs credentials.", self._challenge()
                )
            return
        server = request.scope.get("server")
        if server is None or (server[0], server[1]) not in self.loopback:
            raise UnauthorizedError(
                "Without credentials the admin interface is served on loopback listeners only."
                f" Set {BASIC_FILE} or {TOKEN_FILE} in the worker's properties, or let"
                " admin.listeners name a loopback address.",
                "Basic",
            )
        if "origin" in request.headers or not _is_loopback_host(request.headers.get("host", "")):
            raise UnauthorizedError(
                "Without credentials the admin interface does not serve web pages, nor names"
                " other than localhost.",
                "Basic",
            )

    @property
    def has_credentials(self) -> bool:
        return self.basic_file is not None or self.token_file is not None

    def _admits(self, authorization: str) -> bool:
        if self.basic_file is not None and (given := basic_credentials(authorization)):
            user, password = given
            return is_same(password, load_properties(self.basic_file).get(user))
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self.token_file is not None:
            # All values are compared, so that the time reveals nothing about a wrong one.
            return sum(is_same(token.strip(), known) for known in _tokens(self.token_file)) > 0
        return False

    def _challenge(self) -> str:
        schemes = []
        if self.basic_file is not None:
            schemes.append('Basic realm="pyconnect-agent", charset="UTF-8"')
        if self.token_file is not None:
            schemes.append('Bearer realm="pyconnect-agent"')
        return ", ".join(schemes)


def loopback_addresses(addresses: Iterable[Address]) -> frozenset[Address]:
    """Return those of the bound addresses that only this host reaches."""
    return frozenset(
        (host, port) for host, port in addresses if ipaddress.ip_address(host).is_loopback
    )


def _is_loopback_host(header: str) -> bool:
    host = urlsplit(f"//{header}").hostname
    if host is None or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tokens(file: str) -> list[str]:
    lines = (line.strip() for line in Path(file).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
