"""Write the reducers' notices to the worker's log (layer: kafka)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyconnect_agent.core.internal_topics.log_record import Notice, NoticeLevel

_LEVELS = {NoticeLevel.WARNING: logging.WARNING, NoticeLevel.ERROR: logging.ERROR}


def log_notices(logger: logging.Logger, notices: Iterable[Notice]) -> None:
    """Write one line per notice."""
    for notice in notices:
        logger.log(
            _LEVELS[notice.severity],
            notice.event,
            extra={"key": notice.key, "offset": notice.offset, "detail": notice.detail},
        )
