"""What tests beside a real Java worker have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.kafka import Servers


@pytest.fixture(scope="module")
def module_servers(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    """Starts servers for the tests of one module, and ends them with it."""
    started = Servers(kafka_runtime, tmp_path_factory.mktemp("servers"))
    yield started
    started.close()
