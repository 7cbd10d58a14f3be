"""Access to the workers: addresses, credentials, certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from pyconnect_cli.errors import ContextError, UsageError
from pyconnect_cli.rest.budget import Limits
from pyconnect_cli.rest.masking import mask_url

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Addresses, credentials and certificates. Its repr does not show secrets.

    `admins`: addresses of agents' admin interfaces by their REST addresses, where they differ.
    """

    urls: tuple[str, ...]
    admins: Mapping[str, str] = field(default_factory=dict)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    limits: Limits = field(default_factory=Limits)


def base_url(url: str) -> tuple[str, tuple[str, str] | None]:
    """Split `http://user:password@host:8083/path/` into its address and its credentials."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as exc:
        raise UsageError(f"`{mask_url(url)}` is not an address: {exc}") from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"`{mask_url(url)}` is not an address of a worker", hint="write http://host:8083"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    location = f"{host}:{port}" if port is not None else host
    address = urlunsplit((parts.scheme, location, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return address, None
    return address, (unquote(parts.username), unquote(parts.password or ""))


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Build the TLS context; ContextError names a file that cannot be used."""
    import ssl  # not for plain HTTP

    for what, path in (
        ("ca_file", endpoint.ca_file),
        ("cert", endpoint.cert),
        ("key", endpoint.key),
    ):
        if path:
            try:
                with open(path, "rb"):  # noqa: PTH123 - only whether it can be read
                    pass
            except OSError as exc:
                raise ContextError(f"{what} {path}: cannot be read: {exc.strerror}") from exc
    try:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
        if endpoint.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if endpoint.cert:
            context.load_cert_chain(endpoint.cert, endpoint.key)
    except (ssl.SSLError, ValueError) as exc:
        raise ContextError(f"TLS: a certificate or key cannot be used: {exc}") from exc
    return context
