"""Keys and certificates as PEM texts (RFC 7468). Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable

PEM_MARK = b"-----BEGIN "
_WIDTH = 64


def pem_certificates(certificates: Iterable[bytes]) -> str:
    """Return certificates, given as DER, one behind the other."""
    return "".join(_pem("CERTIFICATE", der) for der in certificates)


def pem_key(key: bytes) -> str:
    """Return a private key, given as DER of PKCS#8 without a password."""
    return _pem("PRIVATE KEY", key)


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
