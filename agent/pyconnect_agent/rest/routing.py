"""The choice of the resource method for a request, as in JAX-RS.

Pure. Path templates are Starlette's. Its router does not fit: it matches decoded paths, and JAX-RS
decides in the order path (404), method (405), content type (415), accepted type (406).

Routes match undecoded segments, as JAX-RS does; only captured segments are percent-decoded. A
path is refused if another server could read it as another resource, because a proxy in front of the
worker may permit requests by their path.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from starlette.responses import Response
from starlette.routing import compile_path

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.rest.errors import (
    JSON,
    TEXT,
    RouterError,
    accepted_ranges,
    accepts,
    consumes_json,
)

if TYPE_CHECKING:
    from pyconnect_agent.rest.exchange import HttpExchange

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
    """Return the path's segments, undecoded, without path parameters and a last empty segment.

    `raw_path` is the request target up to the query. Raises BadRequestError.
    """
    path = _ABSOLUTE_FORM.sub("", raw_path, count=1) if "://" in raw_path else raw_path
    path = path.partition("#")[0] or "/"
    if not path.startswith("/"):
        raise BadRequestError("The path of the request must begin with a slash")
    if found := _REFUSED.search(path):
        raise BadRequestError(f"The path of the request must not contain {found[0]}")
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError as exc:
        raise BadRequestError("The path of the request is not UTF-8") from exc
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


ResourceMethod = Callable[["HttpExchange"], Awaitable[Response]]

# The order in which Apache's worker lists methods.
_LISTED = ("HEAD", "POST", "DELETE", "GET", "OPTIONS", "PUT", "PATCH")


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path template such as `/connectors/{connector}/tasks/{task}/status`.

    `any_content`: each content type of a request is accepted. `produces`: the answer's type.
    """

    method: str
    template: str
    resource: ResourceMethod
    any_content: bool = False
    produces: str = JSON


@dataclass(frozen=True, slots=True)
class Match:
    """The chosen route, and the decoded values of the template's parameters."""

    route: Route
    parameters: dict[str, str]


class Router:
    """An immutable table of routes, in which literal segments precede parameters."""

    def __init__(self, routes: Sequence[Route]) -> None:
        methods: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods.setdefault(route.template, {})[route.method] = route
        literal_first = sorted(
            methods, key=lambda path: [part.startswith("{") for part in path.split("/")]
        )
        self._paths = [(compile_path(path)[0], methods[path]) for path in literal_first]

    def match(
        self,
        method: str,
        segments: tuple[str, ...],
        *,
        content_type: str | None,
        accept: str | None,
    ) -> Match | Response:
        """Return the route, or the answer to an OPTIONS request; raises RouterError.

        `content_type` is a media type without parameters, None when the request has none.
        """
        path = "/" + "/".join(segments)
        matches = ((pattern.match(path), routes) for pattern, routes in self._paths)
        found = next(((match, routes) for match, routes in matches if match), None)
        if found is None:
            raise RouterError(HTTPStatus.NOT_FOUND)
        parameters, routes = found
        if method == "OPTIONS":
            return _options(routes, accept)
        route = routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise RouterError(HTTPStatus.METHOD_NOT_ALLOWED)
        if not (route.any_content or content_type is None or consumes_json(content_type)):
            raise RouterError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if not accepts(accepted_ranges(accept), route.produces):
            raise RouterError(HTTPStatus.NOT_ACCEPTABLE)
        decoded = {name: decode_segment(value) for name, value in parameters.groupdict().items()}
        return Match(route, decoded)


def _options(routes: Mapping[str, Route], accept: str | None) -> Response:
    allowed = {"OPTIONS", *routes}
    if "GET" in allowed:
        allowed.add("HEAD")
    listed = [method for method in _LISTED if method in allowed]
    ranges = accepted_ranges(accept)
    headers = {"Allow": ",".join(listed)}
    if accepts(ranges, TEXT):
        return Response(", ".join(listed), headers={**headers, "Content-Type": TEXT})
    return Response(headers={**headers, "Content-Type": ranges[0]})
