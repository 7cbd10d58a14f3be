"""When the transactions of an exactly-once task end, by its connector's configuration."""

from pyconnect_agent.core.config.connector_config import SourceTaskSettings
from pyconnect_agent.core.transaction_boundary import Decision, IntervalBoundary, PollBoundary
from pyconnect_agent.tasks.source import exactly_once
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases


def settings(**given: str) -> SourceTaskSettings:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return SourceTaskSettings.parse({"name": "c", "connector.class": "C", **named})


@cases(
    "given, interval_ms",
    ({}, 7_000),
    ({"transaction_boundary_interval_ms": "300"}, 300),
    ({"transaction_boundary_interval_ms": "0"}, 0),
)
def test_an_interval_is_of_connector_or_worker(given: dict[str, str], interval_ms: int) -> None:
    """The worker's is `offset.flush.interval.ms`; any case of `interval` counts."""
    worker = distributed(offset_flush_interval_ms="7000")
    wanted = settings(transaction_boundary="Interval", **given)
    boundary, _ = exactly_once.boundary_of(wanted, worker, 60_000)
    assert isinstance(boundary, IntervalBoundary)
    boundary.begin(0)
    if interval_ms:
        assert boundary.after_batch(interval_ms - 1) is Decision.CONTINUE
    assert boundary.after_batch(interval_ms) is Decision.COMMIT


def test_each_poll_is_a_transaction_unless_said_otherwise() -> None:
    """Also an interval that is given without its boundary changes nothing."""
    given = settings(transaction_boundary_interval_ms="300")
    assert isinstance(exactly_once.boundary_of(given, distributed(), 60_000)[0], PollBoundary)
