"""The memory and the options of a connector's Java processes.

Layer: java_processes. The worker's file sets the usual values and the largest heap that a connector
may have.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyconnect_agent.core.config.java_keys import (
    DEFAULT_HEAP,
    ENVIRONMENT,
    HEAP,
    HEAP_LIMIT,
    OPTIONS,
    heap_bytes,
    option_words,
    variables,
)
from pyconnect_agent.java_processes.launch import (
    CONNECTOR_INITIAL_HEAP,
    CONNECTOR_SERIAL,
    INITIAL_HEAP,
    SERIAL,
    JavaOptions,
)
from pyconnect_api import ConfigException

SHARED_OPTIONS = "-XX:+UseSerialGC -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
_OF_JMX = "-Dcom.sun.management."
_DEFAULTS = {HEAP: DEFAULT_HEAP, HEAP_LIMIT: "1g", OPTIONS: " ".join(SERIAL)}


def java_options(
    worker: Mapping[str, str | None],
    connector: Mapping[str, str],
    *,
    quick: bool = False,
    shared: bool = False,
) -> JavaOptions:
    """Return the options of a connector's task; with `quick` those of the connector itself.

    `shared`: of a process for several, which has the largest heap unless a key sets one.

    A connector's own options are properties (-Dname=value): others could run programs, and those of
    JMX open a port by which code can be loaded. Raises ConfigException.
    """
    usual = {key: worker.get(key) or default for key, default in _DEFAULTS.items()}
    initial_heap = INITIAL_HEAP
    if shared:
        usual |= {
            HEAP: worker.get(HEAP) or usual[HEAP_LIMIT],
            OPTIONS: worker.get(OPTIONS) or SHARED_OPTIONS,
        }
    if quick and not worker.get(OPTIONS):
        usual[OPTIONS] = " ".join(CONNECTOR_SERIAL)
        initial_heap = CONNECTOR_INITIAL_HEAP
    heap = connector.get(HEAP, usual[HEAP])
    if heap_bytes(HEAP, heap) > heap_bytes(HEAP_LIMIT, usual[HEAP_LIMIT]) and HEAP in connector:
        raise ConfigException(
            f"Invalid value {heap} for configuration {HEAP}: the worker allows connectors "
            f"{usual[HEAP_LIMIT]} at most ({HEAP_LIMIT})"
        )
    own = option_words(connector.get(OPTIONS, ""))
    for option in own:
        if not option.startswith("-D") or option.startswith(_OF_JMX):
            raise ConfigException(
                f"Invalid value {option} for configuration {OPTIONS}: a connector may set "
                "properties (-Dname=value) only, and not those of JMX; the worker's file may set "
                "other options"
            )
    return JavaOptions(
        heap=heap,
        heap_key=HEAP,
        initial_heap=min(heap, initial_heap, key=partial(heap_bytes, HEAP)),
        options=(*option_words(usual[OPTIONS]), *own),
        environment=variables(worker.get(ENVIRONMENT) or ""),
        quick=quick,
    )
