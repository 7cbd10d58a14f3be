"""Signatures between workers (KIP-507)."""

import contextlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.errors import BadRequestError, ForbiddenError
from pyconnect_agent.core.herder.session_keys import (
    decode_base64,
    key_length_bytes,
    mac_of,
    needs_new_key,
    signature_headers,
    verify_request,
)
from pyconnect_agent.core.herder.state import SessionKeySettings
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from tests.support.cases import cases

KEY = SessionKey(key=b"k" * 32, algorithm="HmacSHA256", created_ms=1_000)
PERMITTED = ("HmacSHA256", "HmacSHA1")


def test_macs_are_those_of_rfc_4231_and_the_key_is_hidden() -> None:
    """A MAC is that of the RFC's test case 2, and no text form shows the key."""
    mac = mac_of(b"what do ya want for nothing?", key=b"Jefe", algorithm="HmacSHA256")
    assert mac.hex() == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert "kkk" not in repr(KEY)


@given(body=st.binary(), algorithm=st.sampled_from(PERMITTED))
def test_signed_requests_are_accepted(body: bytes, algorithm: str) -> None:
    """Any signed body is accepted under a permitted algorithm, with header names in any case."""
    headers = signature_headers(body, session_key=KEY, algorithm=algorithm)
    lower = {name.lower(): value for name, value in headers.items()}
    for given_headers in (headers, lower):
        verify_request(body, given_headers, session_key=KEY, permitted_algorithms=PERMITTED)


@given(body=st.binary(min_size=1), position=st.integers(min_value=0))
def test_a_changed_body_is_refused(body: bytes, position: int) -> None:
    """A request whose body differs in one bit from the signed one is refused."""
    headers = signature_headers(body, session_key=KEY, algorithm="HmacSHA256")
    changed = bytearray(body)
    changed[position % len(body)] ^= 1
    with pytest.raises(ForbiddenError):
        verify_request(bytes(changed), headers, session_key=KEY, permitted_algorithms=PERMITTED)


def test_a_key_that_was_replaced_is_no_longer_valid() -> None:
    """A signature with an older key is refused."""
    headers = signature_headers(b"[]", session_key=KEY, algorithm="HmacSHA256")
    newer = SessionKey(key=b"n" * 32, algorithm="HmacSHA256", created_ms=2_000)
    with pytest.raises(ForbiddenError, match=r"^Internal request contained invalid signature\.$"):
        verify_request(b"[]", headers, session_key=newer, permitted_algorithms=PERMITTED)


@given(data=st.binary())
def test_base64_is_read_with_and_without_padding(data: bytes) -> None:
    """The padding of Base64 is optional, as for Java's decoder."""
    encoded = b64encode(data)
    assert decode_base64(encoded) == data
    assert decode_base64(encoded.rstrip(b"=")) == data


@given(text=st.binary(max_size=12))
def test_other_text_is_a_bad_request(text: bytes) -> None:
    """The decoder raises no error other than BadRequestError."""
    with contextlib.suppress(BadRequestError):
        assert len(decode_base64(text)) <= len(text)


@cases(
    "algorithm, size_bits, length",
    ("HmacSHA256", None, 32),
    ("hmacsha512", None, 64),
    ("HmacSHA1", None, 64),
    ("HmacSHA256", 512, 64),
    ("HmacSHA256", 100, 13),
)
def test_keys_are_as_long_as_javas(algorithm: str, size_bits: int | None, length: int) -> None:
    """Leaders of both kinds replace keys of another length, so the lengths must be equal."""
    assert key_length_bytes(algorithm, size_bits) == length


@cases(
    "current, now_ms, needed",
    (None, 0, True),
    (KEY, 1_000, False),
    (KEY, 1_099, False),
    (KEY, 1_100, True),
    (SessionKey(key=b"k" * 32, algorithm="HmacSHA256", created_ms=1_100), 1_000, False),
    (SessionKey(key=b"k" * 32, algorithm="HmacSHA256", created_ms=1_101), 1_000, True),
    (SessionKey(key=b"k" * 32, algorithm="HmacSHA1", created_ms=1_000), 1_000, True),
    (SessionKey(key=b"k" * 31, algorithm="HmacSHA256", created_ms=1_000), 1_000, True),
)
def test_odd_and_old_keys_change(current: SessionKey | None, now_ms: int, needed: bool) -> None:
    """A missing, old, differently made or future key is replaced."""
    settings = SessionKeySettings(algorithm="HmacSHA256", size_bits=None, ttl_ms=100)
    assert needs_new_key(current, settings, now_ms) is needed
