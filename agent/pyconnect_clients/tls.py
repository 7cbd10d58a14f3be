"""Makes TLS contexts of Python's `ssl`, for clients and servers with Python's sockets. Edge."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import with_pem
from pyconnect_clients.security import (
    KEY_STORE,
    TRUST_STORE,
    PemCertificates,
    PemFile,
    PemIdentity,
    StoreFile,
    Tls,
)


def client_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a client's connections; raises ClientPropertyError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.checks_host_name
    if tls.trust is None:
        context.load_default_certs()
    load_stores(context, tls)
    return context


def load_stores(context: ssl.SSLContext, tls: Tls) -> None:
    """Load the given trusted certificates and the given key into a context of either side.

    Raises ClientPropertyError for what cannot be read.
    """
    readable = with_pem(tls)
    try:
        match readable.trust:
            case PemCertificates(text=text):
                context.load_verify_locations(cadata=text)
            case PemFile(location=location):
                context.load_verify_locations(cafile=location)
    except (OSError, ValueError) as exc:
        raise _unusable(TRUST_STORE, exc) from exc
    try:
        match readable.identity:
            case PemFile(location=location):
                _identify(context, location, readable.key_password)
            case PemIdentity(key=key, chain=chain):
                # The ssl module takes only files; no other user may read this one.
                with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                    file.write(f"{key}\n{chain}\n")
                    file.flush()
                    _identify(context, file.name, readable.key_password)
    except (OSError, ValueError) as exc:
        raise _unusable(KEY_STORE, exc) from exc


def refused_certificate(reason: str, tls: Tls) -> str:
    """Say which side refuses a certificate, and from which files those of this side are.

    `reason`: the client's text about a connection that failed. The other side's refusal often only
    shows as a closed connection.
    """
    if "verify failed" in reason:
        trusted = "the system's certificates" if tls.trust is None else _source(tls.trust)
        return f"this side does not accept the other side's certificate; it trusts {trusted}"
    if "did not return a certificate" in reason:
        return "the other side has shown no certificate, which this side asks for"
    if tls.identity is None:
        return f"this side has no certificate ({KEY_STORE}.*), which the other side may ask for"
    return f"the other side may not accept this side's certificate: {_source(tls.identity)}" + (
        _validity(tls)
    )


def _source(store: PemCertificates | PemFile | StoreFile | PemIdentity) -> str:
    return store.location if isinstance(store, (PemFile, StoreFile)) else "the text in the settings"


def _validity(tls: Tls) -> str:
    from cryptography.x509 import load_pem_x509_certificates

    try:
        match with_pem(tls).identity:
            case PemFile(location=location):
                chain = Path(location).read_bytes()
            case PemIdentity(chain=text):
                chain = text.encode()
            case _:
                return ""
        end = load_pem_x509_certificates(chain)[0].not_valid_after_utc
    except (OSError, ValueError, ClientPropertyError):
        return ", which cannot be read"
    return f", which {'has expired at' if end <= datetime.now(UTC) else 'is valid until'} {end}"


def _identify(context: ssl.SSLContext, location: str, password: str | None) -> None:
    # Without a callable OpenSSL would ask for a missing password on the terminal.
    context.load_cert_chain(location, password=lambda: password or "")


def _unusable(store: str, error: OSError | ValueError) -> ClientPropertyError:
    where = getattr(error, "filename", None)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ClientPropertyError(
        f"{store}.*",
        f"the PEM {f'file {where}' if where else 'text or file'} cannot be used: {reason}",
        "are path, content and ssl.key.password right?",
    )
