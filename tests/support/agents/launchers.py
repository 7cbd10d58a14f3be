"""Fork servers that a test process keeps, since starting one takes longer than most tests.

And what they launch.
"""

import atexit
import selectors
from functools import cache

from pyconnect_agent.channel import Channel
from pyconnect_agent.channel.requests import RunTaskJob, WorkerSettings
from pyconnect_agent.children.launch import DEFAULT_HOST, DEFAULT_PRELOAD, Launched, Launcher
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState

END_S = 30.0
SCRIPTED_HOST = "tests.support.fakes.child_host:run"


@cache
def shared_launcher(
    host: str = DEFAULT_HOST, preload: tuple[str, ...] = DEFAULT_PRELOAD
) -> Launcher:
    """Return the launcher of this host, whose fork server ends with this process."""
    launcher = Launcher(host=host, preload=preload)
    atexit.register(launcher.close)
    return launcher


def scripted_launcher() -> Launcher:
    """Its children do what `tests.support.fakes.child_host` reads in their config."""
    return shared_launcher(SCRIPTED_HOST, ("tests.support.fakes.child_host",))


def launch(launcher: Launcher, act: str) -> Launched:
    """Start a scripted task; see `tests.support.fakes.child_host`."""
    launched = launcher.launch()
    Channel(launched.connection).send(
        RunTaskJob(
            worker=WorkerSettings(properties={}),
            task_id=ConnectorTaskId("c", 0),
            connector_config={"name": "c"},
            task_config={"act": act},
            target_state=TargetState.STARTED,
        )
    )
    return launched


def has_ended(launched: Launched) -> bool:
    """Wait for the end."""
    with selectors.DefaultSelector() as selector:
        selector.register(launched.sentinel, selectors.EVENT_READ)
        return bool(selector.select(END_S))


def exit_code(launched: Launched) -> int | None:
    """Wait for the end."""
    assert has_ended(launched)
    code = launched.exit_code()
    launched.close()
    launched.connection.close()
    return code
