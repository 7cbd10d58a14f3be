"""Workers that are started while their brokers are away."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    ConnectWorker,
    JavaConnectWorker,
    WorkerLaunch,
    worker_properties,
)
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.eventually import eventually
from tests.support.servers.kafka import free_ports

pytestmark = pytest.mark.java

IMPATIENT = {"request.timeout.ms": "3000", "default.api.timeout.ms": "3000"}
END_S = 120

Make = Callable[[KafkaRuntime, WorkerLaunch], ConnectWorker]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(JavaConnectWorker, id="java"),
        pytest.param(lambda _, config: AgentProcess(config), id="agent"),
    ],
)
def test_a_worker_refuses_connections_until_it_has_found_its_brokers(
    make: Make, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """No client waits for an answer that may not come; a worker without brokers ends."""
    nobody, port = free_ports(2)
    worker = make(
        kafka_runtime,
        WorkerLaunch(
            directory=tmp_path / "worker",
            properties={**worker_properties(f"127.0.0.1:{nobody}", "group"), **IMPATIENT},
            port=port,
        ),
    )
    refused: list[bool] = []

    def has_ended() -> bool:
        refused.append(_refuses(port))
        return not worker.is_running

    worker.launch()
    try:
        eventually(has_ended, END_S)
    finally:
        worker.stop()
    assert all(refused)


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False
