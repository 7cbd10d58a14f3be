"""Sockets and TLS contexts of listeners, and the context of requests to other workers.

Sockets are bound before the first request, so that ports are known. Until `listen` connections are
refused, as by Apache's worker: an accepted client would have to wait while the brokers cannot be
reached. Connections never take the last descriptors of the process, which tasks and Kafka's clients
need.

Contexts correspond to ``SSLUtils``. Key and trust stores are PEM, PKCS#12 or JKS files, or PEM
texts, and are read as those of Kafka clients. Settings are those of `WorkerConfig.rest_ssl`.
"""

import contextlib
import errno
import logging
import os
import resource
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyconnect_agent.core.config.listeners import Listener
from pyconnect_agent.core.errors import WorkerConfigError, WorkerStartError
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

BACKLOG = 128
HIGHEST_PORT = 65_535
REFUSALS_LOGGED_AFTER_S = 60.0
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener with its socket; `listener.port` is the bound port."""

    listener: Listener
    socket: socket.socket

    def listen(self) -> None:
        """Let clients connect; raise WorkerStartError if another process has taken the address."""
        try:
            self.socket.listen(BACKLOG)
        except OSError as exc:
            raise _start_error(self.listener, exc) from exc


class ListeningSocket(socket.socket):
    """A socket that closes connections at once while few descriptors are left, and logs it."""

    def __init__(self, family: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._spare = os.open(os.devnull, os.O_RDONLY)
        self._failed_s = self._logged_s = -REFUSALS_LOGGED_AFTER_S
        self._refused = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection for which there is a descriptor."""
        while True:
            try:
                connection, address = super().accept()
            except OSError as exc:
                if exc.errno not in _OUT_OF_RESOURCES:
                    raise
                if self._refuse_next():
                    continue
                # After an error the event loop pauses for a second, but first it tries to accept as
                # many connections as the backlog has places, each with an error.
                now_s = time.monotonic()
                if now_s - self._failed_s < 1:
                    raise BlockingIOError from exc
                self._failed_s = now_s
                raise
            # A new descriptor has the lowest free number, so this leaves a quarter of them to
            # others.
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            if limit == resource.RLIM_INFINITY or connection.fileno() < limit - max(limit // 4, 32):
                return connection, address
            connection.close()
            self._log_refusal()

    def close(self) -> None:
        super().close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _refuse_next(self) -> bool:
        """Close the next connection, with the descriptor that was kept for this."""
        if self._spare < 0:
            return False
        os.close(self._spare)
        self._spare = -1
        try:
            connection, _ = super().accept()
            connection.close()
            self._log_refusal()
        except BlockingIOError:
            pass
        except OSError:
            return False
        finally:
            # Another thread may have taken it.
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)
        return True

    def _log_refusal(self) -> None:
        self._refused += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= REFUSALS_LOGGED_AFTER_S:
            LOG.warning(
                "connections are refused because few file descriptors are left",
                extra={
                    "refused": self._refused,
                    "limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
                },
            )
            self._logged_s, self._refused = now_s, 0


def bind(listener: Listener) -> BoundListener:
    """Bind a listener; port 0 takes a free port. Raises WorkerStartError."""
    try:
        if not 0 <= listener.port <= HIGHEST_PORT:
            # getaddrinfo would cut the port to 16 bits.
            raise OSError(errno.EINVAL, f"port out of range: {listener.port}")
        if listener.host:
            found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
            # Of several addresses the first of IPv4 is taken, as in Java.
            family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
            bound = _bound(family, address)
        else:
            bound = _every_interface(listener.port)
    # UnicodeError: the host name is not possible.
    except (OSError, UnicodeError) as exc:
        raise _start_error(listener, exc) from exc
    port = bound.getsockname()[1]
    return BoundListener(Listener(protocol=listener.protocol, host=listener.host, port=port), bound)


def local_address() -> str:
    """Return the address for other hosts if no listener names one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _start_error(listener: Listener, error: Exception) -> WorkerStartError:
    reason = getattr(error, "strerror", None) or error
    return WorkerStartError(
        f"Unable to listen on {listener.protocol}://{listener.netloc}: {reason}"
    )


def _every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return _bound(socket.AF_INET6, ("::", port), dualstack=True)
        except OSError:
            if _is_taken(port):
                raise
    return _bound(socket.AF_INET, ("", port))


def _is_taken(port: int) -> bool:
    """Return whether the port is taken, and not IPv6 switched off."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def _bound(family: int, address: tuple[object, ...], *, dualstack: bool = False) -> socket.socket:
    bound = ListeningSocket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dualstack)
        bound.bind((str(address[0]), int(str(address[1]))))
    except BaseException:
        bound.close()
        raise
    return bound


Settings = Mapping[str, object]

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_REPEAT_AFTER_S = 60.0
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def server_context(settings: Settings) -> ssl.SSLContext:
    """Return the context of an `https` listener; WorkerConfigError names the fault."""
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
    """Return the context of requests to other workers; without a store it trusts the system's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_versions(context, settings)
    _load_own_certificate(context, settings)
    if not _load_trusted(context, settings):
        context.load_default_certs()
    context.check_hostname = bool(settings.get("ssl.endpoint.identification.algorithm"))
    return context


def refusal_text(settings: Settings, reason: str) -> str:
    """Return whose certificate may be refused on a failed connection to another worker."""
    return refused_certificate(reason, _tls(settings))


def _logging_failures(settings: Settings) -> type[ssl.SSLObject]:
    """Return a connection class that logs failed handshakes, each reason at intervals.

    asyncio does not log them, and a client often only sees that the connection ends.
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
    _load_stores(context, replace(tls, trust=None))
    return tls.identity is not None


def _load_trusted(context: ssl.SSLContext, settings: Settings) -> bool:
    tls = _tls(settings)
    _load_stores(context, replace(tls, identity=None))
    return tls.trust is not None


def _tls(settings: Settings) -> Tls:
    text = _setting(settings, "ssl.truststore.certificates")
    key = _setting(settings, "ssl.keystore.key")
    chain = _setting(settings, "ssl.keystore.certificate.chain")
    pem = PemIdentity(key=key, chain=chain) if key and chain else None
    return Tls(
        trust=PemCertificates(text=text) if text else _store(settings, TRUST_STORE),
        identity=_store(settings, KEY_STORE) or pem,
        key_password=_setting(settings, "ssl.key.password")
        or _setting(settings, "ssl.keystore.password"),
    )


def _store(settings: Settings, store: str) -> StoreFile | None:
    """Return a store; the content of its file decides the type, because the default is JKS."""
    location = _setting(settings, f"{store}.location")
    if location is None:
        return None
    password = _setting(settings, f"{store}.password")
    return StoreFile(store=store, location=location, type=None, password=password)


def _load_stores(context: ssl.SSLContext, tls: Tls) -> None:
    try:
        load_stores(context, tls)
    except ClientPropertyError as exc:
        raise WorkerConfigError(f"TLS of the REST server: {exc}") from exc


def _setting(settings: Settings, key: str) -> str | None:
    value = settings.get(key)
    value = getattr(value, "value", value)
    return str(value) if value else None
