"""Request targets as Jetty 12 reads them.

Layer: rest, pure. Routes match undecoded segments, as JAX-RS does; only captured segments are
percent-decoded. What Jetty refuses before routing is refused here, with its reasons.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")
_ILLEGAL = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@%/\\]")
_ABSOLUTE_FORM = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")
_PARAMETER = re.compile(r";[^/]*")
_UNENCODED_IN_SEGMENTS = "!$&'()*+,=:@~"


class RefusedTarget(Exception):
    """The server refuses the URI with a 400 page; the message is its reason phrase."""


def segments_of(raw_path: str) -> tuple[str, ...]:
    """Return the path's segments, undecoded, without path parameters and without a last empty one.

    `raw_path` is the request target up to the query. Raises RefusedTarget.
    """
    path = _ABSOLUTE_FORM.sub("", raw_path, count=1) if "://" in raw_path else raw_path
    path = path.partition("#")[0]
    _refuse_bad_path(path)
    segments = _PARAMETER.sub("", path).split("/")
    if segments[-1] == "":
        segments.pop()
    return tuple(segments[1:])


def decode_segment(segment: str) -> str:
    """Return the text of a segment that `segments_of` has let through."""
    return unquote_to_bytes(segment).decode()


def encode_segment(text: str) -> str:
    """Return a segment that decodes to `text`; half a surrogate pair becomes a question mark."""
    return quote(text, safe=_UNENCODED_IN_SEGMENTS, errors="replace")


def _refuse_bad_path(path: str) -> None:
    if _BAD_ESCAPE.search(path) or "%00" in path:
        raise RefusedTarget("Bad Request")
    lower = path.lower()
    if "\\" in path:
        raise RefusedTarget("Suspicious Path Character, Illegal Path Character")
    if "%5c" in lower or _ENCODED_CONTROL.search(path):
        raise RefusedTarget("Suspicious Path Character")
    if _ILLEGAL.search(path):
        raise RefusedTarget("Illegal Path Character")
    if "%2f" in lower:
        raise RefusedTarget("Ambiguous URI path separator")
    if "%25" in path:
        raise RefusedTarget("Ambiguous URI path encoding")
    if "//" in path:
        raise RefusedTarget("Ambiguous URI empty segment")
    _refuse_dots(path)
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError as exc:
        raise RefusedTarget("Bad UTF-8 encoding") from exc


def _refuse_dots(path: str) -> None:
    for segment in path.split("/"):
        name, parameter, _ = segment.partition(";")
        decoded = name.lower().replace("%2e", ".")
        if decoded in (".", "..") and decoded != name:
            raise RefusedTarget("Ambiguous URI path segment")
        if decoded in (".", "..") and parameter:
            raise RefusedTarget("Ambiguous URI path parameter")
