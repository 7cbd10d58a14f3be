"""Reads Java's trust and key stores for clients that take PEM only, and makes TLS contexts. Edge.

The content decides between JKS, PKCS#12 and PEM; for the first two it does in Java, too. Secrets
stay in memory; only Python's `ssl`, which takes files, gets a key in a file while it is loaded.

JKS is Java's own format (``sun.security.provider.JavaKeyStore``, ``KeyProtector``). Big-endian:

    store        magic FEEDFEED, u4 version (1 or 2), u4 number of entries, entries, digest
    entry        u4 kind, text alias, u8 time, then
      1 key      u4 length, protected key; u4 number of certificates, certificates
      2 trusted  certificate
    certificate  text type (version 2 only), u4 length, DER
    text         u2 length, modified UTF-8
    digest       SHA-1 of the password in UTF-16, "Mighty Aphrodite" and everything before

A protected key is DER: its algorithm, and an octet string of 20 bytes salt, the key as PKCS#8
combined with a stream of SHA-1 digests, and 20 bytes SHA-1 of password and key.
"""

import base64
import hashlib
import hmac
import ssl
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import (
    KEY_STORE,
    TRUST_STORE,
    PemCertificates,
    PemFile,
    PemIdentity,
    Security,
    StoreFile,
    Tls,
)

MAGIC = b"\xfe\xed\xfe\xed"

_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_VERSIONS = (1, 2)
_KEY, _TRUSTED = 1, 2
_SEQUENCE, _OCTETS = 0x30, 0x04
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")
"""The algorithm 1.3.6.1.4.1.42.2.17.1.1, as DER."""


class _StoreError(ValueError):
    """The error of bytes that are not a store, or of a wrong password; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """Certificates and keys as DER; each key with its chain, its own certificate first.

    A key is None if it was not asked for.
    """

    trusted: tuple[bytes, ...]
    keys: tuple[tuple[bytes | None, tuple[bytes, ...]], ...] = field(repr=False)


def _jks(data: bytes, password: str | None, key_password: str | None) -> _Content:
    """Read a store; without a password its integrity is not checked, as in Java."""
    if password is not None:
        content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        made = hashlib.sha1(_utf16(password) + _WHITENER + content, usedforsecurity=False).digest()
        if not hmac.compare_digest(made, digest):
            raise _StoreError("the password is wrong, or the file was changed")
    reader = _Reader(data)
    if reader.take(len(MAGIC)) != MAGIC or (version := reader.number(4)) not in _VERSIONS:
        raise _StoreError("it is not a JKS file")
    trusted: list[bytes] = []
    keys: list[tuple[bytes | None, tuple[bytes, ...]]] = []
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        reader.sized(2)
        reader.take(8)
        if kind == _KEY:
            protected = reader.sized(4)
            chain = tuple(_certificate(reader, version) for _ in range(reader.number(4)))
            key = None if key_password is None else _recovered_key(protected, key_password)
            keys.append((key, chain))
        elif kind == _TRUSTED:
            trusted.append(_certificate(reader, version))
        else:
            raise _StoreError("it holds an entry that is neither key nor certificate")
    return _Content(trusted=tuple(trusted), keys=tuple(keys))


def _recovered_key(protected: bytes, password: str) -> bytes:
    """Return the private key as DER of PKCS#8."""
    content = _Reader(protected).der(_SEQUENCE)
    reader = _Reader(content)
    algorithm = reader.der(_SEQUENCE)
    if not algorithm.startswith(_PROTECTION):
        raise _StoreError("its key is protected in a way that JKS does not know")
    octets = reader.der(_OCTETS)
    secret = _utf16(password)
    link, hidden, check = (
        octets[:_DIGEST_BYTES],
        octets[_DIGEST_BYTES:-_DIGEST_BYTES],
        octets[-_DIGEST_BYTES:],
    )
    key = bytearray()
    for start in range(0, len(hidden), _DIGEST_BYTES):
        link = hashlib.sha1(secret + link, usedforsecurity=False).digest()
        block = hidden[start : start + _DIGEST_BYTES]
        key += bytes(left ^ right for left, right in zip(block, link, strict=False))
    made = hashlib.sha1(secret + key, usedforsecurity=False).digest()
    if not hmac.compare_digest(made, check):
        raise _StoreError("the key's password is wrong")
    return bytes(key)


