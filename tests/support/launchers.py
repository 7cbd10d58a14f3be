"""Fork servers that a test process keeps: starting one takes longer than most tests."""

from __future__ import annotations

import atexit
from functools import cache

from pyconnect_agent.supervise.launch import DEFAULT_HOST, DEFAULT_PRELOAD, Launcher

SCRIPTED_HOST = "tests.support.child_host:run"


@cache
def shared_launcher(
    host: str = DEFAULT_HOST, preload: tuple[str, ...] = DEFAULT_PRELOAD
) -> Launcher:
    """Return the launcher of this host, whose fork server ends with this process."""
    launcher = Launcher(host=host, preload=preload)
    atexit.register(launcher.close)
    return launcher


def scripted_launcher() -> Launcher:
    """Its children do what `tests.support.child_host` reads in their config."""
    return shared_launcher(SCRIPTED_HOST, ("tests.support.child_host",))
