"""The choice of the resource method for a request, as in JAX-RS.

Layer: rest, pure. Starlette's router does not fit: it matches decoded paths, and JAX-RS decides in
the order path (404), method (405), content type (415), accepted type (406).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response

from pyconnect_agent.rest.errors import RouterError
from pyconnect_agent.rest.exchange import HttpExchange
from pyconnect_agent.rest.media_types import (
    JSON,
    TEXT,
    accepted_ranges,
    accepts,
    consumes_json,
)
from pyconnect_agent.rest.targets import decode_segment

Resource = Callable[[HttpExchange], Awaitable[Response]]

# The order in which Apache's worker lists methods.
_LISTED = ("HEAD", "POST", "DELETE", "GET", "OPTIONS", "PUT", "PATCH")


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path template such as `/connectors/{connector}/tasks/{task}/status`.

    `any_content`: the request's content type does not matter. `produces`: the answer's.
    """

    method: str
    template: str
    resource: Resource
    any_content: bool = False
    produces: str = JSON


@dataclass(frozen=True, slots=True)
class Match:
    """The chosen route, and the decoded values of the template's parameters."""

    route: Route
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Path:
    segments: tuple[str, ...]
    routes: dict[str, Route]

    def parameters(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        """Return the undecoded parameters, None if the segments do not match."""
        if len(segments) != len(self.segments):
            return None
        found: dict[str, str] = {}
        for pattern, segment in zip(self.segments, segments, strict=True):
            if pattern.startswith("{"):
                found[pattern[1:-1]] = segment
            elif pattern != segment:
                return None
        return found


class Router:
    """An immutable table of routes; literal segments are preferred to parameters."""

    def __init__(self, routes: Sequence[Route]) -> None:
        paths: dict[tuple[str, ...], _Path] = {}
        for route in routes:
            segments = tuple(part for part in route.template.split("/") if part)
            paths.setdefault(segments, _Path(segments, {})).routes[route.method] = route
        self._paths = sorted(
            paths.values(), key=lambda path: [part.startswith("{") for part in path.segments]
        )

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
        path, parameters = self._path(segments)
        if method == "OPTIONS":
            return _options(path, accept)
        route = path.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise RouterError(HTTPStatus.METHOD_NOT_ALLOWED)
        if not (route.any_content or content_type is None or consumes_json(content_type)):
            raise RouterError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if not accepts(accepted_ranges(accept), route.produces):
            raise RouterError(HTTPStatus.NOT_ACCEPTABLE)
        decoded = {name: decode_segment(value) for name, value in parameters.items()}
        return Match(route, decoded)

    def _path(self, segments: tuple[str, ...]) -> tuple[_Path, dict[str, str]]:
        for path in self._paths:
            parameters = path.parameters(segments)
            if parameters is not None:
                return path, parameters
        raise RouterError(HTTPStatus.NOT_FOUND)


def _options(path: _Path, accept: str | None) -> Response:
    allowed = {"OPTIONS", *path.routes}
    if "GET" in allowed:
        allowed.add("HEAD")
    listed = [method for method in _LISTED if method in allowed]
    ranges = accepted_ranges(accept)
    headers = {"Allow": ",".join(listed)}
    if accepts(ranges, TEXT):
        return Response(", ".join(listed), headers={**headers, "Content-Type": TEXT})
    return Response(headers={**headers, "Content-Type": ranges[0]})
