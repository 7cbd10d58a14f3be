"""What the log gets of a client whose broker is away; nothing listens, nothing is mocked."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from pyconnect_agent.kafka.clients import create_consumer
from pyconnect_cli.sandbox.ports import free_port

pytestmark = pytest.mark.wire


def test_an_unreachable_broker_is_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """librdkafka tries many times a second, which nobody wants to read."""
    address = f"127.0.0.1:{free_port()}"
    config: dict[str, Any] = {"bootstrap.servers": address, "group.id": "unused"}
    with caplog.at_level(logging.DEBUG):
        consumer = create_consumer(config)
        end_s = time.monotonic() + 1
        while time.monotonic() < end_s:
            consumer.poll(0.05)
        consumer.close()
    told = [record for record in caplog.records if address in str(record.__dict__)]
    assert {record.message for record in told} == {"Kafka client reported an error"}
    errors = [vars(record)["error"] for record in told]
    assert "_TRANSPORT" in errors
    assert len(errors) == len(set(errors))
