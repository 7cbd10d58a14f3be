"""When transactions end: poll, interval, connector."""

import pytest

from pyconnect_agent.core.transaction_boundary import (
    ConnectorBoundary,
    Decision,
    IntervalBoundary,
    PollBoundary,
    RequestedTransactions,
)
from pyconnect_api import ConnectException, SourceRecord


def record(value: str = "v", partition: int | None = None) -> SourceRecord:
    return SourceRecord({"p": 1}, {"o": 1}, "t", partition, value=value)


def test_every_poll_ends_a_transaction() -> None:
    """An empty poll, a pause and an orderly end commit a transaction too."""
    boundary = PollBoundary()
    assert not boundary.watches_records
    assert boundary.after_batch(0) is Decision.COMMIT
    assert boundary.before_rest(complete=True) is Decision.COMMIT


def test_an_interval_is_counted_from_the_last_commit() -> None:
    """The first poll after the interval commits, as does a pause, whose time does not count."""
    boundary = IntervalBoundary(100)
    boundary.begin(1_000)
    assert boundary.after_batch(1_099) is Decision.CONTINUE
    assert boundary.after_batch(1_130) is Decision.COMMIT
    assert boundary.after_batch(1_229) is Decision.CONTINUE
    assert boundary.after_batch(1_230) is Decision.COMMIT
    boundary = IntervalBoundary(100)
    boundary.begin(0)
    assert boundary.before_rest(complete=True) is Decision.COMMIT
    boundary.begin(10_000)
    assert boundary.after_batch(10_099) is Decision.CONTINUE


def test_a_connector_decides_for_a_batch_once() -> None:
    """A request counts once, and an explicit None is refused, as in Kafka."""
    requested = RequestedTransactions()
    boundary = ConnectorBoundary(requested)
    requested.commit_transaction()
    assert boundary.after_batch(0) is Decision.COMMIT
    assert boundary.after_batch(0) is Decision.CONTINUE
    requested.abort_transaction()
    assert boundary.before_rest(complete=True) is Decision.ABORT
    assert boundary.before_rest(complete=True) is Decision.CONTINUE
    requested = RequestedTransactions()
    for call in (requested.commit_transaction, requested.abort_transaction):
        with pytest.raises(ConnectException, match="may not be null"):
            call(None)
        with pytest.raises(ConnectException, match="may not be null"):
            call(record=None)


def test_a_rest_commits_a_part_of_a_poll_but_not_of_a_connectors_batch() -> None:
    """A part of a poll is committed at a pause, unless the connector asked for a whole batch."""
    requested = RequestedTransactions()
    boundary = ConnectorBoundary(requested)
    requested.commit_transaction()
    assert boundary.before_rest(complete=False) is Decision.CONTINUE
    assert boundary.after_batch(0) is Decision.COMMIT
    for boundary in (PollBoundary(), IntervalBoundary(100)):
        assert boundary.before_rest(complete=False) is Decision.COMMIT


def test_a_connector_decides_for_that_very_record_once() -> None:
    """A request counts once and only for this record, not for an equal one."""
    requested = RequestedTransactions()
    boundary = ConnectorBoundary(requested)
    first, twin, third = record(), record(), record()
    requested.commit_transaction(first)
    requested.abort_transaction(third)
    assert boundary.after_record(twin) is Decision.CONTINUE
    assert boundary.after_record(first) is Decision.COMMIT
    assert boundary.after_record(first) is Decision.CONTINUE
    assert boundary.after_record(third) is Decision.ABORT


def test_both_commit_and_abort_fail_the_task() -> None:
    """Requests for both, for a batch or a record, raise an error with Kafka's text."""
    requested = RequestedTransactions()
    boundary = ConnectorBoundary(requested)
    requested.commit_transaction()
    requested.abort_transaction()
    with pytest.raises(ConnectException, match="commit and abort of same transaction"):
        boundary.after_batch(0)
    both = record(partition=3)
    requested.commit_transaction(both)
    requested.abort_transaction(both)
    with pytest.raises(ConnectException, match="of same record against topic/partition t/3"):
        boundary.after_record(both)
