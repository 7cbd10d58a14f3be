"""The HTTP answer to a failure: status, error code, text.

Corresponds to ``ConnectExceptionMapper`` and ``ConnectRestException``. No other module
decides about statuses.

`Content-Type` and `Accept` are read as JAX-RS does; as in Apache's worker, a range with `q=0` still
accepts.
"""

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from starlette.responses import Response

from pyconnect_agent.core import errors
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.rest.bodies import BodyError
from pyconnect_api.errors import AlreadyExistsException, ConnectException, NotFoundException

JSON = "application/json"
TEXT = "text/plain"

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_MEDIA_TYPE = re.compile(
    rf"\s*({_WORD})/({_WORD})\s*(?:;\s*(?:{_WORD}\s*=\s*(?:{_WORD}|{_QUOTED})\s*)?)*"
)


def content_type(header: str) -> str:
    """Return `type/subtype` in lower case, without parameters; BadRequestError if it is not one."""
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


LOG = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (errors.BadRequestError, HTTPStatus.BAD_REQUEST),
    (errors.ForbiddenError, HTTPStatus.FORBIDDEN),
    (errors.NotFoundError, HTTPStatus.NOT_FOUND),
    (errors.AlreadyExistsError, HTTPStatus.CONFLICT),
    (errors.ConflictError, HTTPStatus.CONFLICT),
    (errors.ServiceUnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (NotFoundException, HTTPStatus.NOT_FOUND),
    (AlreadyExistsException, HTTPStatus.CONFLICT),
)
_REST_ERRORS = "org.apache.kafka.connect.runtime.rest.errors"
_CONNECT_ERRORS = "org.apache.kafka.connect.errors"
_JAVA_NAMES: tuple[tuple[type[Exception], str], ...] = (
    (errors.BadRequestError, f"{_REST_ERRORS}.BadRequestException"),
    (errors.NotFoundError, f"{_CONNECT_ERRORS}.NotFoundException"),
    (errors.AlreadyExistsError, f"{_CONNECT_ERRORS}.AlreadyExistsException"),
    (errors.RequestError, f"{_REST_ERRORS}.ConnectRestException"),
)

PERMANENT_HEADER = "Pyconnect-Permanent"
"""Header with `true` if the same request fails until a setting or a right is corrected.

Not a field of the body, because Java's workers refuse fields that they do not know.
"""
_PERMANENT = {PERMANENT_HEADER: "true"}


class RestError(Exception):
    """An error that the REST layer itself answers with."""

    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, status: int, message: str | None, *, error_code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = status if error_code is None else error_code
        self.message = message


class RouterError(RestError):
    """The error of a request that fits no resource method."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status, _router_text(status))


class ResourceNotFoundError(RestError):
    """A path parameter of the wrong form; unlike for a RouterError, a method was chosen."""

    def __init__(self) -> None:
        super().__init__(HTTPStatus.NOT_FOUND, _router_text(HTTPStatus.NOT_FOUND))


class UnsupportedBodyError(RestError):
    """The error of a body that is not declared as JSON."""

    def __init__(self) -> None:
        status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        super().__init__(status, _router_text(status))


class BodyTooLargeError(RestError):
    """A body is larger than this worker keeps in memory; Apache's only limit is its heap."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body of the request is larger than {limit_bytes} bytes, the limit for requests"
            " of this kind. A configuration must fit into a record of the config topic.",
        )


class UnauthorizedError(RestError):
    """The error of wrong credentials for the admin interface; `challenge` names the schemes."""

    def __init__(self, message: str, challenge: str) -> None:
        super().__init__(HTTPStatus.UNAUTHORIZED, message)
        self.headers = {"WWW-Authenticate": challenge}


class RunsElsewhereError(RestError):
    """The error of a task on another worker; `url` is the resource there, None if unknown."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(HTTPStatus.CONFLICT, message)
        self.headers = {} if url is None else {"Location": url}


class NullBodyError(RestError):
    """A missing value, for which Apache's worker dereferences null and answers 500."""

    def __init__(self, needed: str) -> None:
        super().__init__(
            HTTPStatus.INTERNAL_SERVER_ERROR, f"The body of the request must have {needed}"
        )


class RelayedError(RestError):
    """An error answer from the target of a forwarded request.

    `permanent`: the target said so. `journaled`: the target has recorded the request.
    """

    def __init__(
        self, status: int, message: str | None, *, error_code: int, permanent: bool = False
    ) -> None:
        super().__init__(status, message, error_code=error_code)
        self.permanent = permanent
        self.journaled = False
        self.headers = _PERMANENT if permanent else {}

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later, perhaps at another worker."""
        return self.status in (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)


def error_response(error: Exception) -> Response:
    match error:
        case RouterError():
            return _envelope(error.status, error.error_code, error.message, media_type=None)
        case RestError():
            response = _envelope(error.status, error.error_code, error.message)
            response.headers.update(error.headers)
            return response
        case BodyError() | errors.AgentError() | ConnectException():
            found = (status for kind, status in _STATUSES if isinstance(error, kind))
            status = next(found, HTTPStatus.INTERNAL_SERVER_ERROR)
            response = _envelope(status, status, str(error))
            if getattr(error, "permanent", False) is True:
                response.headers.update(_PERMANENT)
            return response
        case _:
            LOG.error("request failed", exc_info=error)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            return _envelope(status, status, str(error) or None)


def java_description(error: Exception) -> str:
    """Return `<exception class>: <message>` as Java prints an exception."""
    if isinstance(error, ConnectException):
        return f"{error.java_name}: {error}"
    if isinstance(error, errors.InternalError) and error.cause_class is not None:
        return f"{error.cause_class}: {error}"
    for kind, name in _JAVA_NAMES:
        if isinstance(error, kind):
            return f"{name}: {error}"
    return f"{_CONNECT_ERRORS}.ConnectException: {error}"


def _router_text(status: HTTPStatus) -> str:
    return f"HTTP {status.value} {status.phrase}"


def _envelope(
    status: int, error_code: int, message: str | None, *, media_type: str | None = JSON
) -> Response:
    body = json_text.dumps({"error_code": int(error_code), "message": message})
    return Response(body, status, media_type=media_type)
