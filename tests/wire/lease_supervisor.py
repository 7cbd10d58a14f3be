"""A worker process in a process of its own: one task that holds a lease.

Run as `python -m tests.wire.lease_supervisor LEASE_MS`. Prints a JSON object a line: the pid of
the task's process once it runs, and `expired` with the task's states when its lease ran out.
SIGTERM ends it.
"""

import asyncio
import json
import signal
import sys

from pyconnect_agent.core.ids import State
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.plugins.bad_plugins import BAD_SOURCE

CONFIG = {"name": "c", "connector.class": BAD_SOURCE}
LONGEST_S = 120


def tell(**members: object) -> None:
    print(json.dumps(members), flush=True)  # noqa: T201  the test reads it


async def main(lease_ms: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with children_world(lease_ms=lease_ms) as world:
        task_id = await world.run_task(CONFIG)
        await world.task_is(task_id, State.RUNNING)
        tell(pid=world.pid(task_id))
        listener = world.listener

        def over() -> bool:
            # The connector's process has a lease too.
            return listener.expired_leases == 2 or ended.is_set()

        await eventually_async(over, LONGEST_S)
        if listener.expired_leases:
            tell(expired=[state.value for state in listener.task_states(task_id)])
            await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
