"""TLS contexts of the REST server and of requests to other workers.

Corresponds to ``SSLUtils``. Key and trust stores are PEM, PKCS#12 or JKS files, or PEM texts, and
are read as those of Kafka clients. Settings are those of `WorkerConfig.rest_ssl`.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import replace

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import load_stores, refused_certificate
from pyconnect_clients.security import (
    KEY_STORE,
    TRUST_STORE,
    PemCertificates,
    PemIdentity,
    StoreFile,
    Tls,
)

LOG = logging.getLogger(__name__)

Settings = Mapping[str, object]

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_REPEAT_AFTER_S = 60.0
_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def server_context(settings: Settings) -> ssl.SSLContext:
    """Return the context of an `https` listener; WorkerConfigError names a fault."""
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
    context.sslobject_class = _logging_failures(settings)
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


def refusal_text(settings: Settings, reason: str) -> str:
    """Say whose certificate may be refused on a connection to another worker that has failed."""
    return refused_certificate(reason, _tls(settings))


def _logging_failures(settings: Settings) -> type[ssl.SSLObject]:
    """Return a class of connections that logs failed handshakes, each reason at intervals.

    asyncio logs none of them, and a client often only sees that the connection ends.
    """
    told_s: dict[str, float] = {}

    class LoggingConnection(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as exc:
                now_s, reason = time.monotonic(), str(exc)
                if now_s - told_s.get(reason, -_REPEAT_AFTER_S) >= _REPEAT_AFTER_S:
                    told_s[reason] = now_s
                    about = "certificate" in reason.lower() or "unknown ca" in reason
                    LOG.warning(
                        "TLS handshake with a client failed",
                        extra={"reason": reason}
                        | ({"certificates": refusal_text(settings, reason)} if about else {}),
                    )
                raise

    return LoggingConnection


def _set_versions(context: ssl.SSLContext, settings: Settings) -> None:
    names = settings.get("ssl.enabled.protocols")
    versions = [_VERSIONS[name] for name in names or () if name in _VERSIONS]  # type: ignore[attr-defined]  # a list, by its definition
    context.minimum_version = min(versions, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(versions, default=ssl.TLSVersion.TLSv1_3)


def _load_own_certificate(context: ssl.SSLContext, settings: Settings) -> bool:
    tls = _tls(settings)
    _load(context, replace(tls, trust=None))
    return tls.identity is not None


def _load_trusted(context: ssl.SSLContext, settings: Settings) -> bool:
    tls = _tls(settings)
    _load(context, replace(tls, identity=None))
    return tls.trust is not None


def _tls(settings: Settings) -> Tls:
    text = _text(settings, "ssl.truststore.certificates")
    key = _text(settings, "ssl.keystore.key")
    chain = _text(settings, "ssl.keystore.certificate.chain")
    pem = PemIdentity(key=key, chain=chain) if key and chain else None
    return Tls(
        trust=PemCertificates(text=text) if text else _store(settings, TRUST_STORE),
        identity=_store(settings, KEY_STORE) or pem,
        key_password=_text(settings, "ssl.key.password")
        or _text(settings, "ssl.keystore.password"),
    )


def _store(settings: Settings, store: str) -> StoreFile | None:
    """Return a store; the content of its file decides the type, because the default is JKS."""
    location = _text(settings, f"{store}.location")
    if location is None:
        return None
    password = _text(settings, f"{store}.password")
    return StoreFile(store=store, location=location, type=None, password=password)


def _load(context: ssl.SSLContext, tls: Tls) -> None:
    try:
        load_stores(context, tls)
    except ClientPropertyError as exc:
        raise WorkerConfigError(f"TLS of the REST server: {exc}") from exc


def _text(settings: Settings, key: str) -> str | None:
    value = settings.get(key)
    value = getattr(value, "value", value)
    return str(value) if value else None
