"""A worker with more children than select() has numbers for."""

import os
import resource

import pytest

from pyconnect_agent.children.launch import DESCRIPTORS_WANTED, Launcher
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.commands.processes import run_python
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import (
    SCRIPTED_HOST,
    ChildrenWorld,
    children_world,
    exit_code,
    launch,
    shared_launcher,
)
from tests.support.plugins.bad_plugins import bad_source
from tests.support.seeds import LONG
from tests.wire.many_descriptors import FD_SETSIZE, HOST, many_descriptors

pytestmark = pytest.mark.wire

LEASE_MS = 60_000
CHILDREN = 1_200 if LONG else 24


async def test_a_child_whose_pipe_select_refuses_obeys() -> None:
    """A child whose pipe select() refuses gets its target state, its stop and its leases."""
    async with children_world(lease_ms=LEASE_MS, launcher=shared_launcher(HOST)) as w:
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)
        w.children.tasks.set_target_state(task_id, TargetState.PAUSED)
        await w.task_is(task_id, State.PAUSED)
        await w.children.tasks.stop((task_id,))
        assert w.listener.task_states(task_id)[-1] is State.UNASSIGNED


def test_a_fork_server_is_replaced_when_there_are_many_children() -> None:
    """A new fork server can have a socket with a number that select() refuses."""
    launcher = Launcher(host=SCRIPTED_HOST, preload=())
    with many_descriptors():
        try:
            launched = launch(launcher, "exit-now")
            assert launched.sentinel > FD_SETSIZE
            assert exit_code(launched) == 3
        finally:
            launcher.close()


def test_a_worker_allows_itself_descriptors_for_its_children() -> None:
    """A worker raises its limit of descriptors, of which each child needs two."""
    program = (
        "import resource\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))\n"
        "from pyconnect_agent.children.launch import Launcher\n"
        "launcher = Launcher(preload=())\n"
        "launcher.fork()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "launcher.close()\n"
    )
    done = run_python(["-c", program], os.environ)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(DESCRIPTORS_WANTED, hard)
    assert done.stdout == f"{most}\n", done.stderr


@pytest.mark.long
@pytest.mark.timeout(1_800)
async def test_all_children_of_a_worker_keep_their_leases_and_obey() -> None:
    """All of very many paused tasks keep their leases and stop."""
    async with children_world(graceful_ms=600_000, lease_ms=LEASE_MS) as w:
        task_ids = [ConnectorTaskId("c", number) for number in range(CHILDREN)]
        config = bad_source()
        for task_id in task_ids:
            w.children.tasks.start(task_id, config, config, TargetState.PAUSED)
        await all_are(w, State.PAUSED)
        await w.children.tasks.stop(task_ids)
        await all_are(w, State.UNASSIGNED)
        assert w.listener.expired_leases == 0


async def all_are(w: ChildrenWorld, state: State) -> None:
    def others() -> list[ConnectorTaskId]:
        tasks = w.listener.tasks
        return [task_id for task_id in tasks if tasks[task_id][-1].state is not state]

    def reached() -> bool:
        return len(w.listener.tasks) == CHILDREN and not others()

    await eventually_async(reached, 1_500, lambda: [w.listener.tasks[t] for t in others()[:3]])
