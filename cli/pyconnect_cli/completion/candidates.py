"""Names of the cluster for the shell, within 250 ms.

An answer is kept for 30 s, so that a second Tab costs no request. Without an answer in time the
shell gets the kept names of any age.

The Tab key reads no secret: it fetches no password, token or private key, and runs no command for
one. It does not ask a cluster that wants credentials; the names of such a cluster are those that
commands saw last.

httpx is not imported: it alone would take 70 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from pyconnect_cli.rest.kept_names import cache_of, read_cache, write_cache
from pyconnect_cli.settings.contexts import load_config_files
from pyconnect_cli.settings.resolved import (
    Settings,
    needs_credentials,
    resolve_settings,
    working_directory,
)

if TYPE_CHECKING:
    from pyconnect_cli.rest.endpoint import Endpoint

CACHE_S = 30.0
DEADLINE_S = 0.25
PATHS = {
    "connectors": "/connectors",
    "tasks": "/connectors?expand=status",
    "plugins": "/connector-plugins?connectorsOnly=false",
    "loggers": "/admin/loggers",
}


def candidates(kind: str, given: Mapping[str, object]) -> list[str]:
    """Return the names, from the cache when they are fresh; `given`: settings by option name."""
    if kind == "contexts":
        # Contexts come from the files: the settings do not have the context that is being typed.
        named = given.get("config")
        config = Path(str(named)).expanduser() if named else None
        return load_config_files(os.environ, working_directory(), config).context_names()
    settings = resolve_settings(given, os.environ, working_directory())
    cache = cache_of(kind, settings.urls, os.environ)
    kept, age_s = read_cache(cache)
    if age_s < CACHE_S or needs_credentials(settings):
        return kept
    try:
        with deadline(DEADLINE_S):
            names = ask(kind, settings)
    except Exception:  # noqa: BLE001 - whatever it was, the older names are what is left
        return kept
    write_cache(cache, names)
    return names


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block when the time is over."""

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ask(kind: str, settings: Settings) -> list[str]:
    """Return the names from the first worker that answers; OSError if no worker answers."""
    from pyconnect_cli.rest.endpoint import Endpoint, base_url

    endpoint = Endpoint(urls=settings.urls, ca_file=settings.ca_file, insecure=settings.insecure)
    failure: OSError | None = None
    for url in endpoint.urls:
        address, credentials = base_url(url)
        try:
            body = get_json(address + PATHS[kind], authorization(credentials), endpoint)
        except OSError as exc:
            failure = exc
            continue
        return sorted(NAMES[kind](body))
    raise failure or OSError("no address")


def authorization(credentials: tuple[str, str] | None) -> Mapping[str, str]:
    """Return the header for credentials that are part of an address."""
    import base64

    if credentials is None:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(':'.join(credentials).encode()).decode()}"}


def get_json(url: str, headers: Mapping[str, str], endpoint: Endpoint) -> object:
    """Return the body of a 200; OSError otherwise."""
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    from pyconnect_cli.rest.endpoint import tls_context

    parts = urlsplit(url)
    connection: HTTPConnection
    if parts.scheme == "https":
        connection = HTTPSConnection(
            parts.netloc, timeout=DEADLINE_S, context=tls_context(endpoint)
        )
    else:
        connection = HTTPConnection(parts.netloc, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("GET", target, headers={"Accept": "application/json", **headers})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"HTTP {response.status}")
        return json.loads(response.read())


def _task_names(body: object) -> list[str]:
    assert isinstance(body, dict)
    return [
        f"{name}/{task['id']}"
        for name, view in body.items()
        for task in view.get("status", {}).get("tasks", ())
    ]


def _class_names(body: object) -> list[str]:
    assert isinstance(body, list)
    return list(dict.fromkeys(str(plugin["class"]) for plugin in body))


def _members(body: object) -> list[str]:
    assert isinstance(body, dict | list)
    return [str(name) for name in body]


NAMES: Mapping[str, Callable[[object], list[str]]] = {
    "connectors": _members,
    "tasks": _task_names,
    "plugins": _class_names,
    "loggers": _members,
}
