"""Java's own key store format, JKS. Pure: from bytes to certificates and keys.

Corresponds to ``sun.security.provider.JavaKeyStore`` and ``KeyProtector``. Big-endian:

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

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"

_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_VERSIONS = (1, 2)
_KEY, _TRUSTED = 1, 2
_SEQUENCE, _OCTETS = 0x30, 0x04
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")
"""The algorithm 1.3.6.1.4.1.42.2.17.1.1, as DER."""


class JavaKeyStoreError(ValueError):
    """The bytes are no store, or the password is not theirs; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """A private key under its protection, and its certificates as DER, its own first."""

    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaKeyStore:
    """The content of a store, in its order; certificates are DER."""

    trusted: tuple[bytes, ...]
    keys: tuple[KeyEntry, ...]


def read_java_key_store(data: bytes, password: str | None) -> JavaKeyStore:
    """Read a store; without a password it is not checked that it is whole, as in Java."""
    if password is not None:
        content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        made = hashlib.sha1(_utf16(password) + _WHITENER + content, usedforsecurity=False).digest()
        if not hmac.compare_digest(made, digest):
            raise JavaKeyStoreError("the password is wrong, or the file was changed")
    reader = _Reader(data)
    if reader.take(len(MAGIC)) != MAGIC or (version := reader.number(4)) not in _VERSIONS:
        raise JavaKeyStoreError("it is not a JKS file")
    trusted: list[bytes] = []
    keys: list[KeyEntry] = []
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        reader.sized(2)
        reader.take(8)
        if kind == _KEY:
            protected = reader.sized(4)
            chain = tuple(_certificate(reader, version) for _ in range(reader.number(4)))
            keys.append(KeyEntry(protected=protected, chain=chain))
        elif kind == _TRUSTED:
            trusted.append(_certificate(reader, version))
        else:
            raise JavaKeyStoreError("it holds an entry that is neither key nor certificate")
    return JavaKeyStore(trusted=tuple(trusted), keys=tuple(keys))


def recover_key(protected: bytes, password: str) -> bytes:
    """Return the private key as DER of PKCS#8."""
    content = _Reader(protected).der(_SEQUENCE)
    reader = _Reader(content)
    algorithm = reader.der(_SEQUENCE)
    if not algorithm.startswith(_PROTECTION):
        raise JavaKeyStoreError("its key is protected in a way that JKS does not know")
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
        raise JavaKeyStoreError("the key's password is wrong")
    return bytes(key)


class _Reader:
    """Goes through bytes once; JavaKeyStoreError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise JavaKeyStoreError("it is cut short")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self, size: int) -> bytes:
        """Take bytes after their count, which has `size` bytes."""
        return self.take(self.number(size))

    def der(self, tag: int) -> bytes:
        """Take one DER value of a kind; return what is in it."""
        if self.number(1) != tag:
            raise JavaKeyStoreError("its key is not as JKS writes keys")
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
