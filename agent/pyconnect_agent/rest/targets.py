"""Targets of requests: the path in segments.

Layer: rest, pure. Routes match undecoded segments, as JAX-RS does; only captured segments are
percent-decoded. A path is refused if another server could read it as another resource, because a
proxy in front of the worker may permit requests by their path.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from pyconnect_agent.core.errors import BadRequestError

_ABSOLUTE_FORM = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")
_PARAMETER = re.compile(r";[^/]*")
_REFUSED = re.compile(
    r"""[^A-Za-z0-9\-._~!$&'()*+,;=:@%/]        # a character that no path may hold
      | %(?![0-9A-F]{2})                        # an escape that is not complete
      | %(?:[01][0-9A-F]|7F|2F|25|5C)           # an escaped control, slash, percent, backslash
      | //
      | (?<=/)(?:\.?%2E|%2E\.|%2E%2E)(?=[;/]|$)  # an escaped . or ..
      | (?<=/)\.\.?;                            # . or .. with a parameter
    """,
    re.VERBOSE | re.IGNORECASE,
)
_UNENCODED_IN_SEGMENTS = "!$&'()*+,=:@~"


def segments_of(raw_path: str) -> tuple[str, ...]:
    """Return the path's segments, undecoded, without path parameters and without a last empty one.

    `raw_path` is the request target up to the query. Raises BadRequestError.
    """
    path = _ABSOLUTE_FORM.sub("", raw_path, count=1) if "://" in raw_path else raw_path
    path = path.partition("#")[0] or "/"
    _refuse_bad_path(path)
    segments = _PARAMETER.sub("", path).split("/")
    if segments[-1] == "":
        segments.pop()
    return tuple(segments[1:])


def decode_segment(segment: str) -> str:
    """Return the text of a segment from `segments_of`."""
    return unquote_to_bytes(segment).decode()


def encode_segment(text: str) -> str:
    """Return a segment that decodes to `text`; half a surrogate pair becomes a question mark."""
    return quote(text, safe=_UNENCODED_IN_SEGMENTS, errors="replace")


def _refuse_bad_path(path: str) -> None:
    if not path.startswith("/"):
        raise BadRequestError("The path of the request must begin with a slash")
    if found := _REFUSED.search(path):
        raise BadRequestError(f"The path of the request must not contain {found[0]}")
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError as exc:
        raise BadRequestError("The path of the request is not UTF-8") from exc
