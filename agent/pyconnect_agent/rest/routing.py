"""The choice of the resource method for a request, as in JAX-RS.

Layer: rest, pure. Path templates are Starlette's. Its router does not fit: it matches decoded
paths, and JAX-RS decides in the order path (404), method (405), content type (415), accepted type
(406).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response
from starlette.routing import compile_path

from pyconnect_agent.rest.errors import RouterError
from pyconnect_agent.rest.exchange import Exchange
from pyconnect_agent.rest.media_types import (
    JSON,
    TEXT,
    accepted_ranges,
    accepts,
    consumes_json,
)
from pyconnect_agent.rest.targets import decode_segment

ResourceMethod = Callable[[Exchange], Awaitable[Response]]

# The order in which Apache's worker lists methods.
_LISTED = ("HEAD", "POST", "DELETE", "GET", "OPTIONS", "PUT", "PATCH")


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path template such as `/connectors/{connector}/tasks/{task}/status`.

    `any_content`: the request's content type does not matter. `produces`: the answer's.
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
    """An immutable table of routes; literal segments are preferred to parameters."""

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
        routes, parameters = self._path("/" + "/".join(segments))
        if method == "OPTIONS":
            return _options(routes, accept)
        route = routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise RouterError(HTTPStatus.METHOD_NOT_ALLOWED)
        if not (route.any_content or content_type is None or consumes_json(content_type)):
            raise RouterError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if not accepts(accepted_ranges(accept), route.produces):
            raise RouterError(HTTPStatus.NOT_ACCEPTABLE)
        decoded = {name: decode_segment(value) for name, value in parameters.items()}
        return Match(route, decoded)

    def _path(self, path: str) -> tuple[dict[str, Route], dict[str, str]]:
        """Return the routes of a path by their method, and its undecoded parameters."""
        for pattern, routes in self._paths:
            if found := pattern.match(path):
                return routes, found.groupdict()
        raise RouterError(HTTPStatus.NOT_FOUND)


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
