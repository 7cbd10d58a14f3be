"""Fixtures for tests beside Java workers."""

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.kafka_4_4 import runtime_with_file_connectors


@pytest.fixture(scope="session")
def kafka_4_4(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> KafkaRuntime:
    """Kafka 4.4.0 with FileStream connectors."""
    return runtime_with_file_connectors(kafka_runtime, tmp_path_factory.mktemp("kafka-4.4"))
