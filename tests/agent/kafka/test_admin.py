"""Attempts at the creation of a topic, without a broker."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyconnect_agent.core.errors import RetriableKafkaError
from pyconnect_agent.kafka.admin import Admin, TopicSpec


class TwoAttempts(Admin):
    """A broker that answers once, and not within the little time that is left."""

    def __init__(self) -> None:
        self._answers = [KafkaError.INVALID_REPLICATION_FACTOR, KafkaError._TIMED_OUT]

    def create_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
        code = self._answers.pop(0)
        raise RetriableKafkaError(f"code {code}") from KafkaException(KafkaError(code))


def test_a_brokers_answer_says_more_than_the_timeout_of_the_last_attempt() -> None:
    """An operator reads why the topic cannot be created."""
    topic = TopicSpec(name="t", partitions=1, replication_factor=3)
    with pytest.raises(RetriableKafkaError, match=str(KafkaError.INVALID_REPLICATION_FACTOR)):
        TwoAttempts().create_topic_with_retry(topic, timeout_ms=50, retry_backoff_ms=40)
