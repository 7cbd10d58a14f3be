"""Leases of child processes: renewed, not renewed, and with a frozen process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from pyconnect_agent.core.ids import State, TargetState
from tests.support.cases import cases
from tests.support.commands.processes import python_environment
from tests.support.eventually import eventually
from tests.support.fakes.children_world import children_world
from tests.support.names import unique_name
from tests.support.plugins.bad_plugins import bad_source

pytestmark = pytest.mark.wire

LEASE_MS = 2_000
FROZEN_S = 1.5 * LEASE_MS / 1000


class Supervised:
    """A worker process and the process of its task."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.wire.lease_supervisor", str(LEASE_MS)],
            env=python_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        """Start another task."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{unique_name('c')}\n")
        self.process.stdin.flush()
        self.child = psutil.Process(self.told("pid"))

    def told(self, member: str) -> Any:
        """Return a member of the next JSON line from the worker process."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())[member]

    def signal(
        self, number: signal.Signals, *, supervisor: bool = False, child: bool = False
    ) -> None:
        if supervisor:
            self.process.send_signal(number)
        if child:
            self.child.send_signal(number)

    def freeze(self, **who: bool) -> None:
        """Stop processes for longer than a lease, and leave them stopped."""
        self.signal(signal.SIGSTOP, **who)
        end = time.monotonic() + FROZEN_S
        eventually(lambda: time.monotonic() >= end)

    def child_lives(self) -> bool:
        try:
            return self.child.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervised]:
    started = Supervised()
    with started.process:
        yield started


@pytest.fixture
def supervised(supervisor: Supervised) -> Iterator[Supervised]:
    """A worker process with a new task for each test."""
    supervisor.begin()
    yield supervisor
    supervisor.signal(signal.SIGCONT, supervisor=True)


def test_a_frozen_worker_process_loses_its_child(supervised: Supervised) -> None:
    """The child of a frozen worker process ends within its lease, which the worker learns later."""
    supervised.signal(signal.SIGSTOP, supervisor=True)
    started = time.monotonic()
    eventually(lambda: not supervised.child_lives())
    assert time.monotonic() - started < 2 * LEASE_MS / 1000
    supervised.signal(signal.SIGCONT, supervisor=True)
    assert supervised.told("expired") == ["RUNNING", "UNASSIGNED"]


def test_a_frozen_child_goes_on_where_it_was(supervised: Supervised) -> None:
    """A frozen child keeps its lease, which its worker process renews."""
    supervised.freeze(child=True)
    supervised.signal(signal.SIGCONT, child=True)
    end = time.monotonic() + 2 * LEASE_MS / 1000
    eventually(lambda: time.monotonic() >= end or not supervised.child_lives())
    assert supervised.child_lives()


@cases("first", "supervisor", "child")
def test_a_child_frozen_with_its_worker_ends_awake(supervised: Supervised, first: str) -> None:
    """A child that was frozen with its worker process ends: later leases do not count."""
    supervised.freeze(supervisor=True, child=True)
    supervised.signal(signal.SIGCONT, **{first: True})
    if first == "supervisor":
        # The worker process renews the leases before the child reads them.
        end = time.monotonic() + LEASE_MS / 1000
        eventually(lambda: time.monotonic() >= end)
        supervised.signal(signal.SIGCONT, child=True)
    else:
        eventually(lambda: not supervised.child_lives())
        supervised.signal(signal.SIGCONT, supervisor=True)
    assert supervised.told("expired") == ["RUNNING", "UNASSIGNED"]
    assert not supervised.child_lives()


async def test_a_child_without_a_lease_ends_itself() -> None:
    """Children of a hanging worker process end after the lease, those of a dead one at once."""
    async with children_world(lease_ms=LEASE_MS) as w:
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)
        leases = w.children._leases
        assert leases is not None
        leases.cancel()
        await w.task_is(task_id, State.UNASSIGNED)
        await w.connector_is("c", State.UNASSIGNED)
        assert w.listener.expired_leases == 2


async def test_a_worker_without_its_membership_renews_no_lease() -> None:
    """Without its membership a worker renews no lease: others may have its tasks."""
    async with children_world(lease_ms=LEASE_MS) as w:
        member = True
        w.children.connect(w.listener, confirmed_s=lambda: time.monotonic() if member else None)
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)
        member = False
        await w.task_is(task_id, State.UNASSIGNED)
        await w.connector_is("c", State.UNASSIGNED)
        assert w.listener.expired_leases == 2


async def test_a_lease_ends_one_term_after_the_membership_was_last_confirmed() -> None:
    """A lease ends one term after the last confirmed membership, not after the last renewal."""
    async with children_world(lease_ms=LEASE_MS) as w:
        last_s: list[float] = []
        w.children.connect(
            w.listener, confirmed_s=lambda: last_s[0] if last_s else time.monotonic()
        )
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)
        last_s.append(time.monotonic())
        await w.task_is(task_id, State.UNASSIGNED)
        await w.connector_is("c", State.UNASSIGNED)
        assert time.monotonic() - last_s[0] < 2 * LEASE_MS / 1000
        assert w.listener.expired_leases == 2


async def test_renewed_leases_keep_a_child_alive() -> None:
    """A child whose lease is renewed responds after several terms."""
    async with children_world(lease_ms=LEASE_MS) as w:
        task_id = await w.running_task(bad_source())
        pid = w.pid(task_id)
        loop = asyncio.get_running_loop()
        end = loop.time() + 2.5 * LEASE_MS / 1000
        while loop.time() < end:
            w.children.tasks.set_target_state(task_id, TargetState.PAUSED)
            await w.task_is(task_id, State.PAUSED)
            w.children.tasks.set_target_state(task_id, TargetState.STARTED)
            await w.task_is(task_id, State.RUNNING)
        assert w.pid(task_id) == pid