class _Reader:
    """A reader that goes through bytes once; _StoreError if they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise _StoreError("it is cut short")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self, size: int) -> bytes:
        """Take bytes that follow their count, which has `size` bytes."""
        return self.take(self.number(size))

    def der(self, tag: int) -> bytes:
        """Take one DER value of a kind; return its content."""
        if self.number(1) != tag:
            raise _StoreError("its key is not as JKS writes keys")
        length = self.number(1)
        if length >= 0x80:
            length = self.number(length - 0x80)
        return self.take(length)


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == _VERSIONS[-1]:
        reader.sized(2)
    return reader.sized(4)


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


PEM_MARK = b"-----BEGIN "
_WIDTH = 64


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


_PKCS12_MARK = b"\x30"


def with_stores_read(security: Security) -> Security:
    """Return the same settings with PEM texts in place of store files."""
    return security if security.tls is None else replace(security, tls=with_pem(security.tls))


def with_pem(tls: Tls) -> Tls:
    """Return the same settings with PEM texts in place of store files.

    Raises ClientPropertyError for a store that cannot be read or lacks the needed entries.
    """
    if isinstance(tls.trust, StoreFile):
        store = tls.trust
        data = _data(store)
        if PEM_MARK in data:
            text = _pem_text(store, data)
        else:
            content = _content(store, data, key_password=None)
            # Java trusts the certificate of a key's owner, too.
            trusted = (*content.trusted, *(chain[0] for _, chain in content.keys if chain))
            if not trusted:
                raise _unusable(store, "there is no certificate in it")
            text = "".join(_pem("CERTIFICATE", der) for der in trusted)
        tls = replace(tls, trust=PemCertificates(text=text))
    if isinstance(tls.identity, StoreFile):
        store = tls.identity
        data = _data(store)
        if PEM_MARK in data:
            text = _pem_text(store, data)
            tls = replace(tls, identity=PemIdentity(key=text, chain=text))
        else:
            if store.password is None:
                raise ClientPropertyError(
                    f"{store.store}.password", f"it is missing, and {store.location} needs one"
                )
            content = _content(store, data, key_password=tls.key_password or store.password)
            if len(content.keys) != 1:
                number = len(content.keys) or "no"
                raise _unusable(
                    store, f"there are {number} keys in it", "make one with one private key"
                )
            [(key, chain)] = content.keys
            assert key is not None
            certificates = "".join(_pem("CERTIFICATE", der) for der in chain)
            identity = PemIdentity(key=_pem("PRIVATE KEY", key), chain=certificates)
            tls = replace(tls, identity=identity, key_password=None)
    return tls


def is_pem(location: str) -> bool:
    """Return whether a file is PEM; False if it cannot be read, which its reader then reports."""
    try:
        return PEM_MARK in Path(location).read_bytes()
    except OSError:
        return False


def _data(store: StoreFile) -> bytes:
    try:
        return Path(store.location).read_bytes()
    except OSError as exc:
        raise _unusable(store, exc.strerror or type(exc).__name__) from exc


def _pem_text(store: StoreFile, data: bytes) -> str:
    if store.type is not None:
        raise ClientPropertyError(
            f"{store.store}.type",
            f"it is {store.type}, and {store.location} is PEM",
            f"set {store.store}.type=PEM",
        )
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise _unusable(store, "it is PEM with characters that are not UTF-8") from exc


def _content(store: StoreFile, data: bytes, *, key_password: str | None) -> _Content:
    """Read JKS or PKCS#12; keys of JKS are read only if `key_password` is given."""
    try:
        if data.startswith(MAGIC):
            return _jks(data, store.password, key_password)
        if data.startswith(_PKCS12_MARK):
            return _pkcs12(data, store.password)
    except _StoreError as exc:
        raise _unusable(store, str(exc), "are its path and passwords right?") from exc
    raise _unusable(
        store,
        "it is neither JKS nor PKCS#12 nor PEM",
        "keytool -importkeystore -deststoretype PKCS12 converts other stores of Java's",
    )


