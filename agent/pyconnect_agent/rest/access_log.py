"""One line per request: the extended NCSA format with the latency in milliseconds.

The logger is this module's, so that it can be silenced alone.
"""

from __future__ import annotations

import logging
import time

from starlette.requests import Request
from starlette.responses import Response

from pyconnect_agent.rest.bodies import sent_bytes

LOG = logging.getLogger(__name__)


def log_access(request: Request, response: Response, latency_ms: int) -> None:
    if not LOG.isEnabledFor(logging.INFO):
        return
    target = request.scope.get("raw_path", b"").decode("ascii", "replace")
    if query := request.scope["query_string"].decode("ascii", "replace"):
        target = f"{target}?{query}"
    LOG.info(
        '%s - - [%s] "%s %s HTTP/%s" %d %d "%s" "%s" %d',
        request.client.host if request.client else "-",
        time.strftime("%d/%b/%Y:%H:%M:%S %z"),
        request.method,
        target,
        request.scope["http_version"],
        response.status_code,
        sent_bytes(response),
        request.headers.get("referer", "-").replace('"', "'"),
        request.headers.get("user-agent", "-").replace('"', "'"),
        latency_ms,
    )
