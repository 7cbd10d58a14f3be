"""Access to the admin interface: by credentials, or on a loopback listener.

Layer: rest. Credentials are in files that are read at each request, so that they can be changed
while the worker runs: user names and passwords as properties (`name=password`), tokens one a line.

Without credentials only a listener on a loopback address serves the interface, and never to web
pages: a browser on this machine must not obey a foreign page.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.requests import Request

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.files.config_file import load_properties
from pyconnect_agent.rest.credentials import basic_credentials, is_same
from pyconnect_agent.rest.errors import UnauthorizedError
from pyconnect_api.errors import ConfigException

BASIC_FILE = "agent.admin.basic.auth.file"
TOKEN_FILE = "agent.admin.bearer.token.file"  # noqa: S105  the name of a key

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminAccess:
    """`loopback`: addresses of the bound listeners that no other host reaches."""

    basic_file: str | None = None
    token_file: str | None = None
    loopback: frozenset[Address] = frozenset()

    def check_files(self) -> None:
        """Raise WorkerConfigError for a file that cannot be read or names no user."""
        for key, file, read in (
            (BASIC_FILE, self.basic_file, _passwords),
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
        """Raise UnauthorizedError unless this request may be answered."""
        if not self.has_credentials:
            self._check_loopback(request)
            return
        authorization = request.headers.get("authorization", "")
        if not await asyncio.to_thread(self._admits, authorization):
            raise UnauthorizedError(
                "The admin interface of this worker needs credentials.", self._challenge()
            )

    @property
    def has_credentials(self) -> bool:
        return self.basic_file is not None or self.token_file is not None

    def _admits(self, authorization: str) -> bool:
        if self.basic_file is not None and (given := basic_credentials(authorization)):
            user, password = given
            return is_same(password, _passwords(self.basic_file).get(user))
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self.token_file is not None:
            # All of them are compared, so that the time reveals nothing about a wrong value.
            return sum(is_same(token.strip(), known) for known in _tokens(self.token_file)) > 0
        return False

    def _challenge(self) -> str:
        schemes = []
        if self.basic_file is not None:
            schemes.append('Basic realm="pyconnect-agent", charset="UTF-8"')
        if self.token_file is not None:
            schemes.append('Bearer realm="pyconnect-agent"')
        return ", ".join(schemes)

    def _check_loopback(self, request: Request) -> None:
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


def loopback_addresses(addresses: Iterable[Address]) -> frozenset[Address]:
    """Return those of bound addresses that only this host reaches."""
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


def _passwords(file: str) -> dict[str, str]:
    return load_properties(file)


def _tokens(file: str) -> list[str]:
    lines = (line.strip() for line in Path(file).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