def _pkcs12(data: bytes, password: str | None) -> _Content:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as exc:
        raise _StoreError("it is not a PKCS#12 file, or the password is wrong") from exc
    trusted = [found.certificate for found in store.additional_certs]
    chain = [] if store.cert is None else [store.cert.certificate]
    # A store has one set of certificates; those that lead up from the key's are its chain.
    while chain and chain[-1].issuer != chain[-1].subject:
        issuers = [found for found in trusted if found.subject == chain[-1].issuer]
        if not issuers:
            break
        trusted.remove(issuers[0])
        chain.append(issuers[0])
    keys: tuple[tuple[bytes, tuple[bytes, ...]], ...] = ()
    if store.key is not None:
        key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        keys = ((key, tuple(found.public_bytes(Encoding.DER) for found in chain)),)
    return _Content(trusted=tuple(found.public_bytes(Encoding.DER) for found in trusted), keys=keys)


def _unusable(store: StoreFile, why: str, way_out: str | None = None) -> ClientPropertyError:
    return ClientPropertyError(
        f"{store.store}.location", f"{store.location} cannot be used: {why}", way_out
    )


def client_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a client's connections; raise ClientPropertyError if that fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.checks_host_name
    if tls.trust is None:
        context.load_default_certs()
    load_stores(context, tls)
    return context


def load_stores(context: ssl.SSLContext, tls: Tls) -> None:
    """Load the trusted certificates and the key into a context of either side.

    Raises ClientPropertyError for files that cannot be read.
    """
    readable = with_pem(tls)
    try:
        match readable.trust:
            case PemCertificates(text=text):
                context.load_verify_locations(cadata=text)
            case PemFile(location=location):
                context.load_verify_locations(cafile=location)
    except (OSError, ValueError) as exc:
        raise _unusable_pem(TRUST_STORE, exc) from exc
    try:
        match readable.identity:
            case PemFile(location=location):
                _identify(context, location, readable.key_password)
            case PemIdentity(key=key, chain=chain):
                # The ssl module takes only files; other users must not read this one.
                with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                    file.write(f"{key}\n{chain}\n")
                    file.flush()
                    _identify(context, file.name, readable.key_password)
    except (OSError, ValueError) as exc:
        raise _unusable_pem(KEY_STORE, exc) from exc


def refused_certificate(reason: str, tls: Tls) -> str:
    """Return which side refuses a certificate, and the files of this side's.

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
    from cryptography.x509 import load_pem_x509_certificates

    try:
        match with_pem(tls).identity:
            case PemFile(location=location):
                chain = Path(location).read_bytes()
            case PemIdentity(chain=text):
                chain = text.encode()
        end = load_pem_x509_certificates(chain)[0].not_valid_after_utc
        ended = end <= datetime.now(UTC)
        validity = f"which {'has expired at' if ended else 'is valid until'} {end}"
    except (OSError, ValueError, ClientPropertyError):
        validity = "which cannot be read"
    source = _source(tls.identity)
    return f"the other side may not accept this side's certificate: {source}, {validity}"


def _source(store: PemCertificates | PemFile | StoreFile | PemIdentity) -> str:
    return store.location if isinstance(store, (PemFile, StoreFile)) else "the text in the settings"


def _identify(context: ssl.SSLContext, location: str, password: str | None) -> None:
    # Without a callable OpenSSL would ask for a missing password on the terminal.
    context.load_cert_chain(location, password=lambda: password or "")


def _unusable_pem(store: str, error: OSError | ValueError) -> ClientPropertyError:
    where = getattr(error, "filename", None)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ClientPropertyError(
        f"{store}.*",
        f"the PEM {f'file {where}' if where else 'text or file'} cannot be used: {reason}",
        "are path, content and ssl.key.password right?",
    )
