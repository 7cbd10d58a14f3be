"""`Content-Type` and `Accept` as JAX-RS reads them.

Layer: rest, pure. Weights are ignored: a range with `q=0` still accepts, as in Apache's worker.
"""

from __future__ import annotations

import re

from pyconnect_agent.core.errors import BadRequestError

JSON = "application/json"
TEXT = "text/plain"

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_MEDIA_TYPE = re.compile(
    rf"\s*({_WORD})/({_WORD})\s*(?:;\s*(?:{_WORD}\s*=\s*(?:{_WORD}|{_QUOTED})\s*)?)*"
)


def content_type(header: str) -> str:
    """Return `type/subtype` in lower case, without parameters; raises BadRequestError."""
    found = _MEDIA_TYPE.fullmatch(header)
    if found is None:
        raise BadRequestError(f"Content-Type is not a media type: {header}")
    return f"{found[1]}/{found[2]}".lower()


def consumes_json(name: str) -> bool:
    """Return whether an endpoint that consumes JSON accepts this content type."""
    return name in (JSON, "*/*", "application/*")


def accepted_ranges(header: str | None) -> tuple[str, ...]:
    """Return the ranges of an `Accept` header in order; none or a blank one accepts everything."""
    if header is None or not header.strip():
        return ("*/*",)
    ranges = (item.partition(";")[0].strip().lower() for item in header.split(","))
    return tuple("*/*" if item == "*" else item for item in ranges if item)


def accepts(ranges: tuple[str, ...], name: str) -> bool:
    """Return whether any of the ranges covers a media type."""
    main = name.partition("/")[0]
    return any(item in (name, "*/*", f"{main}/*") for item in ranges)
