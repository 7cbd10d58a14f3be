"""Session keys: the signatures of requests between workers, and the leader's new keys (KIP-507).

Corresponds to ``InternalRequestSignature``, the checks of ``DistributedHerder`` and the key part of
its tick. A signature is the MAC of the raw request body (of zero bytes for an empty one) under the
session key. Method, path and time are not covered. The leader keeps the key fresh only while the
group runs the `sessioned` protocol.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.errors import BadRequestError, ForbiddenError, ServiceUnavailableError
from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder.effects import WriteSessionKey
from pyconnect_agent.core.herder.state import SessionKeySettings, WritePrivilege
from pyconnect_agent.core.herder.steps import Timer, Waiter
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey

SIGNATURE_HEADER = "X-Connect-Authorization"
ALGORITHM_HEADER = "X-Connect-Request-Signature-Algorithm"

_DIGESTS = {
    "hmacmd5": "md5",
    "hmacsha1": "sha1",
    "hmacsha224": "sha224",
    "hmacsha256": "sha256",
    "hmacsha384": "sha384",
    "hmacsha512": "sha512",
    "hmacsha3-224": "sha3_224",
    "hmacsha3-256": "sha3_256",
    "hmacsha3-384": "sha3_384",
    "hmacsha3-512": "sha3_512",
}
# For the two oldest algorithms, Java generates keys with the length of a block, not of a digest.
_BLOCK_LONG_KEYS = frozenset({"hmacmd5", "hmacsha1"})
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64_VALUES = {ord(character): value for value, character in enumerate(_BASE64)}
_PADDING = ord("=")


def mac_of(body: bytes, *, key: bytes, algorithm: str) -> bytes:
    """Return the MAC of a body; KeyError for an unknown algorithm."""
    return hmac.new(key, body, _DIGESTS[algorithm.lower()]).digest()


def signature_headers(body: bytes, *, session_key: SessionKey, algorithm: str) -> dict[str, str]:
    """Return the headers that sign a request of this worker."""
    mac = mac_of(body, key=session_key.key, algorithm=algorithm)
    return {SIGNATURE_HEADER: b64encode(mac).decode(), ALGORITHM_HEADER: algorithm}


def verify_request(
    body: bytes,
    headers: Mapping[str, str],
    *,
    session_key: SessionKey | None,
    permitted_algorithms: Sequence[str],
) -> None:
    """Refuse a request unless it is signed with the newest session key.

    `headers` must ignore case, or have lower-case names. Raises BadRequestError, also for text that
    is not Base64, ServiceUnavailableError (no key read yet) or ForbiddenError.
    """
    algorithm, encoded = _header(headers, ALGORITHM_HEADER), _header(headers, SIGNATURE_HEADER)
    if algorithm is None or encoded is None:
        raise BadRequestError("Internal request missing required signature")
    # The case of the algorithm does not matter, as in Java.
    if algorithm.lower() not in _DIGESTS:
        raise BadRequestError(f"Algorithm {algorithm} not available")
    mac = decode_base64(encoded.encode("latin-1", "replace"))
    if algorithm not in permitted_algorithms:
        raise BadRequestError(
            f"This worker does not support the '{algorithm}' key signing algorithm used "
            "by other workers. This worker is currently configured to use: "
            f"[{', '.join(permitted_algorithms)}]. Check that all workers' configuration files "
            "permit the same set of signature algorithms, and correct any misconfigured worker "
            "and restart it."
        )
    if session_key is None:
        raise ServiceUnavailableError(
            "This worker is still starting up and has not been able to read a session key from "
            "the config topic yet"
        )
    expected = mac_of(body, key=session_key.key, algorithm=algorithm)
    if not hmac.compare_digest(expected, mac):
        raise ForbiddenError("Internal request contained invalid signature.")


def key_length_bytes(algorithm: str, size_bits: int | None) -> int:
    """Return the length of a new key in bytes; `size_bits` is `inter.worker.key.size`."""
    if size_bits is not None:
        return (size_bits + 7) // 8
    name = algorithm.lower()
    digest = hashlib.new(_DIGESTS[name], usedforsecurity=False)
    return digest.block_size if name in _BLOCK_LONG_KEYS else digest.digest_size


def needs_new_key(current: SessionKey | None, settings: SessionKeySettings, now_ms: int) -> bool:
    """Return whether the leader must write a session key: none, too old, or made differently.

    A key from the future was made while a clock was wrong, and would hardly ever get too old.
    """
    return (
        current is None
        or not -settings.ttl_ms <= now_ms - current.created_ms < settings.ttl_ms
        or current.algorithm != settings.algorithm
        or len(current.key) != key_length_bytes(settings.algorithm, settings.size_bits)
    )


def decode_base64(encoded: bytes) -> bytes:
    """Return the bytes of standard Base64 text, the padding optional, with Java's error texts.

    Raises BadRequestError.
    """
    if not encoded:
        return b""
    if len(encoded) < 2:
        raise BadRequestError("Input byte[] should at least have 2 bytes for base64 bytes")
    bits = 0
    in_unit = 0
    decoded = bytearray()
    position = 0
    while position < len(encoded):
        byte = encoded[position]
        position += 1
        if byte == _PADDING:
            if in_unit == 2 and position < len(encoded) and encoded[position] == _PADDING:
                position += 1
            elif in_unit in {0, 2}:
                raise BadRequestError("Input byte array has wrong 4-byte ending unit")
            break
        if byte not in _BASE64_VALUES:
            signed = byte - 256 if byte > 127 else byte
            raise BadRequestError(f"Illegal base64 character {signed:x}")
        bits = bits << 6 | _BASE64_VALUES[byte]
        in_unit += 1
        if in_unit == 4:
            decoded += bits.to_bytes(3, "big")
            bits = in_unit = 0
    if in_unit == 1:
        raise BadRequestError("Last unit does not have enough valid bits")
    if in_unit:
        spare_bits = in_unit * 6 % 8
        decoded += (bits >> spare_bits).to_bytes(in_unit - 1, "big")
    if position < len(encoded):
        raise BadRequestError(f"Input byte array has incorrect ending byte at {position}")
    return bytes(decoded)


def _header(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name)
    return headers.get(name.lower()) if value is None else value


RETRY_MS = 1_000


def keep_fresh(turn: Turn) -> None:
    """Write a new key when there is none, or the key is too old or of another algorithm."""
    state, settings = turn.state, turn.state.settings.session_key
    if (
        settings is None
        or state.writing_session_key
        or not state.serving
        or not state.is_leader
        or state.privilege is not WritePrivilege.HELD
        or state.membership is None
        or state.membership.assignment.version != ProtocolVersion.SESSIONED
        or not needs_new_key(state.snapshot.session_key, settings, turn.now_ms)
    ):
        return
    turn.update(writing_session_key=True)
    length_bytes = key_length_bytes(settings.algorithm, settings.size_bits)
    turn.ask(WriteSessionKey(algorithm=settings.algorithm, length_bytes=length_bytes), KeyWritten())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWritten(Waiter):
    """The wait until a session key is written and in the snapshot."""

    def done(self, turn: Turn, result: Any) -> None:
        turn.update(writing_session_key=False)
        watch(turn)

    def failed(self, turn: Turn, error: Exception) -> None:
        turn.wake_at(turn.now_ms + RETRY_MS, SessionKeyDue())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeyDue(Timer):
    """The time to check the session key; `keep_fresh` checks and renews it in every turn."""

    def due(self, turn: Turn) -> None:
        """Let a failed write be repeated."""
        turn.update(writing_session_key=False)


def watch(turn: Turn) -> None:
    """Set a timer for the end of the current key's lifetime, as no other event may come by then."""
    settings, key = turn.state.settings.session_key, turn.state.snapshot.session_key
    if settings is not None and key is not None:
        turn.wake_at(key.created_ms + settings.ttl_ms, SessionKeyDue())
