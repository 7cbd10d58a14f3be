"""Messages to a service manager, over real sockets."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.process.worker_process import ALIVE, READY, ServiceManager
from tests.support.names import unique_name

pytestmark = pytest.mark.wire


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "path" else f"@{unique_name('notify')}"


@pytest.fixture
def manager_socket(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(10)
        receiver.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        yield receiver


def manager(address: str | None, watchdog_s: float | None = None) -> ServiceManager:
    return ServiceManager(address=address, watchdog_s=watchdog_s)


def test_a_message_is_one_datagram(address: str, manager_socket: socket.socket) -> None:
    """A message is one datagram, also to an abstract socket."""
    manager(address).reloading()
    first, second = manager_socket.recv(100).decode().splitlines()
    assert first == "RELOADING=1"
    assert second.startswith("MONOTONIC_USEC=")


def test_ready_waits_for_the_worker(address: str, manager_socket: socket.socket) -> None:
    """READY is sent only after the first successful probe."""
    failures = [AgentError("not yet")]

    async def probe() -> None:
        manager_socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager_socket.recv(100)
        if failures:
            raise failures.pop()

    asyncio.run(manager(address).report_ready(probe))
    assert manager_socket.recv(100) == READY.encode()
    assert not failures


def test_the_watchdog_hears_several_messages(address: str, manager_socket: socket.socket) -> None:
    async def run() -> list[bytes]:
        reporting = asyncio.create_task(manager(address, 0.3).report_alive())
        try:
            return [await asyncio.to_thread(manager_socket.recv, 100) for _ in range(3)]
        finally:
            reporting.cancel()

    assert asyncio.run(run()) == [ALIVE.encode()] * 3


def test_a_manager_may_be_gone_or_anothers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A watchdog for another process is ignored, and an unreachable manager is only logged."""
    found = ServiceManager.of({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, os.getpid())
    assert found == manager(None)
    ours = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}
    assert ServiceManager.of(ours, 7) == manager("/run/x", 2.0)
    manager(str(tmp_path / "gone")).notify(READY)
    assert "the service manager cannot be reached" in caplog.text
