"""TLS contexts of the REST server and of requests to other workers (spec rest-api.md §10).

Layer: rest. Corresponds to ``SSLUtils``. Key and trust stores are PEM, in a file or as text; Java's
own store formats are refused with what to do. Settings are those of `WorkerConfig.rest_ssl`.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyconnect_agent.core.errors import WorkerConfigError

LOG = logging.getLogger(__name__)

Settings = Mapping[str, object]

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_PEM_MARK = b"-----BEGIN "


def server_context(settings: Settings) -> ssl.SSLContext:
    """Return the context of an `https` listener; WorkerConfigError says what is wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, settings)
    if not _load_own_certificate(context, settings):
        raise WorkerConfigError(
            "An https listener needs a certificate: set ssl.keystore.location, or ssl.keystore.key "
            "and ssl.keystore.certificate.chain (with the prefix listeners.https. when any key "
            "has it)"
        )
    context.verify_mode = _CLIENT_AUTH[str(settings.get("ssl.client.auth") or "none").lower()]
    if context.verify_mode is not ssl.CERT_NONE and not _load_trusted(context, settings):
        raise WorkerConfigError(
            "ssl.client.auth asks for client certificates: set ssl.truststore.location or "
            "ssl.truststore.certificates"
        )
    if settings.get("ssl.cipher.suites"):
        LOG.warning("ssl.cipher.suites is ignored: the REST server chooses its cipher suites")
    return context


def client_context(settings: Settings) -> ssl.SSLContext:
    """Return the context of requests to other workers; it trusts the system without a store."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_versions(context, settings)
    _load_own_certificate(context, settings)
    if not _load_trusted(context, settings):
        context.load_default_certs()
    context.check_hostname = bool(settings.get("ssl.endpoint.identification.algorithm"))
    return context


def _set_versions(context: ssl.SSLContext, settings: Settings) -> None:
    names = settings.get("ssl.enabled.protocols")
    versions = [_VERSIONS[name] for name in names or () if name in _VERSIONS]  # type: ignore[attr-defined]  # a list, by its definition
    context.minimum_version = min(versions, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(versions, default=ssl.TLSVersion.TLSv1_3)


def _load_own_certificate(context: ssl.SSLContext, settings: Settings) -> bool:
    key = _text(settings, "ssl.keystore.key")
    chain = _text(settings, "ssl.keystore.certificate.chain")
    location = _text(settings, "ssl.keystore.location")
    password = _text(settings, "ssl.key.password") or _text(settings, "ssl.keystore.password")
    if not location and not (key and chain):
        return False
    with ExitStack() as files:
        if location:
            path = _pem_file(location, "ssl.keystore.location")
        else:
            path = files.enter_context(_private_file(f"{key}\n{chain}\n"))
        try:
            # An empty password would make OpenSSL ask for one on the terminal.
            context.load_cert_chain(path, password=lambda: password or "")
        except (ssl.SSLError, OSError) as exc:
            raise WorkerConfigError(
                f"The key and certificates of the REST server cannot be read ({exc}): check "
                "ssl.keystore.* and ssl.key.password"
            ) from exc
    return True


def _load_trusted(context: ssl.SSLContext, settings: Settings) -> bool:
    text = _text(settings, "ssl.truststore.certificates")
    location = _text(settings, "ssl.truststore.location")
    if not text and not location:
        return False
    try:
        if text:
            context.load_verify_locations(cadata=text)
        else:
            path = _pem_file(str(location), "ssl.truststore.location")
            context.load_verify_locations(cafile=str(path))
    except (ssl.SSLError, OSError) as exc:
        raise WorkerConfigError(
            f"The trusted certificates cannot be read ({exc}): check ssl.truststore.*"
        ) from exc
    return True


def _pem_file(location: str, key: str) -> Path:
    path = Path(location)
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise WorkerConfigError(f"{key} cannot be read: {exc}") from exc
    if _PEM_MARK not in content:
        raise WorkerConfigError(
            f"{key} {location} is not PEM: convert a Java key store with `keytool "
            "-importkeystore -deststoretype PKCS12` and `openssl pkcs12 -in ... -out ...`"
        )
    return path


@contextmanager
def _private_file(text: str) -> Iterator[Path]:
    """Hold text in a file that only this user reads: ssl takes nothing but files."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(text)
        file.flush()
        yield Path(file.name)


def _text(settings: Settings, key: str) -> str | None:
    value = settings.get(key)
    value = getattr(value, "value", value)
    return str(value) if value else None
