"""The initialisation of a transactional id by repeated calls of librdkafka."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import LONGEST_CALL_S, initialise


class FakeProducer:
    """A producer that fails as often as it has errors, and remembers the time of each call."""

    def __init__(self, *failures: KafkaError) -> None:
        self._failures = list(failures)
        self.calls_s: list[float] = []
        self.polls = 0

    def init_transactions(self, timeout_s: float) -> None:
        self.calls_s.append(timeout_s)
        if self._failures:
            raise KafkaException(self._failures.pop(0))

    def poll(self, timeout_s: float) -> None:
        assert timeout_s == 0
        self.polls += 1


TIMED_OUT = KafkaError(KafkaError._TIMED_OUT, retriable=True)
DENIED = KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True)


def test_the_coordinator_is_asked_for_again_unless_that_is_in_vain() -> None:
    """The pauses between calls grow, and an error that a retry does not cure is raised at once."""
    producer = FakeProducer(*[TIMED_OUT] * 6)
    assert initialise(producer, Deadline(60_000))
    assert producer.calls_s[0] <= 0.1
    assert producer.calls_s == sorted(producer.calls_s)
    assert producer.calls_s[-1] == LONGEST_CALL_S
    assert producer.polls == 6, "the client's errors are logged meanwhile"
    producer = FakeProducer(DENIED, TIMED_OUT)
    with pytest.raises(KafkaException):
        initialise(producer, Deadline(60_000))
    assert len(producer.calls_s) == 1


def test_at_the_deadline_the_last_error_is_raised() -> None:
    """The last error is raised after one call at least; a caller that gave up gets no error."""
    producer = FakeProducer(TIMED_OUT, TIMED_OUT)
    with pytest.raises(KafkaException):
        initialise(producer, Deadline(0))
    assert producer.calls_s == [0.0]
    assert not initialise(FakeProducer(TIMED_OUT), Deadline(60_000), lambda: True)
