"""A worker process in a process of its own, with tasks that hold leases, one after another.

Run as `python -m tests.wire.lease_supervisor LEASE_MS`. Each line of the input stops the task and
starts another one. The output has a JSON object a line: `pid` of the task's process once it runs,
and `expired` with the task's states once its lease has expired, or should have. The end of the
input ends the process.
"""

import asyncio
import json
import sys
from contextlib import suppress

from pyconnect_agent.core.ids import ConnectorTaskId
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import BAD_SOURCE

LONGEST_S = 60


def tell(**members: object) -> None:
    print(json.dumps(members), flush=True)  # noqa: T201  the test reads it


async def tell_end(world: ChildrenWorld, task_id: ConnectorTaskId) -> None:
    before = world.listener.expired_leases
    with suppress(AssertionError):
        await eventually_async(lambda: world.listener.expired_leases > before, LONGEST_S)
    tell(expired=[state.value for state in world.listener.task_states(task_id)])


async def main(lease_ms: int) -> None:
    telling: asyncio.Task[None] | None = None
    async with children_world(lease_ms=lease_ms) as world:
        while line := await asyncio.to_thread(sys.stdin.readline):
            if telling is not None:
                telling.cancel()
            await world.children.tasks.stop(world.children.tasks.running())
            config = {"name": line.strip(), "connector.class": BAD_SOURCE}
            task_id = await world.running_task(config)
            tell(pid=world.pid(task_id))
            telling = asyncio.create_task(tell_end(world, task_id))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
