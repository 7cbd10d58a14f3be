"""The memory and the options of a connector's Java processes.

Layer: tasks. The worker's file sets what is usual and the most that a connector may ask for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import partial

from pyconnect_agent.java.launch import (
    CONNECTOR_INITIAL_HEAP,
    CONNECTOR_SERIAL,
    INITIAL_HEAP,
    SERIAL,
    JavaOptions,
)
from pyconnect_api import ConfigException

HEAP = "agent.java.heap"
HEAP_LIMIT = "agent.java.heap.limit"
OPTIONS = "agent.java.options"
CONNECTOR_HEAP = "256m"

_DEFAULTS = {HEAP: "256m", HEAP_LIMIT: "1g", OPTIONS: " ".join(SERIAL)}
_SIZE = re.compile(r"(\d+)([kKmMgG])")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def java_options(
    worker: Mapping[str, str | None], connector: Mapping[str, str], *, quick: bool = False
) -> JavaOptions:
    """Return the options of a connector's task, with `quick` of the connector itself.

    A connector's own options are properties (-Dname=value): others could run programs. Raises
    ConfigException.
    """
    usual = {key: worker.get(key) or default for key, default in _DEFAULTS.items()}
    initial_heap = INITIAL_HEAP
    if quick and not worker.get(OPTIONS):
        usual[OPTIONS] = " ".join(CONNECTOR_SERIAL)
        initial_heap = CONNECTOR_INITIAL_HEAP
    heap = connector.get(HEAP, usual[HEAP])
    if _bytes(HEAP, heap) > _bytes(HEAP_LIMIT, usual[HEAP_LIMIT]) and HEAP in connector:
        raise ConfigException(
            f"Invalid value {heap} for configuration {HEAP}: the worker allows connectors "
            f"{usual[HEAP_LIMIT]} at most ({HEAP_LIMIT})"
        )
    own = _words(connector.get(OPTIONS, ""))
    for option in own:
        if not option.startswith("-D"):
            raise ConfigException(
                f"Invalid value {option} for configuration {OPTIONS}: a connector may set "
                f"properties (-Dname=value) only; other options are set in the worker's file"
            )
    return JavaOptions(
        heap=heap,
        heap_key=HEAP,
        initial_heap=min(heap, initial_heap, key=partial(_bytes, HEAP)),
        options=(*_words(usual[OPTIONS]), *own),
        quick=quick,
    )


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise ConfigException(f"Invalid value {text} for configuration {OPTIONS}: {exc}") from exc


def _bytes(key: str, size: str) -> int:
    found = _SIZE.fullmatch(size)
    if found is None:
        raise ConfigException(
            f"Invalid value {size} for configuration {key}: a size is a number and k, m or g"
        )
    return int(found[1]) * _UNITS[found[2].lower()]
