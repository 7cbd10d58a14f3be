"""Repeated attempts of admin requests, without a broker."""

from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.core.errors import AuthorizationError, KafkaError, RetriableKafkaError
from pyconnect_agent.kafka.admin import Admin, TopicSpec


class TwoAttempts(Admin):
    """A broker that answers once, but not within the little time that is left."""

    def __init__(self) -> None:
        self._answers = [ClientError.INVALID_REPLICATION_FACTOR, ClientError._TIMED_OUT]

    def create_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
        code = self._answers.pop(0)
        raise RetriableKafkaError(f"code {code}") from KafkaException(ClientError(code))


def test_a_brokers_answer_says_more_than_the_timeout_of_the_last_attempt() -> None:
    """The error has the broker's reason, which says why the topic cannot be created."""
    topic = TopicSpec(name="t", partitions=1, replication_factor=3)
    with pytest.raises(RetriableKafkaError, match=str(ClientError.INVALID_REPLICATION_FACTOR)):
        TwoAttempts().create_topic_with_retry(topic, timeout_ms=50, retry_backoff_ms=40)


class SlowLeaders(Admin):
    """Brokers of which one leads a partition but does not know it at first."""

    def __init__(self, failures: list[KafkaError]) -> None:
        self.failures = failures

    def end_offsets(self, topic: str, partitions: Sequence[int], timeout_ms: int) -> dict[int, int]:
        assert list(partitions) == [0, 1]
        if self.failures:
            raise self.failures.pop(0)
        return dict.fromkeys(partitions, 0)


def test_leaders_are_asked_until_all_know_that_they_lead() -> None:
    """The wait ends when all leaders know, at a denial, at the timeout, and at a stop."""
    brokers = SlowLeaders([RetriableKafkaError("not yet")] * 2)
    brokers.wait_for_leaders("t", 2, 60_000, give_up=lambda: False)
    assert brokers.failures == []
    for failure, timeout_ms, stopped in (
        (AuthorizationError("no"), 60_000, False),
        (RetriableKafkaError("not yet"), 0, False),
        (RetriableKafkaError("not yet"), 60_000, True),
    ):
        brokers = SlowLeaders([failure, failure])
        brokers.wait_for_leaders("t", 2, timeout_ms, give_up=lambda stopped=stopped: stopped)  # type: ignore[misc]
        assert len(brokers.failures) == (2 if stopped else 1)
