"""What is no request is refused as by Apache's worker, and nothing else is."""

from __future__ import annotations

import pytest

from tests.support.kafka import SharedAgentWorker, SharedJavaWorker
from tests.support.request_heads import REFUSED, TAKEN, exchange, status_of

pytestmark = pytest.mark.java


@pytest.mark.parametrize("name", REFUSED)
def test_a_java_worker_refuses_it_too(name: str, java_worker: SharedJavaWorker) -> None:
    """With the same status, and then it closes the connection."""
    request, status = REFUSED[name]
    assert status_of(exchange(java_worker.url, request)) == status


@pytest.mark.parametrize("name", TAKEN)
def test_a_java_worker_takes_it_too(
    name: str, java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker
) -> None:
    """With the same status as an agent."""
    on_java, on_agent = (
        status_of(exchange(worker.url, TAKEN[name])) for worker in (java_worker, agent_worker)
    )
    assert on_java == on_agent
