"""A broker with ACLs and users for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyconnect_cli.sandbox.runtime import KafkaRuntime
from tests.support.secured import SecuredBroker, secured_broker


@pytest.fixture(scope="module")
def secured(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    with secured_broker(kafka_runtime, tmp_path_factory.mktemp("secured")) as broker:
        yield broker
