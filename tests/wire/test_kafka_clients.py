"""Log lines of a client whose broker is away; the port has no listener and no mock."""

import logging
import time
from typing import Any

import pytest

from pyconnect_agent.kafka.clients import create_consumer
from pyconnect_sandbox.server import free_port
from tests.support.eventually import eventually

pytestmark = pytest.mark.wire


def test_an_unreachable_broker_is_logged_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    """librdkafka tries many times a second, too often for a log."""
    address = f"127.0.0.1:{free_port()}"
    config: dict[str, Any] = {"bootstrap.servers": address, "group.id": "unused"}

    def told() -> list[str]:
        found = [record for record in caplog.records if address in str(record.__dict__)]
        assert {record.message for record in found} <= {"Kafka client reported an error"}
        return [vars(record)["error"] for record in found]

    with caplog.at_level(logging.DEBUG):
        consumer = create_consumer(config)
        eventually(lambda: consumer.poll(0.05) is None and "_TRANSPORT" in told(), 20, told)
        end_s = time.monotonic() + 1
        while time.monotonic() < end_s:
            consumer.poll(0.05)
        consumer.close()
    assert len(told()) == len(set(told()))
